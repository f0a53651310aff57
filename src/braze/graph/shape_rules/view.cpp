// Views: sizes and strides of the result; the storage is the operand's.
#include <algorithm>

#include "braze/graph/shape_rules/call.h"

namespace braze::graph::shape_rules {
namespace {

/// One size may be -1: what is left over.
Sizes infer_size(Call& c, Sizes sizes, const SymExpr& numel) {
  SymExpr known = 1;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].is_value(-1)) {
      c.require(!open);
      open = i;
    } else {
      known = known * sizes[i];
    }
  }
  if (!open) {
    c.require(c.equal(known, numel));
    return sizes;
  }
  if (!c.require(!known.is_value(0) && !(known.is_constant() && known.constant() < 0))) return sizes;
  sizes[*open] = floor_div(numel, known);
  c.require(sizes[*open] * known == numel);
  return sizes;
}

Sizes empty_view_strides(const Sizes& sizes) {
  Sizes strides(sizes.size());
  for (std::size_t i = sizes.size(); i-- > 0;)
    strides[i] = i + 1 == sizes.size() ? SymExpr(1) : max(sizes[i + 1], 1) * strides[i + 1];
  return strides;
}

/// at::detail::computeStride: dimensions that lie one in the other form chunks, each of which is split anew.
std::optional<Sizes> view_strides(Call& c, const TensorType& old, const Sizes& sizes) {
  if (old.sizes.empty()) return Sizes(sizes.size(), SymExpr(1));
  if (has_zero(old.sizes)) return old.sizes == sizes ? old.strides : empty_view_strides(sizes);
  Sizes strides(sizes.size());
  std::size_t view = sizes.size();
  SymExpr base = old.strides.back(), chunk = 1, viewed = 1;
  for (std::size_t d = old.dim(); d-- > 0;) {
    chunk = chunk * old.sizes[d];
    if (d > 0 && (c.is_one(old.sizes[d - 1]) || old.strides[d - 1] == chunk * base)) continue;
    while (view > 0 && (c.less(viewed, chunk) || c.is_one(sizes[view - 1]))) {
      --view;
      strides[view] = viewed * base;
      viewed = viewed * sizes[view];
    }
    if (!c.equal(viewed, chunk)) return std::nullopt;
    if (d > 0) {
      base = old.strides[d - 1];
      chunk = viewed = 1;
    }
  }
  if (view != 0) return std::nullopt;
  return strides;
}

bool view_as(Call& c, const TensorType& self, Sizes requested) {
  TensorType t = self;
  t.sizes = infer_size(c, std::move(requested), self.numel());
  if (!c.sure) return false;
  auto strides = view_strides(c, self, t.sizes);
  if (!c.require(strides.has_value())) return false;
  t.strides = std::move(*strides);
  return c.give(std::move(t));
}

void erase(TensorType& t, std::size_t d) {
  t.sizes.erase(t.sizes.begin() + static_cast<std::ptrdiff_t>(d));
  t.strides.erase(t.strides.begin() + static_cast<std::ptrdiff_t>(d));
}

bool permute(Call& c, const TensorType& self, const std::vector<std::int64_t>& dims) {
  TensorType t = self;
  std::vector<bool> seen(self.dim());
  if (!c.require(dims.size() == self.dim())) return false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t d = c.wrap(dims[i], self.dim());
    if (!c.require(!seen[d])) return false;
    seen[d] = true;
    t.sizes[i] = self.sizes[d];
    t.strides[i] = self.strides[d];
  }
  return c.give(std::move(t));
}

bool transpose(Call& c, const TensorType& self, std::int64_t a, std::int64_t b) {
  TensorType t = self;
  const std::size_t x = c.wrap(a, self.dim()), y = c.wrap(b, self.dim());
  if (!c.sure) return false;
  if (self.dim()) {
    std::swap(t.sizes[x], t.sizes[y]);
    std::swap(t.strides[x], t.strides[y]);
  }
  return c.give(std::move(t));
}

