// Result types come from our shape rules where one is certain, else from PyTorch's meta kernel on twins of the
// operands.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "braze/aten/types.h"
#include "braze/graph/shape_rules.h"
#include "braze/support/text.h"
#include "braze/trace/call.h"

namespace braze::trace {

using aten::ArgKind;
using graph::ValueId;
using op::Op;

namespace {

/// A result before it has a value: where it lies, whose storage it shares.
struct Result {
  Geometry geometry;
  at::Tensor alias;  ///< the operand whose storage it shares
  bool is_defined = true;
};

/// Views that begin where their operand begins.
bool begins_at_operand(Op op) {
  switch (op) {
    case Op::view:
    case Op::_unsafe_view:
    case Op::alias:
    case Op::detach:
    case Op::t:
    case Op::transpose_int:
    case Op::permute:
    case Op::expand:
    case Op::unsqueeze:
    case Op::squeeze:
    case Op::squeeze_dim:
    case Op::squeeze_dims: return true;
    default: return false;
  }
}

Result result_of(const op::TensorType& t) {
  return {{aten::to_ints(t.sizes), aten::to_ints(t.strides), 0, aten::to_scalar_type(t.dtype),
           aten::to_c10_device(t.device)},
          {},
          true};
}

/// Nothing if no rule is certain.
std::optional<std::vector<Result>> from_rules(const Call& c) {
  if (c.facts.op == Op::kOther || !c.facts.returns_tensors) return std::nullopt;
  const bool is_view = op::info(c.facts.op).effect == op::Effect::view;
  if (is_view && !begins_at_operand(c.facts.op)) return std::nullopt;
  std::vector<std::optional<op::TensorType>> types;
  const auto dtype = aten::to_dtype(c10::get_default_dtype_as_scalartype());
  if (!dtype || !graph::infer_types(c.r.graph, c.facts.op, c.args, *dtype, types)) return std::nullopt;
  std::vector<Result> results;
  for (const auto& t : types) {
    Result& r = results.emplace_back(t ? result_of(*t) : Result{{}, {}, false});
    if (!is_view) continue;
    r.alias = c.operands[0];
    r.geometry.offset = r.alias.storage_offset();
  }
  return results;
}

/// An operand and the meta tensor that stands for it.
struct Twin {
  at::Tensor fake, meta;
};

/// What the CPU's kernel and not the meta kernel knows: the layout of a convolution's results is the choice of the
/// library that computes it, and batch norm in inference saves empty statistics. The kernel is asked with zeros.
bool is_known_by_kernel(const Call& c) {
  switch (c.facts.op) {
    case Op::convolution:
    case Op::convolution_backward:
    case Op::_native_batch_norm_legit_no_training:
    case Op::_native_batch_norm_legit_functional: break;
    default: return false;
  }
  return std::ranges::all_of(c.operands, [](const at::Tensor& t) { return !t.defined() || t.device().is_cpu(); });
}

at::Tensor zeros_like(const at::Tensor& t) {
  std::int64_t elements = 1;
  for (std::int64_t d = 0; d < t.dim(); ++d) elements += (t.size(d) - 1) * t.stride(d);
  if (t.numel() == 0) elements = 0;
  return at::zeros({elements}, at::TensorOptions(t.scalar_type())).as_strided(t.sizes(), t.strides(), 0);
}

class MetaKernel {
 public:
  explicit MetaKernel(Call& c) : c_(c), on_cpu_(is_known_by_kernel(c)) {}

  std::vector<Result> run() {
    if (!c_.facts.has_meta_kernel) c_.r.fail(support::format("{}: no meta kernel", c_.facts.name));
    for (std::size_t i = 0; i < c_.facts.kinds.size(); ++i) replace(c_.stack[c_.base + i], c_.facts.kinds[i]);
    c_.op.redispatchBoxed(c10::DispatchKeySet(on_cpu_ ? c10::DispatchKey::CPU : c10::DispatchKey::Meta), &c_.stack);
    std::vector<Result> results;
    for (std::size_t i = c_.base; i < c_.stack.size(); ++i) {
      const c10::IValue& v = c_.stack[i];
      if (v.isTensorList())
        for (const at::Tensor& t : v.toTensorVector()) results.push_back(result(t));
      else if (v.isTensor() || v.isNone()) results.push_back(result(v.isNone() ? at::Tensor() : v.toTensor()));
    }
    return results;
  }

 private:
  at::Tensor twin(const at::Tensor& t) {
    if (!t.defined()) return t;
    for (const Twin& known : twins_)
      if (known.fake.is_same(t)) return known.meta;
    twins_.push_back({t, on_cpu_ ? zeros_like(t) : meta_twin(t)});
    return twins_.back().meta;
  }

  void replace(c10::IValue& v, ArgKind kind) {
    if (kind == ArgKind::kDevice && (c_.operands.empty() || !v.isNone())) {
      v = at::Device(at::kMeta);
    } else if (v.isTensor()) {
      v = twin(v.toTensor());
    } else if (kind == ArgKind::kTensorList && !v.isNone()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& t : v.toTensorVector()) list.push_back(twin(t));
      v = list;
    } else if (kind == ArgKind::kOptionalTensorList && !v.isNone()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const c10::IValue& e : v.toListRef())
        list.push_back(e.isNone() ? std::nullopt : std::optional(twin(e.toTensor())));
      v = list;
    }
  }

