// The recording half of the dispatch mode: one boxed operator call on fakes becomes one node and fresh fakes.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include "braze/trace/recorder.h"

namespace braze::trace {

void record_call(Recorder& r, const c10::OperatorHandle& op, torch::jit::Stack& stack);

}  // namespace braze::trace