bool expand(Call& c, const TensorType& self, const Sizes& sizes) {
  if (!c.require(sizes.size() >= self.dim())) return false;
  TensorType t = self;
  t.sizes = sizes;
  t.strides.assign(sizes.size(), 0);
  const std::size_t offset = sizes.size() - self.dim();
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (i < offset) {
      if (!c.require(!sizes[i].is_value(-1))) return false;
      // a new dimension lies as one of size 1 would
      const SymExpr outer = i + 1 < sizes.size() ? t.sizes[i + 1] * t.strides[i + 1] : SymExpr(1);
      t.strides[i] = self.dim() > 0 && c.is_one(sizes[i]) ? outer : SymExpr(0);
      continue;
    }
    const SymExpr& old = self.sizes[i - offset];
    if (sizes[i].is_value(-1)) t.sizes[i] = old;
    t.strides[i] = self.strides[i - offset];
    if (t.sizes[i] == old) continue;
    if (!c.require(c.is_one(old))) return false;
    t.strides[i] = 0;
  }
  return c.give(std::move(t));
}

bool unsqueeze(Call& c, const TensorType& self, std::int64_t dim) {
  TensorType t = self;
  const std::size_t d = c.wrap(dim, self.dim() + 1);
  if (!c.sure) return false;
  const SymExpr stride = d < self.dim() ? self.sizes[d] * self.strides[d] : SymExpr(1);
  t.sizes.insert(t.sizes.begin() + static_cast<std::ptrdiff_t>(d), SymExpr(1));
  t.strides.insert(t.strides.begin() + static_cast<std::ptrdiff_t>(d), stride);
  return c.give(std::move(t));
}

bool squeeze(Call& c, const TensorType& self, const std::vector<bool>& chosen) {
  TensorType t = self;
  for (std::size_t d = self.dim(); d-- > 0;)
    if (chosen[d] && c.is_one(self.sizes[d])) erase(t, d);
  return c.give(std::move(t));
}

bool squeeze_dims(Call& c, const TensorType& self, const std::vector<std::int64_t>& dims) {
  std::vector<bool> chosen(std::max<std::size_t>(self.dim(), 1));
  for (std::int64_t d : dims) chosen[c.wrap(d, self.dim())] = true;
  return c.sure && squeeze(c, self, chosen);
}

/// A slice bound within [0, size], as PyTorch clamps it.
SymExpr clamp_bound(Call& c, const Arg& a, const SymExpr& size, const SymExpr& missing) {
  const auto* e = std::get_if<SymExpr>(&a);
  if (!e) return missing;
  if (*e == size || e->is_value(INT64_MAX)) return *e == size ? *e : size;
  if (e->is_constant() && size.is_constant()) {
    std::int64_t v = e->constant();
    if (v < 0) v += size.constant();
    return std::clamp<std::int64_t>(v, 0, size.constant());
  }
  if (e->is_value(0) || e->is_value(1)) return *e;  // a symbolic size is at least 2
  c.give_up();
  return 0;
}

bool slice(Call& c, const TensorType& self) {
  const std::size_t d = c.wrap(c.integer(1), self.dim());
  const std::int64_t step = c.integer(4);
  if (!c.require(self.dim() > 0 && step > 0)) return false;
  const SymExpr& size = self.sizes[d];
  const SymExpr start = clamp_bound(c, c.args[2], size, 0), end = clamp_bound(c, c.args[3], size, size);
  TensorType t = self;
  SymExpr length = end - start;
  if (length.is_constant() && length.constant() < 0) length = 0;
  t.sizes[d] = floor_div(length + SymExpr(step - 1), step);
  t.strides[d] = self.strides[d] * SymExpr(step);
  return c.give(std::move(t));
}