  Result result(const at::Tensor& meta) const {
    if (!meta.defined()) return {{}, {}, false};
    if (meta.layout() != at::kStrided) c_.r.fail(support::format("{}: a result that is not strided", c_.facts.name));
    if (!aten::to_dtype(meta.scalar_type()))
      c_.r.fail(support::format("{}: a result of element type {}", c_.facts.name, c10::toString(meta.scalar_type())));
    Result r{geometry_of(meta), {}, true};
    r.geometry.device = c_.device.value_or(at::Device(at::kCPU));
    for (const Twin& t : twins_)
      if (t.meta.unsafeGetTensorImpl()->unsafe_storage().is_alias_of(meta.unsafeGetTensorImpl()->unsafe_storage()))
        r.alias = t.fake;
    return r;
  }

  Call& c_;
  bool on_cpu_;
  std::vector<Twin> twins_;
};

/// Results of a region without autograd leave it for a replay under grad mode too.
ValueId detached(Recorder& r, ValueId value, const op::TensorType& type) {
  const bool can_require_grad = op::is_floating(type.dtype) || op::is_complex(type.dtype);
  if (at::GradMode::is_enabled() || !r.had_grad_mode || r.is_backward || !can_require_grad) return value;
  return graph::add_node(r.graph, "aten::detach", {value}, {type}, r.at)[0];
}

std::vector<ValueId> add_node(Call& c, const std::vector<Result>& results) {
  std::vector<op::TensorType> types;
  for (const Result& r : results)
    if (r.is_defined) types.push_back(type_of(r.geometry));
  const auto values = graph::add_node(c.r.graph, c.facts.name, std::move(c.args), std::move(types), c.r.at);
  std::vector<ValueId> all;
  std::size_t next = 0;
  for (const Result& r : results) all.push_back(r.is_defined ? values[next++] : ValueId());
  graph::Node& node = c.r.graph.nodes.back();
  node.results = all;
  node.returns_list = c.facts.returns_list;
  return all;
}

at::Tensor make_result(Call& c, const Result& r, ValueId value) {
  if (!r.is_defined) return {};
  value = detached(c.r, value, type_of(r.geometry));
  if (!r.alias.defined()) return make_fake(r.geometry, value);
  return make_fake(r.geometry, r.alias.unsafeGetTensorImpl()->unsafe_storage(), value);
}

/// From the rules: the arguments are still on the stack.
void push_results(Call& c, const std::vector<at::Tensor>& fakes) {
  c.stack.erase(c.stack.begin() + static_cast<std::ptrdiff_t>(c.base), c.stack.end());
  if (c.facts.returns_list) c.stack.emplace_back(c10::List<at::Tensor>(fakes));
  else
    for (const at::Tensor& t : fakes) c.stack.emplace_back(t);
}

/// From a meta kernel: its results are there, numbers among them stay.
void replace_results(Call& c, const std::vector<at::Tensor>& fakes) {
  std::size_t next = 0;
  for (std::size_t i = c.base; i < c.stack.size(); ++i) {
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

/// Eager refuses the extremum of nothing; meta kernels give one.
void check_extremum(Call& c) {
  static const std::unordered_set<std::string_view> extrema = {
      "aten::max.dim", "aten::min.dim", "aten::mode", "aten::kthvalue", "aten::median.dim", "aten::nanmedian.dim"};
  if (!c.operands.empty() && c.operands[0].numel() == 0 && extrema.contains(c.facts.name))
    c.r.fail("an extremum over no elements");
}

/// The CPU kernel of roll keeps its operand's layout; PyTorch's meta kernel says row-major.
void check_layout(Call& c) {
  if (c.facts.name == "aten::roll" && !c.operands[0].is_contiguous())
    c.r.fail("an operand layout whose result layout is not known");
}

/// PyTorch's meta kernels of softmax take any dimension and dtype; its CPU kernels raise.
void check_softmax(Call& c) {
  static const std::unordered_set<std::string_view> unchecked = {"aten::_softmax", "aten::_log_softmax",
                                                                 "aten::_safe_softmax"};
  if (!unchecked.contains(c.facts.name)) return;
  const std::int64_t dim = std::get<graph::SymExpr>(c.args[1]).constant();
  const std::int64_t rank = std::max<std::int64_t>(c.operands[0].dim(), 1);
  if (dim < -rank || dim >= rank) c.r.fail("a dimension out of range");
  if (!c.operands[0].is_floating_point()) c.r.fail("a softmax of integers");
}

}  // namespace

void append_node(Call& c) {
  const auto known = from_rules(c);
  if (!known) {
    check_extremum(c);
    check_layout(c);
    check_softmax(c);
  }
  const std::vector<Result> results = known ? *known : MetaKernel(c).run();
  if (results.empty() && !c.op.schema().returns().empty()) return;  // plain numbers, facts of the types
  const std::vector<ValueId> values = add_node(c, results);
  std::vector<at::Tensor> fakes;
  for (std::size_t i = 0; i < results.size(); ++i) fakes.push_back(make_result(c, results[i], values[i]));
  known ? push_results(c, fakes) : replace_results(c, fakes);
}

Geometry geometry_of(const at::Tensor& t) {
  return {t.sizes().vec(), t.strides().vec(), t.storage_offset(), t.scalar_type(), t.device()};
}

op::TensorType type_of(const Geometry& g) {
  return {*aten::to_dtype(g.dtype), aten::to_exprs(g.sizes), aten::to_exprs(g.strides), aten::to_device(g.device)};
}

}  // namespace braze::trace
