// One operator call becomes one node. Types come from PyTorch's meta kernel on twins of the operands.
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
#include "braze/trace/fake_tensor.h"
#include "braze/trace/operator_facts.h"

namespace braze::trace {

using aten::ArgKind;
using graph::Arg;
using graph::ValueId;
using torch::jit::Stack;

namespace {

/// An operand, and the meta tensor that stands for it in the meta kernel.
struct Operand {
  at::Tensor fake, twin;
};

struct Call {
  Recorder& r;
  const c10::OperatorHandle& op;
  const OperatorFacts& facts;
  Stack& stack;
  std::size_t base;  ///< of the arguments in the stack
  std::vector<Arg> args;
  std::vector<Operand> operands;
  std::optional<at::Device> device;  ///< where results live
};

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

Arg operand(Call& c, at::Tensor& t) {
  if (!t.defined()) return ValueId();
  if (at::functionalization::impl::isFunctionalTensor(t)) {
    at::functionalization::impl::sync(t);
    t = at::functionalization::impl::from_functional_tensor(t);
    return operand(c, t);
  }
  const FakeTensorImpl* fake = as_fake(t);
  if (!fake && !is_number(t)) c.r.fail("a tensor that is no input of the capture", t);
  if (!fake && t.unsafeGetTensorImpl()->is_wrapped_number()) return aten::to_arg(t.item());
  if (fake) note_device(c, t);
  const at::Tensor original = t;
  const Arg arg = fake ? Arg(fake->value()) : scalar_tensor(c.r, t);
  for (const Operand& o : c.operands)
    if (o.fake.is_same(original)) return t = o.twin, arg;
  t = meta_twin(original);
  c.operands.push_back({original, t});
  return arg;
}

ValueId list_element(Call& c, at::Tensor& t) {
  const Arg arg = operand(c, t);
  const auto* id = std::get_if<ValueId>(&arg);
  if (id == nullptr) c.r.fail(support::format("{}: a number in a list of tensors", c.facts.name));
  return *id;
}

Arg tensor_list(Call& c, c10::IValue& v) {
  std::vector<ValueId> ids;
  c10::List<at::Tensor> twins;
  for (at::Tensor t : v.toTensorVector()) {
    ids.push_back(list_element(c, t));
    twins.push_back(t);
  }
  v = twins;
  return ids;
}

Arg optional_tensor_list(Call& c, c10::IValue& v) {
  std::vector<ValueId> ids;
  c10::List<std::optional<at::Tensor>> twins;
  for (const c10::IValue& element : v.toListRef()) {
    at::Tensor t = element.isNone() ? at::Tensor() : element.toTensor();
    ids.push_back(list_element(c, t));
    twins.push_back(t.defined() ? std::optional(t) : std::nullopt);
  }
  v = twins;
  return ids;
}

/// Converts an argument and replaces tensors and devices on the stack by meta ones.
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
    v = at::Device(at::kMeta);
  }
}

at::Device result_device(const Call& c) { return c.device.value_or(at::Device(at::kCPU)); }

/// A factory without a device argument would allocate: its meta kernel must be told.
void force_meta_device(Call& c) {
  if (!c.operands.empty()) return;
  for (std::size_t i = 0; i < c.facts.kinds.size(); ++i)
    if (c.facts.kinds[i] == ArgKind::kDevice) c.stack[c.base + i] = at::Device(at::kMeta);
}

/// The fake that a meta result is identical to, or whose storage it shares.
const Operand* alias_of(const Call& c, const at::Tensor& meta) {
  for (const Operand& o : c.operands)
    if (o.twin.unsafeGetTensorImpl()->unsafe_storage().is_alias_of(meta.unsafeGetTensorImpl()->unsafe_storage()))
      return &o;
  return nullptr;
}

Geometry geometry_of(const at::Tensor& meta, at::Device device) {
  return {meta.sizes().vec(), meta.strides().vec(), meta.storage_offset(), meta.scalar_type(), device};
}

void check_result(Call& c, const at::Tensor& t) {
  if (t.layout() != at::kStrided) c.r.fail(support::format("{}: a result that is not strided", c.facts.name));
  if (!aten::to_dtype(t.scalar_type()))
    c.r.fail(support::format("{}: a result of element type {}", c.facts.name, c10::toString(t.scalar_type())));
}

op::TensorType type_of(const Geometry& g) {
  return {*aten::to_dtype(g.dtype), aten::to_exprs(g.sizes), aten::to_exprs(g.strides), aten::to_device(g.device)};
}

