// Gathers, scatters and rearrangements.
#include <algorithm>
#include <numeric>

#include "braze/graph/shape_rules/call.h"

namespace braze::graph::shape_rules {
namespace {

bool is_index(const TensorType& t) { return t.dtype == DType::kInt64 || t.dtype == DType::kInt32; }

bool embedding(Call& c) {
  const TensorType &weight = c.tensor(0), &indices = c.tensor(1);
  if (!c.require(weight.dim() == 2 && is_index(indices))) return false;
  Sizes sizes = indices.sizes;
  sizes.push_back(weight.sizes[1]);
  return c.give(like(weight, std::move(sizes)));
}

struct Indexed {
  std::vector<std::optional<TensorType>> indices;  ///< one per dimension of self; nullopt: not indexed
  Sizes shape;                                     ///< the indices' common shape
};

std::optional<Indexed> read_indices(Call& c, const TensorType& self) {
  Indexed result;
  for (ValueId v : c.list(1)) {
    if (v.is_none()) {
      result.indices.push_back(std::nullopt);
      continue;
    }
    const TensorType& t = c.g.type(v);
    if (!c.require(is_index(t))) return std::nullopt;  // a mask gives sizes that depend on values
    result.shape = broadcast(c, result.shape, t.sizes);
    result.indices.push_back(t);
  }
  if (!c.require(result.indices.size() <= self.dim())) return std::nullopt;
  result.indices.resize(self.dim());
  return result;
}

/// An index tensor as an operand over the result's space: broadcast among the indices, then 1s for other dimensions.
TensorType spread_index(const TensorType& t, const Sizes& shape, std::size_t before, std::size_t after) {
  TensorType r = t;
  r.sizes = shape;
  r.strides.assign(shape.size(), 0);
  const std::size_t offset = shape.size() - t.dim();
  for (std::size_t i = 0; i < t.dim(); ++i)
    if (t.sizes[i] == shape[offset + i]) r.strides[offset + i] = t.strides[i];
  const auto pad = [&](bool front, std::size_t n) {
    r.sizes.insert(front ? r.sizes.begin() : r.sizes.end(), n, SymExpr(1));
    r.strides.insert(front ? r.strides.begin() : r.strides.end(), n, SymExpr(0));
  };
  pad(true, before);
  pad(false, after);
  return r;
}

/// self[..., indices, ...]: adjacent indices stay where they are, others go to the front.
bool index_tensor(Call& c) {
  const TensorType& self = c.tensor(0);
  auto read = read_indices(c, self);
  if (!read || !c.sure) return false;
  auto& indices = read->indices;
  std::vector<std::size_t> order(self.dim());
  std::iota(order.begin(), order.end(), 0);
  const auto is_indexed = [&](std::size_t d) { return indices[d].has_value(); };
  const auto first = std::ranges::find_if(order, is_indexed);
  const auto last = std::find_if(order.rbegin(), order.rend(), is_indexed).base();
  if (!c.require(first != order.end())) return false;
  if (!std::all_of(first, last, is_indexed)) std::ranges::stable_partition(order, is_indexed);
  const auto begin = static_cast<std::size_t>(std::ranges::find_if(order, is_indexed) - order.begin());
  const auto count = static_cast<std::size_t>(std::ranges::count_if(order, is_indexed));
  for (std::size_t d : order) c.require(!is_indexed(d) || !self.sizes[d].is_value(0));

  TensorType source = self;
  source.sizes.clear();
  source.strides.clear();
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == begin) {
      source.sizes.insert(source.sizes.end(), read->shape.begin(), read->shape.end());
      source.strides.insert(source.strides.end(), read->shape.size(), SymExpr(0));
    }
    if (i >= begin && i < begin + count) continue;
    source.sizes.push_back(self.sizes[order[i]]);
    source.strides.push_back(self.strides[order[i]]);
  }
  std::vector<TensorType> spread;
  for (std::size_t i = begin; i < begin + count; ++i)
    spread.push_back(spread_index(*indices[order[i]], read->shape, begin, order.size() - begin - count));
  std::vector<Operand> operands = {{&source.sizes, &source.strides}};
  for (const TensorType& t : spread) operands.push_back({&t.sizes, &t.strides});
  return c.give(iterate(c, operands, self.dtype, self.device));
}

bool is_mask(Call& c) {
  const auto list = c.list(1);
  return list.size() == 1 && !list[0].is_none() && c.g.type(list[0]).dtype == DType::kBool;
}

