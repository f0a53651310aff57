// Where a value came from, so that it can be fetched again on a later call.
//
// Sources form trees in one SourceTable per capture; roots are the slots of the frame at the program point, its
// function, and objects that the entry holds. Fetching walks the tree on live objects, borrowed, and runs no user code.
// Text: `slot[0].attr(lin).attr(weight)`, `globals[F]`, `cell[1]`, shown to users as `self.lin.weight`, `F`, `x`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braze/py/ref.h"
#include "braze/support/ids.h"

namespace braze::guard {

using py::Borrowed;
using py::Owned;
using SourceId = support::Id<struct SourceTag>;

enum class SourceKind : std::uint8_t {
  kSlot,           ///< localsplus/stack slot `index` of the program point's outermost frame state
  kFunction,       ///< the function object of that frame
  kHeld,           ///< `key` itself, an object the entry keeps alive
  kGlobals,        ///< parent: function -> its __globals__ dict
  kBuiltins,       ///< parent: function -> its builtins dict
  kClosureCell,    ///< parent: function -> cell `index` of __closure__
  kCellContents,   ///< parent: cell
  kCode,           ///< parent: function -> __code__
  kDefaults,       ///< parent: function -> __defaults__ tuple
  kKwDefaults,     ///< parent: function -> __kwdefaults__ dict
  kMethodSelf,     ///< parent: bound method
  kMethodFunction, ///< parent: bound method
  kType,           ///< parent: object -> type(object)
  kInstanceDict,   ///< parent: object -> its __dict__ (materialised on 3.11, see prototypes' findings)
  kDictItem,       ///< parent: dict, `key` -> value
  kTypeAttr,       ///< parent: type, `key` -> what the MRO look-up finds, not bound
  kMemberSlot,     ///< parent: object, `key`: member descriptor -> slot value
  kListItem,       ///< parent: list or tuple, `index`
  kTensorGrad,     ///< parent: tensor -> .grad
  kPartialFunc, kPartialArgs, kPartialKeywords,  ///< parent: functools.partial
  kWeakrefTarget,  ///< parent: weakref.ref
  kDequeItem,      ///< parent: collections.deque, `index`
  kIteratorItem,   ///< parent: a live list/tuple iterator: the underlying sequence (kept apart from its position)
};

struct Source {
  SourceKind kind = SourceKind::kSlot;
  SourceId parent;          ///< none for roots
  std::uint32_t index = 0;
  Owned<> key;              ///< attribute name, dict key, held object, descriptor
};

class SourceTable {
 public:
  /// Equal (kind, parent, index, key identity or equal exact str/int) give equal ids.
  SourceId add(SourceKind kind, SourceId parent, std::uint32_t index = 0, Borrowed<> key = {});
  const Source& operator[](SourceId id) const { return sources_[id.index]; }
  std::size_t size() const { return sources_.size(); }
  std::string text(SourceId id) const;  ///< for users

 private:
  std::vector<Source> sources_;
};

}  // namespace braze::guard
