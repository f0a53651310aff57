// Guards: the facts about live objects under which a compiled entry may run, checked before every run.
//
// Every kind of read has a kind here; a read without one is a break. The builder collects facts during a capture, then
// compiles them to a flat program: reads through dictionaries whose owner is guarded by identity are grouped under that
// dictionary's version tag (watcher bit on 3.12+), and only re-checked when it moved.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braze/aten/torch_state.h"
#include "braze/guard/source.h"

namespace braze::guard {

using aten::TorchState;

enum class GuardKind : std::uint8_t {
  kIdentity,   ///< is `expected`. Held weakly if it can be referenced weakly, but for types, code and constants
  kExactType,  ///< type(x) is `expected` (held strongly)
  kConstant,   ///< same exact type and equal value: int, float (bitwise, NaN equal), complex, str, bytes, and tuples of
               ///< them
  kTensor,  ///< a plain tensor like the example `expected` (aten/tensor_guard.h; not kept). `index`: kTensorNotes bits
  kLength,  ///< len(list/tuple/dict/set/deque) == index
  kDictKeys,       ///< the dict (OrderedDict too) has just these keys in this order (`expected` is a tuple)
  kDictHas,        ///< `key` in dict, or not: `index` 1 or 0
  kInstanceLacks,  ///< the object's __dict__ has no `key`
  kTypeLacks,      ///< MRO look-up of `key` finds nothing
  kAlias,          ///< source is the same object as the other source `index`
  kDistinct,       ///< source is not the same object as the other source `index`
  kNone,           ///< is None. A function without defaults, a dead weak reference and a missing .grad read as None
  kNullSlot,       ///< the frame slot, cell or member slot is empty
  kSetContents,    ///< the constants of the frozenset `expected`; a tuple `expected`: in this order of iteration
  kIteratorState,  ///< a live iterator of exact type `expected` at position `index`: list, tuple, dict, enumerate (its
                   ///< count), zip (number of iterators); range iterators: `key` is (next value, step, values left)
  kNumpyScalar,    ///< a numpy scalar of exact type and bits of `expected` (is_guardable_scalar)
  kArrayMeta,      ///< a numpy array with dtype, shape, strides and flags of `expected`; its values are not compared
  kEnvironment,    ///< os.environ's value of the str `key` is the str `expected`, or absent (None); no source
};

/// Bits of a kTensor guard's index: also compare these.
inline constexpr std::uint32_t kTensorOffset = 1;  ///< the storage offset was read
inline constexpr std::uint32_t kTensorIsView = 2;  ///< the tensor is written: being a differentiable view matters

/// A numpy scalar that kNumpyScalar can compare: bool, integer, float16/32/64, complex64/128.
bool is_guardable_scalar(Borrowed<> object) noexcept;
/// The dict that kDictItem & co. can read through: its keys' hashes can be computed without running user code.
bool is_guardable_key(Borrowed<> key) noexcept;

struct Guard {
  GuardKind kind = GuardKind::kIdentity;
  SourceId source;
  std::uint32_t index = 0;
  Owned<> expected;
  Owned<> key;
};

class GuardSet;

class GuardBuilder {
 public:
  /// The entry will depend on `state`, by default that of this moment: make the builder before the capture changes it.
  explicit GuardBuilder(SourceTable& sources, const TorchState& state = TorchState::current());
  /// Notes a fact; a repeated one costs nothing. Never runs user code.
  void require(GuardKind kind, SourceId source, Borrowed<> expected = {}, std::uint32_t index = 0, Borrowed<> key = {});
  std::span<const Guard> guards() const;
  /// `fetched`: sources whose values the entry needs on each call (graph inputs, effect targets, recipe parts), in
  /// order. `slots`: number of slots of the program point. Overlapping or identical tensors among the tensor guards'
  /// examples are guarded as they are now. Call check() at once after building: it fills in versions and addresses.
  std::unique_ptr<GuardSet> build(std::span<const SourceId> fetched, std::size_t slots);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The compiled check. Visible to the garbage collector through traverse; entries die with their anchors.
///
/// A dict that moved is not a failure: the keys read in it are looked up again (7 ns each), and only what changed is
/// checked again. So stores of our own commit need no announcement.
class GuardSet {
 public:
  virtual ~GuardSet() = default;
  /// The torch state that the entry depends on: compare it with one TorchState::current() per call before check().
  virtual const TorchState& state() const noexcept = 0;
  /// True if all hold; then out[i] is the i-th fetched value, borrowed: share it before anything
  /// can run. Allocates nothing unless an object without a __dict__ gets one, runs no user code. `slots` has at least
  /// the number of entries given to build(); `function` may be null if no source is below kFunction.
  virtual bool check(PyObject* const* slots, PyFunctionObject* function, PyObject** out) noexcept = 0;
  virtual std::size_t fetched() const = 0;
  /// Which guard (or part of the torch state) fails now and why, in words with both values; "" if none.
  virtual std::string explain_failure(PyObject* const* slots, PyFunctionObject* function) = 0;
  virtual std::vector<std::string> texts() const = 0;  ///< every guard in words
  virtual bool is_dead() const noexcept = 0;           ///< an object held weakly is gone: check() can never hold again
  virtual int traverse(visitproc visit, void* arg) = 0;
};

}  // namespace braze::guard
