// Every way not to run compiled code: counted by reason, warned about once, fatal where BRAZE_STRICT says so.
#pragma once

#include <exception>

#include "braze/frame/statistics.h"
#include "braze/frame/step.h"

namespace braze::frame {

struct Callable;

/// Counts the reason; CPython runs from the point on.
Step not_run(Callable& callable, Fallback reason);

/// A plan raised before it wrote anything: CPython runs the segment, for eager's error and effects. Ctrl-C goes
/// through.
Step run_failed(Callable& callable);

/// An exception that ended a capture, a compile or a run.
Step failed(Callable& callable, const PointState& point, std::exception_ptr error) noexcept;

/// fullgraph=True met a break: RuntimeError with line, reason and advice.
Step refuse_break(const Callable& callable, const capture::Break& found);

}  // namespace braze::frame
