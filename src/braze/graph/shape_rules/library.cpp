// Convolution, pooling, attention, batch norm: what libraries compute.
#include <algorithm>

#include "braze/graph/shape_rules/call.h"

namespace braze::graph::shape_rules {
namespace {

std::int64_t item(const std::vector<std::int64_t>& list, std::size_t i) {
  return list.empty() ? 0 : list[list.size() == 1 ? 0 : i];
}

SymExpr convolved(const SymExpr& size, std::int64_t kernel, std::int64_t pad, std::int64_t dilation,
                  std::int64_t stride) {
  return floor_div(size + SymExpr(2 * pad - dilation * (kernel - 1) - 1), stride) + 1;
}

bool convolution(Call& c) {
  const TensorType &x = c.tensor(0), &w = c.tensor(1);
  const auto stride = c.integers(3), pad = c.integers(4), dilation = c.integers(5), extra = c.integers(7);
  const bool transposed = c.flag(6);
  const std::int64_t groups = c.integer(8);
  if (!c.require(x.dim() == w.dim() && (x.dim() == 3 || x.dim() == 4) && x.dtype == w.dtype && x.device == w.device &&
                 groups > 0))
    return false;
  if (const TensorType* bias = c.maybe_tensor(2)) c.require(bias->dtype == x.dtype);
  c.require(op::is_floating(x.dtype) && !has_zero(x.sizes) && !has_zero(w.sizes));
  for (std::int64_t s : stride) c.require(s > 0);
  if (!c.sure) return false;
  c.require(c.equal(x.sizes[1], transposed ? w.sizes[0] : w.sizes[1] * SymExpr(groups)));
  Sizes sizes = {x.sizes[0], transposed ? w.sizes[1] * SymExpr(groups) : w.sizes[0]};
  for (std::size_t d = 2; d < x.dim(); ++d) {
    if (!c.require(w.sizes[d].is_constant())) return false;
    const std::int64_t k = w.sizes[d].constant(), s = item(stride, d - 2), p = item(pad, d - 2),
                       l = item(dilation, d - 2);
    sizes.push_back(transposed ? (x.sizes[d] - 1) * SymExpr(s) + SymExpr(l * (k - 1) + 1 + item(extra, d - 2) - 2 * p)
                               : convolved(x.sizes[d], k, p, l, s));
    c.require(!sizes[d].is_constant() || sizes[d].constant() > 0);
  }
  // The layout of the result is the library's choice unless everything is row-major.
  c.require(op::is_contiguous(x) && op::is_contiguous(w) && !suggests_channels_last(c, x) &&
            !suggests_channels_last(c, w));
  return c.give(like(x, std::move(sizes)));
}

bool convolution_backward(Call& c) {
  const TensorType &grad = c.tensor(0), &x = c.tensor(1), &w = c.tensor(2);
  for (const TensorType* t : {&grad, &x, &w})
    c.require(op::is_contiguous(*t) && !suggests_channels_last(c, *t) && t->dtype == x.dtype && !has_zero(t->sizes));
  c.require(op::is_floating(x.dtype) && (x.dim() == 3 || x.dim() == 4) && !c.flag(7));
  if (!c.sure) return false;
  const TensorType bias = like(x, {grad.sizes[1]});
  const TensorType* results[] = {&x, &w, &bias};
  for (std::size_t i = 0; i < 3; ++i) {
    if (c.mask(10, i)) c.give(like(*results[i], results[i]->sizes));
    else c.give_undefined();
  }
  return true;
}

bool batch_norm(Call& c) {
  const TensorType& x = c.tensor(0);
  const bool functional = c.op == Op::_native_batch_norm_legit_functional;
  const bool inference = c.op == Op::_native_batch_norm_legit_no_training;
  const std::size_t training_at = c.op == Op::_native_batch_norm_legit_no_stats ? 3 : 5;
  const bool training = !inference && c.flag(training_at);
  c.require(x.dim() >= 2 && op::is_contiguous(x) && op::is_floating(x.dtype) && x.device.kind == Device::Kind::kCpu);
  for (std::size_t i = 1; i < (training_at == 3 ? 3u : 5u); ++i)
    if (const TensorType* p = c.maybe_tensor(i)) c.require(p->dtype == x.dtype);
  if (!c.sure) return false;
  const TensorType moments = like(x, {training ? x.sizes[1] : SymExpr(0)});
  c.give(like(x, x.sizes));
  c.give(moments);
  c.give(moments);
  for (std::size_t i : {3, 4})
    if (functional) c.give(c.tensor(i));
  return true;
}

bool batch_norm_backward(Call& c) {
  const TensorType &grad = c.tensor(0), &x = c.tensor(1);
  c.require(op::is_contiguous(x) && op::is_contiguous(grad) && op::is_floating(x.dtype) && x.dim() >= 2 &&
            x.device.kind == Device::Kind::kCpu && grad.dtype == x.dtype);
  const TensorType* w = c.maybe_tensor(2);
  c.require(!w || w->dtype == x.dtype);
  if (!c.sure) return false;
  for (std::size_t i = 0; i < 3; ++i) {
    if (!c.mask(9, i)) c.give_undefined();
    else c.give(i == 0 ? like(x, x.sizes) : like(x, {x.sizes[1]}));
  }
  return true;
}

/// Size of a pooled dimension, as pooling_output_shape.
SymExpr pooled(Call& c, const SymExpr& size, std::int64_t k, std::int64_t pad, std::int64_t stride,
               std::int64_t dilation, bool ceil) {
  if (!c.require(size.is_constant() && stride > 0 && pad >= 0 && 2 * pad <= k)) return 1;
  const std::int64_t span = size.constant() + 2 * pad - dilation * (k - 1) - 1 + (ceil ? stride - 1 : 0);
  if (!c.require(span >= 0)) return 1;
  std::int64_t out = span / stride + 1;
  if (ceil && (out - 1) * stride >= size.constant() + pad) --out;
  return out;
}

struct Pool {
  std::vector<std::int64_t> kernel, stride, pad, dilation = {1};
  bool ceil = false;
};

Sizes pool_sizes(Call& c, const TensorType& x, const Pool& p) {
  Sizes sizes = x.sizes;
  for (std::size_t i = 0; i < 2; ++i) {
    SymExpr& size = sizes[x.dim() - 2 + i];
    const std::int64_t k = item(p.kernel, i), s = p.stride.empty() ? k : item(p.stride, i);
    size = pooled(c, size, k, item(p.pad, i), s, item(p.dilation, i), p.ceil);
  }
  return sizes;
}

bool pool(Call& c) {
  const TensorType& x = c.tensor(0);
  const bool is_max = c.op == Op::max_pool2d_with_indices;
  if (!c.require((x.dim() == 3 || x.dim() == 4) && op::is_floating(x.dtype) && !has_zero(x.sizes))) return false;
  Pool p{.kernel = c.integers(1), .stride = c.integers(2), .pad = c.integers(3), .ceil = c.flag(is_max ? 5 : 4)};
  if (is_max) p.dilation = c.integers(4);
  TensorType result = suggested(c, x, pool_sizes(c, x, p));
  if (x.dim() == 3) c.require(op::is_contiguous(x));
  c.give(result);
  result.dtype = DType::kInt64;
  if (is_max) c.give(std::move(result));
  return true;
}

/// The gradient of a pooling has the input's sizes.
bool like_input(Call& c, std::size_t input) {
  const TensorType& x = c.tensor(input);
  c.require(op::is_contiguous(x) && op::is_contiguous(c.tensor(0)) && c.tensor(0).dtype == x.dtype);
  return c.give(like(x, x.sizes));
}

bool resized(Call& c, const TensorType& x, const Sizes& last) {
  if (!c.require((x.dim() == 3 || x.dim() == 4) && last.size() == 2 && op::is_contiguous(x) &&
                 op::is_floating(x.dtype)))
    return false;
  Sizes sizes(x.sizes.begin(), x.sizes.end() - 2);
  sizes.insert(sizes.end(), last.begin(), last.end());
  c.require(!has_zero(sizes));
  return c.give(like(x, std::move(sizes)));
}

/// [b, h, l, d] laid out as [b, l, h, d].
TensorType heads_inside(const TensorType& t, const Sizes& s) {
  TensorType result = like(t, {s[0], s[2], s[1], s[3]});
  std::swap(result.sizes[1], result.sizes[2]);
  std::swap(result.strides[1], result.strides[2]);
  return result;
}

bool attention(Call& c) {
  const TensorType &q = c.tensor(0), &k = c.tensor(1), &v = c.tensor(2);
  for (const TensorType* t : {&q, &k, &v})
    c.require(t->dim() == 4 && t->dtype == q.dtype && t->device.kind == Device::Kind::kCpu);
  if (!c.sure || !c.require(op::is_floating(q.dtype) && !has_zero(q.sizes) && !has_zero(k.sizes))) return false;
  c.require(c.equal(k.sizes, v.sizes) && c.equal(q.sizes[3], k.sizes[3]) && c.equal(q.sizes[0], k.sizes[0]));
  c.give(preserved(c, q, q.dtype));
  TensorType logsumexp = like(q, {q.sizes[0], q.sizes[2], q.sizes[1]}, op::compute_type(q.dtype));
  std::swap(logsumexp.sizes[1], logsumexp.sizes[2]);
  std::swap(logsumexp.strides[1], logsumexp.strides[2]);
  return c.give(std::move(logsumexp));
}

bool attention_backward(Call& c) {
  for (std::size_t i : {1, 2, 3}) {
    const TensorType& t = c.tensor(i);
    if (!c.require(t.dim() == 4 && t.device.kind == Device::Kind::kCpu && !has_zero(t.sizes))) return false;
    c.give(heads_inside(t, t.sizes));
  }
  return true;
}

}  // namespace

bool library(Call& c) {
  switch (c.op) {
    case Op::convolution: return convolution(c);
    case Op::convolution_backward: return convolution_backward(c);
    case Op::native_batch_norm: c.require(!c.is_none(3) && !c.is_none(4)); return batch_norm(c);
    case Op::_native_batch_norm_legit_functional:
    case Op::_native_batch_norm_legit_no_stats:
    case Op::_native_batch_norm_legit_no_training: return batch_norm(c);
    case Op::native_batch_norm_backward: return batch_norm_backward(c);
    case Op::max_pool2d_with_indices:
    case Op::avg_pool2d: return pool(c);
    case Op::max_pool2d_with_indices_backward:
    case Op::avg_pool2d_backward:
    case Op::_adaptive_avg_pool2d_backward: return like_input(c, 1);
    case Op::_adaptive_avg_pool2d:
    case Op::upsample_nearest2d:
    case Op::upsample_bilinear2d: return resized(c, c.tensor(0), c.exprs(1));
    case Op::upsample_nearest2d_backward:
    case Op::upsample_bilinear2d_backward:
      c.require(op::is_contiguous(c.tensor(0)) && c.exprs(2).size() == 4);
      return c.give(like(c.tensor(0), c.exprs(2)));
    case Op::_scaled_dot_product_flash_attention_for_cpu: return attention(c);
    case Op::_scaled_dot_product_flash_attention_for_cpu_backward: return attention_backward(c);
    default: return c.give_up();
  }
}

}  // namespace braze::graph::shape_rules
