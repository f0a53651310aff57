// Strides: PyTorch's memory formats and its TensorIterator.
#include <algorithm>
#include <array>
#include <numeric>

#include "braze/graph/shape_rules/call.h"

namespace braze::graph::shape_rules {

constexpr std::array<std::size_t, 4> kChannelsLastOrder = {1, 3, 2, 0};

bool has_zero(const Sizes& sizes) {
  return std::ranges::any_of(sizes, [](const SymExpr& s) { return s.is_value(0); });
}

bool has_overlap(const TensorType& t) {
  return std::ranges::any_of(t.strides, [](const SymExpr& s) { return s.is_value(0); });
}

namespace {

bool is_small(const SymExpr& size) { return size.is_constant() && size.constant() < 2; }

}  // namespace

bool is_channels_last(Call& c, const TensorType& t) {
  if (t.dim() != 4) return false;
  SymExpr expected = 1;
  for (std::size_t d : kChannelsLastOrder) {
    if (c.is_one(t.sizes[d])) continue;
    if (!(t.strides[d] == expected)) return false;
    expected = expected * t.sizes[d];
  }
  return true;
}

bool is_dense(Call& c, const TensorType& t) {
  if (op::is_contiguous(t)) return true;
  if (t.dim() == 1) return is_small(t.sizes[0]) || t.strides[0].is_value(1);
  std::vector<std::size_t> perm(t.dim());
  std::iota(perm.begin(), perm.end(), 0);
  std::ranges::stable_sort(perm, [&](std::size_t a, std::size_t b) {
    if (is_small(t.sizes[a])) return false;
    if (is_small(t.sizes[b])) return true;
    return c.less(t.strides[a], t.strides[b]);
  });
  SymExpr required = 1;
  for (std::size_t d : perm) {
    if (is_small(t.sizes[d])) return true;
    if (!(t.strides[d] == required)) return false;
    required = required * t.sizes[d];
  }
  return true;
}

bool suggests_channels_last(Call& c, const TensorType& t) {
  if (t.dim() != 4 || t.strides[1].is_value(0)) return false;
  SymExpr min = 0;
  for (std::size_t d : kChannelsLastOrder) {
    if (t.sizes[d].is_value(0)) return false;
    if (!min.is_value(0) && c.less(t.strides[d], min)) return false;
    if (d == 0 && min == t.strides[1]) return false;
    min = is_small(t.sizes[d]) ? t.strides[d] : t.strides[d] * t.sizes[d];
  }
  return true;
}

Sizes channels_last_strides(const Sizes& sizes) {
  Sizes strides(4);
  SymExpr next = 1;
  for (std::size_t d : kChannelsLastOrder) {
    strides[d] = next;
    if (!sizes[d].is_value(0)) next = next * sizes[d];
  }
  return strides;
}

namespace {

/// Dimensions from the innermost outwards: PyTorch's stable insertion sort with ambiguous comparisons.
/// `compare(a, b)`: positive if dimension a belongs outside of b, negative if inside, 0 if it does not matter.
template <class Compare>
std::vector<std::size_t> sort_dimensions(std::size_t rank, Compare compare) {
  std::vector<std::size_t> perm(rank);
  for (std::size_t i = 0; i < rank; ++i) perm[i] = rank - 1 - i;
  for (std::size_t i = 1; i < rank; ++i) {
    std::size_t right = i;
    for (std::size_t left = i; left-- > 0;) {
      const int order = compare(perm[left], perm[right]);
      if (order < 0) break;
      if (order > 0) {
        std::swap(perm[left], perm[right]);
        right = left;
      }
    }
  }
  return perm;
}

int compare_strides(Call& c, const SymExpr& a, const SymExpr& b) {
  if (a.is_value(0) || b.is_value(0) || a == b) return 0;
  return c.less(a, b) ? -1 : 1;
}

bool is_larger(Call& c, const SymExpr& a, const SymExpr& b) { return !(a == b) && c.less(b, a); }

}  // namespace

Sizes dense_strides(Call& c, const TensorType& t) {
  const auto perm = sort_dimensions(t.dim(), [&](std::size_t a, std::size_t b) {
    if (const int order = compare_strides(c, t.strides[a], t.strides[b])) return order;
    const bool broadcast = t.strides[a].is_value(0) || t.strides[b].is_value(0);
    return !broadcast && is_larger(c, t.sizes[a], t.sizes[b]) ? 1 : 0;
  });
  Sizes strides(t.dim());
  SymExpr next = 1;
  for (std::size_t d : perm) {
    strides[d] = next;
    if (!is_small(t.sizes[d])) next = next * t.sizes[d];
  }
  return strides;
}

TensorType preserved(Call& c, const TensorType& t, DType dtype) {
  TensorType result = t;
  result.dtype = dtype;
  if (!is_dense(c, t)) result.strides = dense_strides(c, t);
  return result;
}

TensorType formatted(Call& c, const TensorType& t, std::size_t format) {
  const auto* f = std::get_if<MemoryFormat>(&c.args[format]);
  if (!f || *f == MemoryFormat::kPreserve) return preserved(c, t, t.dtype);
  TensorType result = like(t, t.sizes);
  if (*f == MemoryFormat::kContiguous) return result;
  if (c.require(*f == MemoryFormat::kChannelsLast && t.dim() == 4)) result.strides = channels_last_strides(t.sizes);
  return result;
}

TensorType suggested(Call& c, const TensorType& t, Sizes sizes) {
  TensorType result = like(t, std::move(sizes));
  if (t.dim() == 5 && !op::is_contiguous(t)) c.give_up();  // channels_last_3d
  if (suggests_channels_last(c, t) && c.require(result.dim() == 4))
    result.strides = channels_last_strides(result.sizes);
  return result;
}

Sizes broadcast(Call& c, const Sizes& a, const Sizes& b) {
  const Sizes& longer = a.size() >= b.size() ? a : b;
  const Sizes& shorter = a.size() >= b.size() ? b : a;
  Sizes result = longer;
  const std::size_t offset = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    SymExpr& size = result[offset + i];
    if (size == shorter[i] || c.is_one(shorter[i])) continue;
    if (c.is_one(size)) size = shorter[i];
    else c.require(c.equal(size, shorter[i]));
  }
  return result;
}

