// One operator call becomes one node: checks and arguments. Results are made in results.cpp.
#include "braze/trace/dispatch_mode.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "braze/aten/python_tensor.h"
#include "braze/aten/types.h"
#include "braze/support/check.h"
#include "braze/support/text.h"
#include "braze/trace/call.h"

namespace braze::trace {

using aten::ArgKind;
using graph::Arg;
using graph::ValueId;
using torch::jit::Stack;

namespace {

/// Values written in C++ (a Scalar made a tensor on the way): no Python object, no dimensions, on the CPU.
bool is_number(const at::Tensor& t) {
  return t.dim() == 0 && t.is_cpu() && (t.unsafeGetTensorImpl()->is_wrapped_number() || !aten::has_python_object(t));
}

Arg scalar_tensor(Recorder& r, const at::Tensor& t) {
  const auto dtype = aten::to_dtype(t.scalar_type());
  if (!dtype) r.fail(support::format("element type {}", c10::toString(t.scalar_type())), t);
  return graph::add_node(r.graph, "aten::scalar_tensor",
                         {aten::to_arg(t.item()), *dtype, graph::None{}, op::Device{}, graph::None{}},
                         {op::contiguous(*dtype, {})}, r.at)[0];
}

void note_device(Call& c, const at::Tensor& t) {
  if (!c.device || (t.dim() > 0 && !t.is_cpu())) c.device = t.device();
}

/// The argument for a tensor; `t` becomes the fake itself where functionalization was still around it.
Arg operand(Call& c, at::Tensor& t) {
  if (!t.defined()) return ValueId();
  if (at::functionalization::impl::isFunctionalTensor(t)) {
    at::functionalization::impl::sync(t);
    t = at::functionalization::impl::from_functional_tensor(t);
    return operand(c, t);
  }
  if (const FakeTensorImpl* fake = as_fake(t)) {
    note_device(c, t);
    c.operands.push_back(t);
    return fake->value();
  }
  if (!is_number(t)) c.r.fail("a tensor that is no input of the capture", t);
  return t.unsafeGetTensorImpl()->is_wrapped_number() ? aten::to_arg(t.item()) : scalar_tensor(c.r, t);
}

ValueId list_element(Call& c, at::Tensor& t) {
  const Arg arg = operand(c, t);
  const auto* id = std::get_if<ValueId>(&arg);
  if (id == nullptr) c.r.fail(support::format("{}: a number in a list of tensors", c.facts.name));
  return *id;
}

Arg tensor_list(Call& c, c10::IValue& v) {
  std::vector<ValueId> ids;
  c10::List<at::Tensor> fakes;
  for (at::Tensor t : v.toTensorVector()) {
    ids.push_back(list_element(c, t));
    fakes.push_back(t);
  }
  v = fakes;
  return ids;
}

Arg optional_tensor_list(Call& c, c10::IValue& v) {
  std::vector<ValueId> ids;
  c10::List<std::optional<at::Tensor>> fakes;
  for (const c10::IValue& element : v.toListRef()) {
    at::Tensor t = element.isNone() ? at::Tensor() : element.toTensor();
    ids.push_back(list_element(c, t));
    fakes.push_back(t.defined() ? std::optional(t) : std::nullopt);
  }
  v = fakes;
  return ids;
}

Arg argument(Call& c, c10::IValue& v, ArgKind kind) {
  if (v.isNone()) return graph::None{};
  if (kind == ArgKind::kTensor) {
    at::Tensor t = v.toTensor();
    const Arg arg = operand(c, t);
    v = t;
    return arg;
  }
  if (kind == ArgKind::kTensorList) return tensor_list(c, v);
  if (kind == ArgKind::kOptionalTensorList) return optional_tensor_list(c, v);
  const auto arg = aten::to_arg(v, kind);
  if (!arg) c.r.fail(support::format("{}: an argument of type {}", c.facts.name, v.tagKind()));
  return *arg;
}

void convert_arguments(Call& c) {
  c.args.reserve(c.facts.kinds.size());
  for (std::size_t i = 0; i < c.facts.kinds.size(); ++i) {
    c10::IValue& v = c.stack[c.base + i];
    c.args.push_back(argument(c, v, c.facts.kinds[i]));
    if (c.facts.kinds[i] != ArgKind::kDevice || v.isNone()) continue;
    c.device = v.toDevice();
    if (!c.device->is_cpu() && !c.device->is_cuda()) c.r.fail(support::format("device {}", c.device->str()));
  }
}

void check_allowed(const Call& c) {
  if (c.r.poison) c.r.fail(*c.r.poison);
  if (!c.facts.refusal.empty()) c.r.fail(c.facts.refusal);
  if (at::GradMode::is_enabled() && at::SavedTensorDefaultHooks::is_enabled() &&
      at::SavedTensorDefaultHooks::get_hooks())
    c.r.fail("saved-tensor hooks run Python");
}

/// as_strided counts from the start of a storage, and an input's place in its storage is no fact of the graph.
void check_as_strided(const Call& c) {
  if (c.facts.op != op::Op::as_strided || c.operands.empty()) return;
  const auto& storage = c.operands[0].unsafeGetTensorImpl()->unsafe_storage();
  if (c.r.input_storages.contains(storage.unsafeGetStorageImpl())) c.r.fail("as_strided on an input");
}

void check_no_mask(const Call& c) {
  if (c.facts.op != op::Op::index_Tensor) return;
  for (std::size_t i = 1; i < c.operands.size(); ++i)
    if (c.operands[i].scalar_type() == at::kBool || c.operands[i].scalar_type() == at::kByte)
      c.r.fail("indexing by a mask: data-dependent");
}

void note_random(Call& c) {
  if (!c.facts.is_random) return;
  if (c.facts.dropout >= 0) {
    const auto* p = std::get_if<double>(&c.args[static_cast<std::size_t>(c.facts.dropout)]);
    if (p != nullptr && *p == 0) return;
  }
  c.r.draws_random = true;
}

/// torch.tensor(...) and its kin: a real tensor that the program has just made, fresh on every call. A fake stays.
bool record_literal(Call& c) {
  if (c.facts.op != op::Op::lift_fresh) return false;
  const at::Tensor t = c.stack[c.base].toTensor();
  if (as_fake(t) || at::functionalization::impl::isFunctionalTensor(t)) return true;
  if (t.layout() != at::kStrided || !aten::to_dtype(t.scalar_type())) c.r.fail("a literal of an unknown type", t);
  const Geometry g = geometry_of(t);
  if (t.dim() == 0 && t.is_cpu()) {
    c.stack[c.base] = make_fake(g, std::get<ValueId>(scalar_tensor(c.r, t)));
    return true;
  }
  if (c.r.is_backward) c.r.fail("a literal in the backward", t);
  const ValueId input = graph::add_input(c.r.graph, support::format("c{}", c.r.inputs.size()), type_of(g));
  c.r.inputs.push_back(t);
  c.r.is_constant.push_back(true);
  const ValueId copy = graph::add_node(c.r.graph, "aten::clone", {input, graph::None{}}, {type_of(g)}, c.r.at)[0];
  c.stack[c.base] = make_fake(g, copy);
  return true;
}

/// One node per tensor: the operator's own slow kernel calls the plain operators, which come back here.
void decompose(Call& c) { c.op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &c.stack); }

}  // namespace

at::Tensor record(Recorder& r, std::string_view name, std::vector<Arg> args, const at::Tensor& like) {
  const Geometry g = geometry_of(like);
  return make_fake(g, graph::add_node(r.graph, name, std::move(args), {type_of(g)}, r.at)[0]);
}

void record_call(Recorder& r, const c10::OperatorHandle& op, Stack& stack) {
  const OperatorFacts& facts = facts_of(op);
  Call c{r, op, facts, stack, stack.size() - facts.kinds.size(), {}, {}, {}};
  check_allowed(c);
  if (facts.is_foreach) return decompose(c);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard below_us(c10::DispatchKeySet(
      {c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot, c10::DispatchKey::Functionalize}));
  if (record_literal(c)) return;
  convert_arguments(c);
  check_as_strided(c);
  check_no_mask(c);
  note_random(c);
  append_node(c);
}

}  // namespace braze::trace
