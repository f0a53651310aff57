// Guards in a smaller vocabulary: no kInstanceLacks, no kEnvironment; type(x) of an x of known exact type is that type.
#pragma once

#include "braze/guard/guard.h"

namespace braze::guard {

struct Rewritten {
  std::vector<Guard> guards;
  std::vector<SourceId> fetched;
};

/// May add sources to the table.
Rewritten rewrite_guards(SourceTable& sources, std::span<const Guard> guards, std::span<const SourceId> fetched);

}  // namespace braze::guard