/// self with some elements replaced. Values must fit what self[indices] is; of a mask only numbers are sure to.
bool index_put(Call& c) {
  const TensorType &self = c.tensor(0), &values = c.tensor(2);
  c.require(values.dtype == self.dtype);
  if (is_mask(c)) {
    const TensorType& mask = c.g.type(c.list(1)[0]);
    c.require(c.equal(mask.sizes, self.sizes) && values.dim() == 0);
  } else {
    if (!index_tensor(c)) return false;
    const Sizes indexed = c.out[0]->sizes;
    c.out.clear();
    c.require(c.equal(broadcast(c, indexed, values.sizes), indexed));
  }
  return c.give(preserved(c, self, self.dtype));
}

bool index_select(Call& c) {
  const TensorType &self = c.tensor(0), &indices = c.tensor(2);
  const std::size_t d = c.wrap(c.integer(1), self.dim());
  if (!c.require(self.dim() > 0 && indices.dim() <= 1 && is_index(indices))) return false;
  Sizes sizes = self.sizes;
  sizes[d] = indices.numel();
  return c.give(like(self, std::move(sizes)));
}

bool is_skipped(const TensorType& t) { return t.dim() == 1 && t.sizes[0].is_value(0); }

bool cat(Call& c) {
  std::vector<const TensorType*> parts;
  std::optional<DType> dtype;
  for (ValueId v : c.list(0)) {
    if (!c.require(!v.is_none())) return false;
    const TensorType& t = c.g.type(v);
    dtype = dtype ? op::promote(*dtype, t.dtype) : t.dtype;
    if (!is_skipped(t)) parts.push_back(&t);
  }
  if (!c.require(!parts.empty() && parts[0]->dim() > 0)) return false;
  const std::size_t d = c.wrap(c.integer(1), parts[0]->dim());
  TensorType result = *parts[0];
  bool channels_last = true;
  result.sizes[d] = 0;
  for (const TensorType* t : parts) {
    if (!c.require(t->dim() == result.dim() && t->device == result.device)) return false;
    for (std::size_t i = 0; i < t->dim(); ++i)
      if (i != d) c.require(c.equal(t->sizes[i], result.sizes[i]));
    result.sizes[d] = result.sizes[d] + t->sizes[d];
    channels_last = channels_last && suggests_channels_last(c, *t);
    c.require(t->dim() != 5 || op::is_contiguous(*t));
  }
  result.dtype = *dtype;
  result.strides = channels_last ? channels_last_strides(result.sizes) : op::contiguous_strides(result.sizes);
  return c.give(std::move(result));
}

bool stack(Call& c) {
  const auto list = c.list(0);
  if (!c.require(!list.empty())) return false;
  const TensorType& first = c.g.type(list[0]);
  for (ValueId v : list) {
    if (!c.require(!v.is_none())) return false;
    const TensorType& t = c.g.type(v);
    c.require(t.sizes == first.sizes && t.dtype == first.dtype && t.device == first.device && op::is_contiguous(t));
  }
  const std::size_t d = c.wrap(c.integer(1), first.dim() + 1);
  Sizes sizes = first.sizes;
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(d), SymExpr(static_cast<std::int64_t>(list.size())));
  return c.sure && c.give(like(first, std::move(sizes)));
}

bool pad(Call& c) {
  const TensorType& self = c.tensor(0);
  const Sizes& pads = c.exprs(1);
  if (!c.require(pads.size() % 2 == 0 && pads.size() <= 2 * self.dim())) return false;
  Sizes sizes = self.sizes;
  bool grows = false;
  for (std::size_t i = 0; i < pads.size() / 2; ++i) {
    SymExpr& size = sizes[self.dim() - 1 - i];
    size = size + pads[2 * i] + pads[2 * i + 1];
    c.require(!size.is_constant() || size.constant() >= 0);
    for (const SymExpr* p : {&pads[2 * i], &pads[2 * i + 1]})
      grows = grows || (c.require(p->is_constant()) && p->constant() > 0);
  }
  if (!grows) c.require(op::is_contiguous(self) && sizes == self.sizes);  // eager clones a narrowed view
  return c.give(suggested(c, self, std::move(sizes)));
}

bool repeat(Call& c) {
  const TensorType& self = c.tensor(0);
  const Sizes& repeats = c.exprs(1);
  if (!c.require(repeats.size() >= self.dim())) return false;
  Sizes sizes = repeats;
  const std::size_t offset = repeats.size() - self.dim();
  for (std::size_t i = 0; i < self.dim(); ++i) sizes[offset + i] = sizes[offset + i] * self.sizes[i];
  for (const SymExpr& s : sizes) c.require(!s.is_constant() || s.constant() >= 0);
  return c.give(like(self, std::move(sizes)));
}

