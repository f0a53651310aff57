// What a Tracer holds; shared by tracer.cpp and joint.cpp.
#pragma once

#include <c10/core/impl/TorchDispatchModeTLS.h>

#include "braze/trace/inputs.h"
#include "braze/trace/native_state.h"
#include "braze/trace/recorder.h"
#include "braze/trace/tracer.h"

namespace braze::trace {

struct Tracer::State {
  NativeState native;
  c10::impl::TorchDispatchModeTLS modes_at_start = c10::impl::TorchDispatchModeTLS::get_state();
  bool reapply_views_at_start = false;
  Recorder recorder;
  Inputs inputs;
  std::vector<Owned<>> primals;
  Recorder* outer = nullptr;  ///< of a capture under way on this thread when this one began

  /// Constants join the inputs without asking: brings primals up to date.
  void collect_primals();
};

}  // namespace braze::trace
