// A call that no entry serves: capture, compile, check the guards again, run. Or the reason why not.
#pragma once

#include <optional>

#include "braze/frame/program_point_cache.h"
#include "braze/frame/step.h"

namespace braze::frame {

struct Callable;

Step run_miss(Callable& callable, ProgramPoint& point, const PointState& state, const guard::TorchState& now);

/// Runs the entry if its guards hold (the torch state has been compared).
std::optional<Step> run_if_guarded(Callable& callable, Entry& entry, const PointState& state);

}  // namespace braze::frame
