// The life of a call: program points, entries, breaks performed for real, one fallback.
//
//   run_point(callable, point) -> entry hit -> executable -> recipe -> returned, or a chain that goes on
//                                 miss -> capture -> compile -> same;  refused, failing or contended -> not run
#pragma once

#include "braze/capture/capture.h"
#include "braze/frame/step.h"
#include "braze/runtime/executable.h"

namespace braze::frame {

/// Options of one braze.compile(...) call, read once.
struct CompileOptions {
  bool fullgraph = false;
  runtime::Backend backend = runtime::Backend::kBraze;
  int recompile_limit = 8;
};

struct Callable;  ///< a compiled callable: cache of program points, statistics (frame/callable.h)

/// Serves one program point: by an entry, by a new one, or not at all. Never leaves an error set unless kRaised.
/// `now` is this thread's torch state, read for this call.
Step run_point(Callable& callable, const PointState& point, const guard::TorchState& now) noexcept;

/// Goes on in real frames with run_point.
class CallDriver final : public Driver {
 public:
  explicit CallDriver(Callable& callable) : callable_(callable) {}
  Step advance(const PointState& point) noexcept override;
  void ran_in_eager(std::int64_t operators) noexcept override;

 private:
  Callable& callable_;
};

}  // namespace braze::frame
