// After grouping: which tensors get memory, which maps are computed again instead, and the order of the groups.
#pragma once

#include "braze/schedule/depend.h"

namespace braze::schedule {

Schedule finish(LoopProgram program, std::vector<Group> groups, const std::vector<std::uint32_t>& group_of,
                const Uses& uses);

}  // namespace braze::schedule
