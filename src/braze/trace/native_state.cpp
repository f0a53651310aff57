// Most of it is at::ThreadLocalState; the rest are globals that a captured program may set.
#include "braze/trace/native_state.h"

#include <ATen/Context.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>

namespace braze::trace {

struct NativeState::State {
  at::ThreadLocalState tls;
  bool autocast_cache = at::autocast::is_autocast_cache_enabled();
  caffe2::TypeMeta dtype = c10::get_default_dtype();
  bool deterministic = at::globalContext().deterministicAlgorithms();
  bool warn_only = at::globalContext().deterministicAlgorithmsWarnOnly();
  bool fill_uninitialized = at::globalContext().deterministicFillUninitializedMemory();
};

NativeState::NativeState() : state_(std::make_unique<const State>()) {
  at::autocast::clear_cache();
  at::autocast::set_autocast_cache_enabled(false);
}

NativeState::~NativeState() = default;

void NativeState::restore() const {
  at::ThreadLocalState::setThreadLocalState(state_->tls);
  at::autocast::clear_cache();
  at::autocast::set_autocast_cache_enabled(state_->autocast_cache);
  if (c10::get_default_dtype() != state_->dtype) c10::set_default_dtype(state_->dtype);
  auto& context = at::globalContext();
  if (context.deterministicAlgorithms() != state_->deterministic ||
      context.deterministicAlgorithmsWarnOnly() != state_->warn_only)
    context.setDeterministicAlgorithms(state_->deterministic, state_->warn_only);
  if (context.deterministicFillUninitializedMemory() != state_->fill_uninitialized)
    context.setDeterministicFillUninitializedMemory(state_->fill_uninitialized);
}

}  // namespace braze::trace
