// The public face: thread state, fakes on demand, poison. How a trace ends is in joint.cpp.
#include "braze/trace/tracer.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "braze/aten/python_tensor.h"
#include "braze/support/check.h"
#include "braze/trace/batch_norm.h"
#include "braze/trace/fake_tensor.h"
#include "braze/trace/tracer_state.h"

namespace braze::trace {

namespace fn = at::functionalization::impl;

Tracer::Tracer() : state_(std::make_unique<State>()) {
  register_batch_norm();
  state_->reapply_views_at_start = fn::getFunctionalizationReapplyViewsTLS();
  state_->recorder.had_grad_mode = at::GradMode::is_enabled();
  state_->outer = exchange_recorder(&state_->recorder);
  enter_dispatch_mode();
}

Tracer::~Tracer() {
  exchange_recorder(state_->outer);
  state_->native.restore();
}

void Tracer::State::collect_primals() {
  while (primals.size() < recorder.inputs.size()) primals.push_back(aten::wrap(recorder.inputs[primals.size()]));
}

Owned<> Tracer::fake_of(Borrowed<> real) {
  if (const Input* known = state_->inputs.find_real(real)) return known->fake;
  if (is_fake(real)) return Owned<>::share(real);
  if (auto reason = Inputs::refusal(real)) {
    state_->recorder.poison = std::move(reason);
    return nullptr;
  }
  Owned<> fake = state_->inputs.add(state_->recorder, real).fake;
  state_->collect_primals();
  return fake;
}

bool Tracer::is_fake(Borrowed<> tensor) const noexcept {
  if (!aten::is_tensor(tensor)) return false;
  const at::Tensor& t = aten::unwrap(tensor);
  if (!fn::isFunctionalTensor(t)) return as_fake(t) != nullptr;
  return as_fake(fn::unsafeGetFunctionalWrapper(t)->value()) != nullptr;
}

Borrowed<> Tracer::real_of(Borrowed<> fake) const noexcept {
  if (!aten::is_tensor(fake)) return nullptr;
  const Input* input = state_->inputs.find_fake(aten::unwrap(fake));
  return input ? input->real.borrow() : nullptr;
}

Tracer::Mark Tracer::mark() const { return {node_count()}; }

bool Tracer::roll_back(Mark mark) { return node_count() == mark.nodes; }

std::optional<Poison> Tracer::take_poison() {
  Recorder& r = state_->recorder;
  if (!r.poison) r.poison = state_->inputs.check();
  if (!r.poison) return std::nullopt;
  Poison poison{*r.poison, nullptr};
  if (r.poison_tensor.defined()) poison.tensor = aten::wrap(r.poison_tensor);
  return poison;
}

void Tracer::set_location(const char* file, int line) { state_->recorder.at = {file, line}; }
std::size_t Tracer::node_count() const { return state_->recorder.graph.nodes.size(); }
std::span<const Owned<>> Tracer::primals() const { return state_->primals; }
bool Tracer::is_constant(std::size_t primal) const { return state_->recorder.is_constant[primal]; }

struct Tracer::Pause::State {
  c10::impl::TorchDispatchModeTLS modes = c10::impl::TorchDispatchModeTLS::get_state();
  Recorder* recorder = nullptr;
};

Tracer::Pause::Pause(Tracer& tracer) : state_(std::make_unique<State>()) {
  state_->recorder = exchange_recorder(nullptr);
  c10::impl::TorchDispatchModeTLS::set_state(tracer.state_->modes_at_start);
  c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::Functionalize, false);
  fn::setFunctionalizationReapplyViewsTLS(tracer.state_->reapply_views_at_start);
}

Tracer::Pause::~Pause() {
  fn::setFunctionalizationReapplyViewsTLS(true);
  c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::Functionalize, true);
  c10::impl::TorchDispatchModeTLS::set_state(std::move(state_->modes));
  exchange_recorder(state_->recorder);
}

void seal(Borrowed<> tensor) noexcept {
  if (!aten::is_tensor(tensor)) return;
  const at::Tensor& t = aten::unwrap(tensor);
  if (fn::isFunctionalTensor(t))
    t.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()->set_throw_on_mutable_data_ptr();
}

bool is_tracing() noexcept { return current_recorder() != nullptr; }

}  // namespace braze::trace
