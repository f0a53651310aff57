// Normalisation, softmax and losses.
#include <algorithm>

#include "braze/graph/shape_rules/call.h"

namespace braze::graph::shape_rules {
namespace {

bool is_cpu(const TensorType& t) { return t.device.kind == Device::Kind::kCpu; }

/// Element type of the saved statistics of a normalisation of x with parameters at the given positions.
DType statistics_dtype(Call& c, const TensorType& x, std::initializer_list<std::size_t> parameters) {
  DType result = x.dtype;
  c.require(op::is_floating(x.dtype));
  for (std::size_t i : parameters) {
    const TensorType* p = c.maybe_tensor(i);
    if (!p || p->dtype == x.dtype) continue;
    c.require(is_cpu(x) && op::is_half(x.dtype) && p->dtype == DType::kFloat32);  // what eager's kernels accept
    result = DType::kFloat32;
  }
  return !is_cpu(x) && op::is_half(x.dtype) ? DType::kFloat32 : result;
}

/// Number of leading dimensions that are not normalised.
std::size_t outer_rank(Call& c, const TensorType& x, const Sizes& normalized) {
  if (!c.require(!normalized.empty() && normalized.size() <= x.dim())) return 0;
  const std::size_t outer = x.dim() - normalized.size();
  for (std::size_t i = 0; i < normalized.size(); ++i) c.require(c.equal(x.sizes[outer + i], normalized[i]));
  return outer;
}

bool layer_norm(Call& c) {
  const TensorType& x = c.tensor(0);
  const std::size_t outer = outer_rank(c, x, c.exprs(1));
  for (std::size_t i : {2, 3})
    if (const TensorType* p = c.maybe_tensor(i)) c.require(c.equal(p->sizes, c.exprs(1)));
  Sizes statistics = x.sizes;
  std::fill(statistics.begin() + static_cast<std::ptrdiff_t>(outer), statistics.end(), SymExpr(1));
  const TensorType moments = like(x, std::move(statistics), statistics_dtype(c, x, {2, 3}));
  return c.give(like(x, x.sizes)) && c.give(moments) && c.give(moments);
}

/// The gradients of a parameter: its type if asked for, else undefined.
void give_gradient(Call& c, bool wanted, const TensorType& t) {
  if (wanted) c.give(like(t, t.sizes));
  else c.give_undefined();
}

bool layer_norm_backward(Call& c) {
  const TensorType& x = c.tensor(1);
  c.require(op::is_floating(x.dtype) && c.tensor(0).dtype == x.dtype);
  give_gradient(c, c.mask(7, 0), x);
  for (std::size_t i : {5, 6}) {
    const bool wanted = c.mask(7, i - 4);
    give_gradient(c, wanted, wanted ? c.tensor(i) : x);
  }
  return true;
}

bool group_norm(Call& c) {
  const TensorType& x = c.tensor(0);
  c.require(op::is_contiguous(x) && x.dim() >= 2);
  const TensorType moments = like(x, {c.expr(3), c.expr(6)}, statistics_dtype(c, x, {1, 2}));
  return c.give(like(x, x.sizes)) && c.give(moments) && c.give(moments);
}

bool group_norm_backward(Call& c) {
  const TensorType& x = c.tensor(1);
  c.require(op::is_contiguous(x) && op::is_floating(x.dtype) && c.tensor(0).dtype == x.dtype &&
            op::is_contiguous(c.tensor(0)));
  give_gradient(c, c.mask(9, 0), x);
  const bool wanted = c.mask(9, 1) || c.mask(9, 2);
  const TensorType parameter = like(x, {c.expr(6)}, wanted && c.maybe_tensor(4) ? c.tensor(4).dtype : x.dtype);
  give_gradient(c, c.mask(9, 1), parameter);
  give_gradient(c, c.mask(9, 2), parameter);
  return true;
}

bool softmax(Call& c) {
  const TensorType& x = c.tensor(0);
  c.wrap(c.integer(1), x.dim());
  c.require(op::is_floating(x.dtype));
  const bool to_float = c.flag(2);
  c.require(!to_float || x.dtype == DType::kFloat16);
  return c.give(like(x, x.sizes, to_float ? DType::kFloat32 : x.dtype));
}

bool softmax_backward(Call& c) {
  const TensorType& grad = c.tensor(0);
  c.wrap(c.integer(2), grad.dim());
  return c.give(like(grad, grad.sizes, c.dtype(3).value_or(grad.dtype)));
}

bool safe_softmax(Call& c) {
  const TensorType& x = c.tensor(0);
  c.wrap(c.integer(1), x.dim());
  c.require(op::is_floating(x.dtype) && op::is_contiguous(x));
  return c.give(like(x, x.sizes, c.dtype(2).value_or(x.dtype)));
}

constexpr std::int64_t kNoReduction = 0;

bool nll_loss(Call& c) {
  const TensorType &x = c.tensor(0), &target = c.tensor(1);
  if (!c.require((x.dim() == 1 || x.dim() == 2) && op::is_floating(x.dtype))) return false;
  c.require(target.dim() + 1 == x.dim() && (target.dtype == DType::kInt64 || target.dtype == DType::kUInt8));
  if (x.dim() == 2) c.require(target.dim() == 1 && c.equal(x.sizes[0], target.sizes[0]));
  const bool keeps = c.integer(3) == kNoReduction && x.dim() == 2;
  c.give(like(x, keeps ? Sizes{x.sizes[0]} : Sizes{}));
  return c.give(like(x, {}));
}

/// A pointwise loss of two tensors of one type, then a reduction.
bool pair_loss(Call& c, std::size_t reduction) {
  const TensorType &a = c.tensor(0), &b = c.tensor(1);
  c.require(a.dtype == b.dtype && op::is_floating(a.dtype) && a.device == b.device);
  if (!c.sure) return false;
  if (c.integer(reduction) != kNoReduction) return broadcast(c, a.sizes, b.sizes), c.give(like(a, {}));
  const Operand operands[] = {{&a.sizes, &a.strides}, {&b.sizes, &b.strides}};
  return c.give(iterate(c, operands, a.dtype, a.device));
}

bool pair_loss_backward(Call& c) {
  const TensorType &a = c.tensor(1), &b = c.tensor(2);
  c.require(a.dtype == b.dtype && a.dtype == c.tensor(0).dtype && op::is_floating(a.dtype));
  c.require(c.equal(broadcast(c, a.sizes, b.sizes), a.sizes));
  return c.give(like(a, a.sizes));
}

/// Only the plain case: like shapes, dense, no weights.
bool cross_entropy(Call& c, std::size_t reduction) {
  const TensorType &a = c.tensor(0), &b = c.tensor(1);
  c.require(a.sizes == b.sizes && a.dtype == b.dtype && op::is_floating(a.dtype) && op::is_contiguous(a) &&
            op::is_contiguous(b));
  for (std::size_t i = 2; i < reduction; ++i) c.require(c.is_none(i));
  return c.give(like(a, c.integer(reduction) == kNoReduction ? a.sizes : Sizes{}));
}

bool rms_norm(Call& c) {
  const TensorType& x = c.tensor(0);
  const std::size_t outer = outer_rank(c, x, c.exprs(1));
  c.require(op::is_contiguous(x) && (x.dtype == DType::kFloat32 || x.dtype == DType::kFloat64));
  if (const TensorType* w = c.maybe_tensor(2)) c.require(w->dtype == x.dtype && c.equal(w->sizes, c.exprs(1)));
  Sizes statistics = x.sizes;
  std::fill(statistics.begin() + static_cast<std::ptrdiff_t>(outer), statistics.end(), SymExpr(1));
  return c.give(like(x, x.sizes)) && c.give(like(x, std::move(statistics)));
}

}  // namespace

bool norm(Call& c) {
  switch (c.op) {
    case Op::native_layer_norm: return layer_norm(c);
    case Op::native_layer_norm_backward: return layer_norm_backward(c);
    case Op::native_group_norm: return group_norm(c);
    case Op::native_group_norm_backward: return group_norm_backward(c);
    case Op::_softmax:
    case Op::_log_softmax: return softmax(c);
    case Op::_softmax_backward_data:
    case Op::_log_softmax_backward_data: return softmax_backward(c);
    case Op::_safe_softmax: return safe_softmax(c);
    case Op::nll_loss_forward: return nll_loss(c);
    case Op::nll_loss_backward: return c.give(like(c.tensor(1), c.tensor(1).sizes));
    case Op::mse_loss:
    case Op::smooth_l1_loss: return pair_loss(c, 2);
    case Op::mse_loss_backward:
    case Op::smooth_l1_loss_backward: return pair_loss_backward(c);
    case Op::binary_cross_entropy: return cross_entropy(c, 3);
    case Op::binary_cross_entropy_with_logits: return cross_entropy(c, 4);
    case Op::_fused_rms_norm: return rms_norm(c);
    default: return c.give_up();
  }
}

}  // namespace braze::graph::shape_rules