bool select(Call& c, const TensorType& self) {
  const std::size_t d = c.wrap(c.integer(1), self.dim());
  if (!c.require(self.dim() > 0)) return false;
  const SymExpr index = c.expr(2), &size = self.sizes[d];
  const bool in_range = index.is_constant() &&
                        (size.is_constant() ? index.constant() < size.constant() && index.constant() >= -size.constant()
                                            : index.constant() >= -2 && index.constant() < 2);
  if (!c.require(in_range)) return false;
  TensorType t = self;
  erase(t, d);
  return c.give(std::move(t));
}

bool diagonal(Call& c, const TensorType& self) {
  const std::int64_t offset = c.integer(1);
  const std::size_t a = c.wrap(c.integer(2), self.dim()), b = c.wrap(c.integer(3), self.dim());
  if (!c.require(self.dim() >= 2 && a != b && self.sizes[a].is_constant() && self.sizes[b].is_constant())) return false;
  const std::int64_t rows = self.sizes[a].constant() + std::min<std::int64_t>(offset, 0);
  const std::int64_t columns = self.sizes[b].constant() - std::max<std::int64_t>(offset, 0);
  const SymExpr stride = self.strides[a] + self.strides[b];
  TensorType t = self;
  erase(t, std::max(a, b));
  erase(t, std::min(a, b));
  t.sizes.push_back(std::max<std::int64_t>(0, std::min(rows, columns)));
  t.strides.push_back(stride);
  return c.give(std::move(t));
}

bool unfold(Call& c, const TensorType& self) {
  const std::size_t d = c.wrap(c.integer(1), self.dim());
  const std::int64_t size = c.integer(2), step = c.integer(3);
  if (!c.require(self.dim() > 0 && self.sizes[d].is_constant() && step > 0 && size >= 0 &&
                 size <= self.sizes[d].constant()))
    return false;
  TensorType t = self;
  t.sizes.push_back(size);
  t.strides.push_back(self.strides[d]);
  t.sizes[d] = (self.sizes[d].constant() - size) / step + 1;
  t.strides[d] = self.strides[d] * SymExpr(step);
  return c.give(std::move(t));
}

bool split(Call& c, const TensorType& self, const Sizes& parts, std::size_t d) {
  for (const SymExpr& part : parts) {
    TensorType t = self;
    t.sizes[d] = part;
    c.give(std::move(t));
  }
  return true;
}

bool split_evenly(Call& c, const TensorType& self, std::int64_t size, std::size_t d) {
  if (!c.require(self.dim() > 0 && self.sizes[d].is_constant() && size > 0)) return false;
  const std::int64_t total = self.sizes[d].constant();
  Sizes parts;
  for (std::int64_t at = 0; at < total; at += size) parts.push_back(std::min(size, total - at));
  if (parts.empty()) parts.push_back(0);
  return split(c, self, parts, d);
}

bool chunk(Call& c, const TensorType& self) {
  const std::int64_t n = c.integer(1);
  const std::size_t d = c.wrap(c.integer(2), self.dim());
  if (!c.require(self.dim() > 0 && n > 0 && self.sizes[d].is_constant() && self.sizes[d].constant() > 0)) return false;
  return split_evenly(c, self, (self.sizes[d].constant() + n - 1) / n, d);
}

bool split_with_sizes(Call& c, const TensorType& self) {
  const std::size_t d = c.wrap(c.integer(2), self.dim());
  if (!c.require(self.dim() > 0)) return false;
  SymExpr total = 0;
  for (const SymExpr& part : c.exprs(1)) total = total + part;
  c.require(total == self.sizes[d]);
  return split(c, self, c.exprs(1), d);
}

bool unbind(Call& c, const TensorType& self) {
  const std::size_t d = c.wrap(c.integer(1), self.dim());
  if (!c.require(self.dim() > 0 && self.sizes[d].is_constant())) return false;
  TensorType t = self;
  const std::int64_t n = self.sizes[d].constant();
  erase(t, d);
  for (std::int64_t i = 0; i < n; ++i) c.give(t);
  return true;
}