std::vector<at::Tensor> tensors_of(const Call& c) {
  std::vector<at::Tensor> out;
  const std::size_t count = c.op.schema().returns().size();
  for (std::size_t i = c.stack.size() - count; i < c.stack.size(); ++i) {
    const c10::IValue& v = c.stack[i];
    if (v.isTensorList())
      for (const at::Tensor& t : v.toTensorVector()) out.push_back(t);
    else if (v.isTensor()) out.push_back(v.toTensor());
    else if (v.isNone()) out.emplace_back();
  }
  return out;
}

void put_results(Call& c, const std::vector<at::Tensor>& fakes) {
  std::size_t next = 0;
  const std::size_t count = c.op.schema().returns().size();
  for (std::size_t i = c.stack.size() - count; i < c.stack.size(); ++i) {
    c10::IValue& v = c.stack[i];
    if (v.isTensorList()) {
      c10::List<at::Tensor> list;
      for (std::size_t n = v.toTensorVector().size(); n > 0; --n) list.push_back(fakes[next++]);
      v = list;
    } else if (v.isTensor() || v.isNone()) {
      v = fakes[next++];
    }
  }
}

/// Results of a region without autograd leave it for a replay under grad mode too.
ValueId detached(Recorder& r, ValueId value, const op::TensorType& type) {
  if (at::GradMode::is_enabled() || !r.had_grad_mode || r.is_backward || op::is_integral(type.dtype)) return value;
  if (type.dtype == op::DType::kBool) return value;
  return graph::add_node(r.graph, "aten::detach", {value}, {type}, r.at)[0];
}

at::Tensor make_result(Call& c, const at::Tensor& meta, const Geometry& g, ValueId value) {
  value = detached(c.r, value, type_of(g));
  if (const Operand* o = alias_of(c, meta)) return make_fake(g, o->fake.unsafeGetTensorImpl()->unsafe_storage(), value);
  return make_fake(g, value);
}

void append_node(Call& c) {
  const std::vector<at::Tensor> metas = tensors_of(c);
  std::vector<Geometry> geometries(metas.size());
  std::vector<op::TensorType> types;
  for (std::size_t i = 0; i < metas.size(); ++i) {
    if (!metas[i].defined()) continue;
    check_result(c, metas[i]);
    geometries[i] = geometry_of(metas[i], result_device(c));
    types.push_back(type_of(geometries[i]));
  }
  const std::vector<ValueId> values =
      graph::add_node(c.r.graph, c.facts.name, std::move(c.args), std::move(types), c.r.at);
  graph::Node& node = c.r.graph.nodes.back();
  node.returns_list = c.facts.returns_list;
  std::vector<ValueId> results;
  std::vector<at::Tensor> fakes;
  for (std::size_t i = 0, next = 0; i < metas.size(); ++i) {
    results.push_back(metas[i].defined() ? values[next++] : ValueId());
  }
  node.results = results;
  for (std::size_t i = 0; i < metas.size(); ++i)
    fakes.push_back(metas[i].defined() ? make_result(c, metas[i], geometries[i], results[i]) : at::Tensor());
  put_results(c, fakes);
}

/// An operator that gives back its operand (lift_fresh on a fake): no node.
bool is_identity(Call& c) {
  const std::vector<at::Tensor> metas = tensors_of(c);
  std::vector<at::Tensor> fakes;
  for (const at::Tensor& m : metas) {
    for (const Operand& o : c.operands)
      if (m.is_same(o.twin)) fakes.push_back(o.fake);
  }
  if (metas.empty() || fakes.size() != metas.size()) return false;
  put_results(c, fakes);
  return true;
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
  const auto& storage = c.operands[0].fake.unsafeGetTensorImpl()->unsafe_storage();
  if (c.r.input_storages.contains(storage.unsafeGetStorageImpl())) c.r.fail("as_strided on an input");
}

void note_random(Call& c) {
  if (!c.facts.is_random) return;
  if (c.facts.dropout >= 0) {
    const auto* p = std::get_if<double>(&c.args[static_cast<std::size_t>(c.facts.dropout)]);
    if (p != nullptr && *p == 0) return;
  }
  c.r.draws_random = true;
}

/// torch.tensor(...) and its kin: a real tensor that the program has just made. Fresh on every call.
bool record_literal(Call& c) {
  if (c.facts.op != op::Op::lift_fresh) return false;
  const at::Tensor t = c.stack[c.base].toTensor();
  if (as_fake(t) || at::functionalization::impl::isFunctionalTensor(t)) return false;
  if (t.layout() != at::kStrided || !aten::to_dtype(t.scalar_type())) c.r.fail("a literal of an unknown type", t);
  const Geometry g = geometry_of(t, t.device());
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
  const Geometry g = geometry_of(like, like.device());
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
  note_random(c);
  force_meta_device(c);
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
  if (!is_identity(c)) append_node(c);
}

}  // namespace braze::trace
