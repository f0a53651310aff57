// The compiled form of a guard set: data only. compile.cpp makes it, guard_set.cpp runs it, explain.cpp words it.
//
// Sources that are needed form trees, stored flat in pre-order: a node's subtree is the range [node, end). A node's
// facts are expressed as *words*: eight bytes at an address that must still hold what they held when the node was last
// walked: a dict's version, a type pointer, a pointer field, a length. The words of a node come after its ancestors',
// so an address is only read once everything on the way to it has been found unchanged, hence alive. If no word
// changed, every guard holds and every remembered value is the present one. If one did, its node's subtree is walked
// again: values fetched, guards compared, words recorded anew.
//
// Addresses are reused by other objects, therefore: values compared by content or identity are held strongly or watched
// through a weak reference (one word); dict and type versions are unique for all time; an object whose memory is read
// has a type that was fixed when it was first walked.
#pragma once

#include <cstdint>
#include <vector>

#include "braze/aten/tensor_guard.h"
#include "braze/guard/guard.h"

namespace braze::guard {

/// A guard in the form that check() evaluates.
struct CompiledGuard {
  GuardKind kind = GuardKind::kIdentity;
  std::uint32_t node = 0;
  std::uint32_t index = 0;  ///< as in Guard; for kAlias and kDistinct the other node; for kTensor the tensor's number
  Owned<> expected;         ///< null if held weakly
  Owned<> weak;             ///< a weak reference to what is expected
  Owned<> key;
  Py_hash_t hash = 0;  ///< of key
};

enum class WordRole : std::uint8_t {
  kFetch,    ///< the field that the node's value is fetched from
  kType,     ///< the value's type pointer
  kWeak,     ///< a weak reference still has its target
  kDict,     ///< the dict's version
  kVersion,  ///< the type's version
  kItems,    ///< the list's array of items (nothing for a tuple)
  kLength,   ///< the number of items
};

struct Word {
  const void* address = nullptr;
  std::uint64_t expected = 0;
};

struct Node {
  SourceKind kind = SourceKind::kSlot;
  bool is_dynamic = false;  ///< below a deque item or a gradient: walked on every call, has no words
  bool is_tagged = false;   ///< fetched through a dict or type version: no fetch word
  bool has_fixed_type = false;
  bool may_be_null = false;
  std::uint32_t parent = ~0U;
  std::uint32_t end = 0;  ///< one behind the last node of the subtree
  std::uint32_t index = 0;
  std::uint32_t first_guard = 0, last_guard = 0;
  std::uint32_t first_word = 0, last_word = 0;
  Owned<> key;
  Py_hash_t hash = 0;  ///< of key, if it is a dict key
  Owned<> type;        ///< if fixed: given by a guard, else set by the first walk
};

struct Program {
  TorchState state;
  std::vector<Node> nodes;
  std::vector<CompiledGuard> guards;           ///< sorted by node; evaluated by walks (kExactType: by Node::type)
  std::vector<CompiledGuard> explicit_guards;  ///< evaluated on every call: no word expresses them
  std::vector<std::uint32_t> roots;            ///< slots and the function
  std::vector<std::uint32_t> held;             ///< roots that never change
  std::vector<std::uint32_t> dynamic;          ///< outermost dynamic nodes
  std::vector<std::uint32_t> fetched;
  std::vector<WordRole> word_roles;
  std::vector<std::uint32_t> word_nodes;
  std::vector<CompiledGuard> tensors;  ///< kTensor guards, by their number
  aten::TensorGuard tensor_guard;
  std::vector<Source> sources;  ///< for texts: parallel to nodes, parents are node numbers
  Owned<PyCodeObject> code;     ///< names the slots
};

/// Sources and guards to a program. Throws InternalError for guards that cannot be expressed.
Program compile_guards(SourceTable& sources, std::span<const Guard> guards, std::span<const SourceId> fetched,
                       const TorchState& state);

/// A value that is not there: the dict lacks the key, the list is too short, the parent has another kind.
inline PyObject* const kMissing = reinterpret_cast<PyObject*>(1);

/// The node's value on its parent's. Runs no user code.
PyObject* fetch(const Node& node, PyObject* parent) noexcept;
/// Where the value of a node that is not tagged, dynamic or a root is stored; NULL if the parent has no such place.
const void* fetch_address(const Node& node, PyObject* parent) noexcept;

/// Objects of no weak reference, and those that are small or live for ever, are held strongly by identity guards.
bool is_held_strongly(PyObject* object) noexcept;

/// The guard holds for this value of its node (kinds that need no other node's value).
bool holds(const CompiledGuard& guard, PyObject* value) noexcept;

/// In words: the guard, and why it does not hold.
std::string guard_text(const Program& program, const CompiledGuard& guard);
std::string failure_text(const Program& program, const CompiledGuard& guard, PyObject* value);

}  // namespace braze::guard
