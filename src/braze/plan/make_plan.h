// Puts a schedule and its kernels in steps: allocations by lifetime, launches, library calls, frees.
#pragma once

#include "braze/kernel/tile.h"
#include "braze/plan/plan.h"
#include "braze/schedule/schedule.h"

namespace braze::plan {

/// `tiled`: one per group that is not external, in order.
Plan make_plan(const schedule::Schedule& s, std::vector<kernel::Tiled> tiled);

}  // namespace braze::plan
