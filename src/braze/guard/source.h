// Where a value came from, so that it can be fetched again on a later call.
//
// Sources form trees in one SourceTable per capture; roots are the slots of the frame at the program point, its
// function, and objects that the entry holds. Fetching walks the tree on live objects, borrowed, and runs no user code.
// Text: `slot[0].attr(lin).attr(weight)`, `globals[F]`, `cell[1]`, shown to users as `self.lin.weight`, `F`, `x`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "braze/py/ref.h"
#include "braze/support/ids.h"

namespace braze::guard {

using py::Borrowed;
using py::Owned;
using SourceId = support::Id<struct SourceTag>;

enum class SourceKind : std::uint8_t {
  kSlot,            ///< localsplus/stack slot `index` of the program point's outermost frame state
  kFunction,        ///< the function object of that frame
  kHeld,            ///< `key` itself, an object the entry keeps alive
  kGlobals,         ///< parent: function -> its __globals__ dict
  kBuiltins,        ///< parent: function -> its builtins dict
  kClosureCell,     ///< parent: function -> cell `index` of __closure__
  kCellContents,    ///< parent: cell
  kCode,            ///< parent: function -> __code__
  kDefaults,        ///< parent: function -> __defaults__ tuple
  kKwDefaults,      ///< parent: function -> __kwdefaults__ dict
  kMethodSelf,      ///< parent: bound method
  kMethodFunction,  ///< parent: bound method
  kType,            ///< parent: object -> type(object)
  kInstanceDict,    ///< parent: object -> its __dict__ (materialised on 3.11, see prototypes' findings)
  kDictItem,        ///< parent: dict, `key` -> value
  kTypeAttr,        ///< parent: type, `key` -> what the MRO look-up finds, not bound
  kMemberSlot,      ///< parent: object, `key`: member descriptor -> slot value
  kListItem,        ///< parent: list or tuple, `index`
  kTensorGrad,      ///< parent: tensor -> .grad
  kPartialFunc,
  kPartialArgs,
  kPartialKeywords,  ///< parent: functools.partial
  kWeakrefTarget,    ///< parent: weakref.ref
  kDequeItem,        ///< parent: collections.deque, `index`
  kIteratorItem,  ///< parent: a live iterator: what it walks, apart from its position: the sequence of a list or tuple
                  ///< iterator, the dict of a dict iterator, the inner iterator of enumerate, zip's tuple of iterators
};

struct Source {
  SourceKind kind = SourceKind::kSlot;
  SourceId parent;  ///< none for roots
  std::uint32_t index = 0;
  Owned<> key;  ///< attribute name, dict key, held object, descriptor
};

/// The text of the source `at` for users. `code`: the code of the program point, which names slots and free variables;
/// may be null. Ancestors of `at` must come before it in `sources`.
std::string source_text(std::span<const Source> sources, SourceId at, Borrowed<PyCodeObject> code);

class SourceTable {
 public:
  /// Equal (kind, parent, index, key identity or equal exact str/int) give equal ids. Runs no user code.
  SourceId add(SourceKind kind, SourceId parent, std::uint32_t index = 0, Borrowed<> key = {});
  const Source& operator[](SourceId id) const { return sources_[id.index]; }
  std::size_t size() const { return sources_.size(); }
  std::span<const Source> sources() const { return sources_; }
  /// Names the slots after the variables of `code`; without it texts say slot[0].
  void name_slots(Borrowed<PyCodeObject> code) { code_ = Owned<PyCodeObject>::share(code); }
  Borrowed<PyCodeObject> code() const { return code_.borrow(); }
  std::string text(SourceId id) const { return source_text(sources_, id, code_.borrow()); }  ///< for users

 private:
  std::vector<Source> sources_;
  std::unordered_multimap<std::uint64_t, SourceId> by_hash_;
  Owned<PyCodeObject> code_;
};

}  // namespace braze::guard