namespace {

/// One operand seen from the whole iteration space: stride 0 where it is broadcast.
Sizes spread(Call& c, const Operand& o, const Sizes& shape) {
  Sizes strides(shape.size());
  const std::size_t offset = shape.size() - o.sizes->size();
  for (std::size_t i = 0; i < o.sizes->size(); ++i) {
    const bool repeated = c.is_one((*o.sizes)[i]) && !c.is_one(shape[offset + i]);
    strides[offset + i] = repeated ? SymExpr(0) : (*o.strides)[i];
  }
  return strides;
}

std::vector<std::size_t> iteration_order(Call& c, std::span<const Operand> operands, const Sizes& shape) {
  std::vector<Sizes> strides;
  for (const Operand& o : operands) strides.push_back(spread(c, o, shape));
  return sort_dimensions(shape.size(), [&](std::size_t a, std::size_t b) {
    for (const Sizes& s : strides) {
      if (s[a].is_value(0) || s[b].is_value(0)) continue;
      if (const int order = compare_strides(c, s[a], s[b])) return order;
      if (is_larger(c, shape[a], shape[b])) return 1;
    }
    return 0;
  });
}

/// The strides if all operands have one shape and one known layout.
std::optional<Sizes> fast_strides(Call& c, std::span<const Operand> operands, const Sizes& shape) {
  bool contiguous = true, channels_last = true, dense = true, same = true;
  for (const Operand& o : operands) {
    const TensorType t{.dtype = DType::kFloat32, .sizes = *o.sizes, .strides = *o.strides, .device = {}};
    contiguous = contiguous && op::is_contiguous(t);
    if (contiguous) continue;  // the common case needs no more
  }
  if (contiguous) return op::contiguous_strides(shape);
  for (const Operand& o : operands) {
    const TensorType t{.dtype = DType::kFloat32, .sizes = *o.sizes, .strides = *o.strides, .device = {}};
    channels_last = channels_last && is_channels_last(c, t);
    dense = dense && is_dense(c, t);
    same = same && *o.strides == *operands[0].strides;
  }
  if (channels_last) return channels_last_strides(shape);
  if (dense && same) return *operands[0].strides;
  return std::nullopt;
}

}  // namespace

TensorType iterate(Call& c, std::span<const Operand> operands, DType dtype, Device device) {
  TensorType result{.dtype = dtype, .sizes = {}, .strides = {}, .device = device};
  bool same_shape = true;
  for (const Operand& o : operands) {
    same_shape = same_shape && *o.sizes == *operands[0].sizes;
    result.sizes = &o == operands.data() ? *o.sizes : broadcast(c, result.sizes, *o.sizes);
  }
  if (!c.sure) return result;
  if (same_shape) {
    if (auto strides = fast_strides(c, operands, result.sizes)) {
      result.strides = std::move(*strides);
      return result;
    }
  }
  const auto perm = iteration_order(c, operands, result.sizes);
  bool inverted = true;
  for (std::size_t i = 0; i < perm.size(); ++i) inverted = inverted && perm[i] == perm.size() - 1 - i;
  if (inverted) {
    result.strides = op::contiguous_strides(result.sizes);
    return result;
  }
  result.strides.resize(perm.size());
  SymExpr next = 1;
  for (std::size_t d : perm) {
    result.strides[d] = next;
    next = next * result.sizes[d];
  }
  return result;
}

}  // namespace braze::graph::shape_rules
