// An old int that was read but not looked at: counters such as `self.calls += 1` need no guard on their value.
//
// It stands on the stack, in locals and in shadows of dicts and cells. Sums and differences of such numbers are such
// numbers; whatever else looks at one makes it concrete, which guards the values it came from.
#pragma once

#include "braze/capture/objects.h"
#include "braze/guard/source.h"

namespace braze::capture {

/// `value`: the exact int read through `source`.
Owned<> make_pending(Borrowed<> value, guard::SourceId source);
/// left `op` right ('+' or '-'), each pending or an exact int.
Owned<> make_pending(char op, Borrowed<> left, Borrowed<> right);
bool is_pending(Borrowed<> object);

struct PendingNumber {
  Borrowed<> value;        ///< now
  guard::SourceId source;  ///< none: an expression
  char op = 0;
  Borrowed<> left, right;
};
PendingNumber pending_number(Borrowed<> object);

}  // namespace braze::capture
