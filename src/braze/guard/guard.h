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

#include "braze/guard/source.h"

namespace braze::guard {

enum class GuardKind : std::uint8_t {
  kIdentity,       ///< is `expected` (types, functions, modules, code, singletons; held strongly if small, else weakly)
  kExactType,      ///< type(x) is `expected`
  kConstant,       ///< same exact type and equal value: int, float (bitwise, NaN equal), complex, str, bytes, and tuples of them
  kTensor,         ///< a tensor whose metadata equals the example's: dtype, device, sizes, strides, requires_grad, is_leaf
                   ///< where it matters, dispatch keys, python type, no subclass, not freed
  kLength,         ///< len(list/tuple/dict/set/deque) == index
  kDictKeys,       ///< the dict has just these keys in this order (`expected` is a tuple)
  kDictHas,        ///< `key` in dict, or not: `index` 1 or 0
  kInstanceLacks,  ///< the object's __dict__ has no `key`
  kTypeLacks,      ///< MRO look-up of `key` finds nothing
  kAlias,          ///< source is the same object as the other source `index`
  kDistinct,       ///< source is not the same object as the other source `index`
  kNone,           ///< is None (also: a NULL slot)
  kNullSlot,       ///< the frame slot is empty
  kSetContents,    ///< equal to the frozenset `expected` of constants
  kIteratorState,  ///< exact type `expected`, position `index` (a live list/tuple/range/enumerate/zip iterator)
  kNumpyScalar, kArrayMeta, ///< dtype (and shape) of a numpy scalar or array as `expected`'s
  kEnvironment,    ///< os.environ's value of `key`
};

struct Guard {
  GuardKind kind = GuardKind::kIdentity;
  SourceId source;
  std::uint32_t index = 0;
  Owned<> expected;
  Owned<> key;
};

/// Global torch state that every entry depends on: grad mode, inference mode, autocast, default dtype and device,
/// deterministic algorithms, float32 matmul precision, mode stacks empty, number of threads.
struct TorchState {
  std::uint64_t words[4] = {};
  bool operator==(const TorchState&) const = default;
  static TorchState current() noexcept;
  std::string difference(const TorchState& other) const;  ///< in words
};

class GuardSet;

class GuardBuilder {
 public:
  explicit GuardBuilder(SourceTable& sources);
  /// Notes a fact; a repeated one costs nothing. Never runs user code.
  void require(GuardKind kind, SourceId source, Borrowed<> expected = {}, std::uint32_t index = 0, Borrowed<> key = {});
  std::span<const Guard> guards() const;
  /// `fetched`: sources whose values the entry needs on each call (graph inputs, effect targets, recipe parts), in
  /// order. `slots`: number of slots of the program point. Overlapping or identical tensors among the tensor sources
  /// are guarded as they are now.
  std::unique_ptr<GuardSet> build(std::span<const SourceId> fetched, std::size_t slots);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The compiled check. Visible to the garbage collector through traverse; entries die with their anchors.
class GuardSet {
 public:
  virtual ~GuardSet() = default;
  /// True if all hold; then out[i] is the i-th fetched value, borrowed. Allocates nothing, runs no user code.
  virtual bool check(PyObject* const* slots, PyFunctionObject* function, PyObject** out) noexcept = 0;
  virtual std::size_t fetched() const = 0;
  /// Which guard fails now and why, in words with both values; "" if none.
  virtual std::string explain_failure(PyObject* const* slots, PyFunctionObject* function) = 0;
  virtual std::vector<std::string> texts() const = 0;   ///< every guard in words
  virtual bool is_dead() const noexcept = 0;            ///< an object held weakly is gone
  /// Our own commit is about to store into this dict: its version may move without a re-check.
  virtual void rearm(PyObject* dict) noexcept = 0;
  virtual int traverse(visitproc visit, void* arg) = 0;
};

}  // namespace braze::guard