bool view_dtype(Call& c, const TensorType& self) {
  TensorType t = self;
  t.dtype = c.dtype(1).value_or(self.dtype);
  return c.require(op::bytes(t.dtype) == op::bytes(self.dtype)) && c.give(std::move(t));
}

bool view_as_real(Call& c, const TensorType& self) {
  TensorType t = self;
  t.dtype = self.dtype == DType::kComplex128 ? DType::kFloat64 : DType::kFloat32;
  for (SymExpr& s : t.strides) s = s * 2;
  t.sizes.push_back(2);
  t.strides.push_back(1);
  return c.require(op::is_complex(self.dtype)) && c.give(std::move(t));
}

bool view_as_complex(Call& c, const TensorType& self) {
  c.require(self.dtype == DType::kFloat32 || self.dtype == DType::kFloat64);
  if (!c.require(self.dim() > 0 && self.sizes.back().is_value(2) && self.strides.back().is_value(1))) return false;
  TensorType t = self;
  t.dtype = self.dtype == DType::kFloat64 ? DType::kComplex128 : DType::kComplex64;
  erase(t, self.dim() - 1);
  for (SymExpr& s : t.strides) {
    c.require(mod(s, 2).is_value(0));
    s = floor_div(s, 2);
  }
  return c.give(std::move(t));
}

/// Is every element of t, at the offset of argument 3, an element of the dense tensor self?
bool lies_within(Call& c, const TensorType& self, const TensorType& t) {
  if (t.sizes.size() != t.strides.size() || !op::is_contiguous(self)) return false;
  SymExpr last = c.is_none(3) ? SymExpr(0) : c.expr(3);
  if (!last.is_value(0)) return false;  // it counts from the storage's start, which self need not be at
  for (std::size_t i = 0; i < t.dim(); ++i) last = last + max(t.sizes[i] - 1, 0) * t.strides[i];
  const SymExpr numel = self.numel();
  return last.is_constant() && numel.is_constant() && last.constant() < numel.constant();
}

}  // namespace

bool view(Call& c) {
  const TensorType& self = c.tensor(0);
  switch (c.op) {
    case Op::view:
    case Op::_unsafe_view:
    case Op::reshape: return view_as(c, self, c.exprs(1));
    case Op::alias:
    case Op::detach:
    case Op::lift_fresh: return c.give(self);
    case Op::t:
      if (self.dim() < 2) return c.give(self);
      return c.require(self.dim() == 2) && transpose(c, self, 0, 1);
    case Op::transpose_int: return transpose(c, self, c.integer(1), c.integer(2));
    case Op::permute: return permute(c, self, c.integers(1));
    case Op::expand: return expand(c, self, c.exprs(1));
    case Op::unsqueeze: return unsqueeze(c, self, c.integer(1));
    case Op::squeeze: return squeeze(c, self, std::vector<bool>(self.dim(), true));
    case Op::squeeze_dim:
    case Op::squeeze_dims: return squeeze_dims(c, self, c.integers(1));
    case Op::slice_Tensor: return slice(c, self);
    case Op::select_int: return select(c, self);
    case Op::as_strided: {
      TensorType t = self;
      t.sizes = c.exprs(1);
      t.strides = c.exprs(2);
      return c.require(lies_within(c, self, t)) && c.give(std::move(t));
    }
    case Op::diagonal: return diagonal(c, self);
    case Op::unfold: return unfold(c, self);
    case Op::view_dtype: return view_dtype(c, self);
    case Op::split_Tensor: return split_evenly(c, self, c.integer(1), c.wrap(c.integer(2), self.dim()));
    case Op::split_with_sizes: return split_with_sizes(c, self);
    case Op::unbind_int: return unbind(c, self);
    case Op::chunk: return chunk(c, self);
    case Op::view_as_real: return view_as_real(c, self);
    case Op::view_as_complex: return view_as_complex(c, self);
    default: return c.give_up();
  }
}

}  // namespace braze::graph::shape_rules