/// gather, scatter: indices of self's rank.
void check_scatter(Call& c, std::size_t index_at) {
  const TensorType &self = c.tensor(0), &index = c.tensor(index_at);
  c.wrap(c.integer(1), self.dim());
  c.require(index.dtype == DType::kInt64 &&
            std::max<std::size_t>(index.dim(), 1) == std::max<std::size_t>(self.dim(), 1));
}

bool scatter(Call& c) {
  check_scatter(c, 2);
  const TensorType& self = c.tensor(0);
  if (const TensorType* source = c.maybe_tensor(3))
    c.require(source->dtype == self.dtype && source->dim() == c.tensor(2).dim());
  return c.give(like(self, self.sizes));
}

bool topk(Call& c) {
  const TensorType& self = c.tensor(0);
  const std::size_t d = c.wrap(c.integer(2), self.dim());
  const SymExpr k = c.expr(1);
  if (!c.require(self.dim() > 0 && !op::is_complex(self.dtype) && k.is_constant() && self.sizes[d].is_constant() &&
                 k.constant() >= 0 && k.constant() <= self.sizes[d].constant()))
    return false;
  Sizes sizes = self.sizes;
  sizes[d] = k;
  c.give(like(self, sizes));
  return c.give(like(self, sizes, DType::kInt64));
}

bool pad2d(Call& c, bool reflects) {
  const TensorType& self = c.tensor(0);
  const Sizes& p = c.exprs(1);
  if (!c.require((self.dim() == 3 || self.dim() == 4) && op::is_contiguous(self) && p.size() == 4)) return false;
  Sizes sizes = self.sizes;
  for (std::size_t i = 0; i < 2; ++i) {
    SymExpr& size = sizes[self.dim() - 1 - i];
    const SymExpr &low = p[2 * i], &high = p[2 * i + 1];
    if (!c.require(low.is_constant() && high.is_constant() && size.is_constant() && low.constant() >= 0 &&
                   high.constant() >= 0))
      return false;
    c.require(!reflects || std::max(low.constant(), high.constant()) < size.constant());
    size = size + low + high;
  }
  return c.sure && c.require(!has_zero(sizes)) && c.give(like(self, std::move(sizes)));
}

}  // namespace

bool index(Call& c) {
  if (c.op == Op::cat) return cat(c);
  if (c.op == Op::stack) return stack(c);
  const TensorType& self = c.tensor(0);
  switch (c.op) {
    case Op::embedding: return embedding(c);
    case Op::index_Tensor: return index_tensor(c);
    case Op::gather: check_scatter(c, 2); return c.give(like(self, c.tensor(2).sizes));
    case Op::index_select: return index_select(c);
    case Op::slice_backward:
    case Op::select_backward:
    case Op::diagonal_backward:
    case Op::unfold_backward: return c.give(like(self, c.exprs(1)));
    case Op::constant_pad_nd: return pad(c);
    case Op::repeat: return repeat(c);
    case Op::roll: return c.require(op::is_contiguous(self)) && c.give(like(self, self.sizes));
    case Op::flip: c.integers(1); return c.give(preserved(c, self, self.dtype));
    case Op::triu:
    case Op::tril: return c.require(self.dim() >= 2) && c.give(like(self, self.sizes));
    case Op::embedding_dense_backward:
      return c.require(self.dim() > 0 && is_index(c.tensor(1))) && c.give(like(self, {c.expr(2), self.sizes.back()}));
    case Op::index_put: return index_put(c);
    case Op::scatter_src:
    case Op::scatter_value:
    case Op::scatter_add:
    case Op::scatter_reduce_two: return scatter(c);
    case Op::slice_scatter:
    case Op::select_scatter: return c.require(c.tensor(1).dtype == self.dtype && !has_overlap(self)) && c.give(self);
    case Op::index_add: return c.require(c.tensor(3).dtype == self.dtype) && c.give(like(self, self.sizes));
    case Op::reflection_pad2d: return pad2d(c, true);
    case Op::replication_pad2d: return pad2d(c, false);
    case Op::sort:
      c.wrap(c.integer(1), self.dim());
      c.require(!op::is_complex(self.dtype));
      c.give(preserved(c, self, self.dtype));
      return c.give(preserved(c, self, DType::kInt64));
    case Op::topk: return topk(c);
    case Op::histc: return c.require(op::is_floating(self.dtype)) && c.give(like(self, {c.expr(1)}));
    default: return c.give_up();  // nonzero, masked_select: sizes depend on values
  }
}

}  // namespace braze::graph::shape_rules
