// Indexing by data: gathers are masked loads under a check that the index is in range, their derivatives scatters.
#include <algorithm>

#include "braze/loop/lower/args.h"
#include "braze/loop/lower/lowering.h"

namespace braze::loop {
namespace {

ValueId operand(const Node& node, std::size_t position) { return value_arg(node, position); }

/// What a negative index means.
enum class Negative : std::uint8_t { kRaises, kFromEnd };

/// True if a value holds positions known at compile time that lie within [0, size).
bool is_in_range(const Lowering& l, ValueId index, const SymExpr& size) {
  const Bound& b = l.bound(index);
  const sym::Ranges ranges = l.ranges(l.type(index).sizes);
  if (b.form == Bound::Form::number) return b.integer >= 0 && sym::is_less(b.integer, size, ranges);
  return b.form == Bound::Form::content && sym::is_less_equal(0, b.index, ranges) &&
         sym::is_less(b.index, size, ranges);
}

bool is_index(const Lowering& l, ValueId index) {
  const DType type = l.type(index).dtype;
  return type == DType::kInt64 || type == DType::kInt32;
}

/// True if the index can be read: known to be in range, or checked at run time.
bool can_read(const Lowering& l, ValueId index, const SymExpr& size) {
  return is_index(l, index) && (l.options.checks || is_in_range(l, index, size));
}

/// An index read in a loop: the expression to load at, and a mask if it had to be checked.
struct Position {
  SymExpr expr;
  std::optional<Term> valid;
  Term data;  ///< with valid: the index itself
};

Position read_position(Lowering& l, Loop& loop, ValueId index, std::span<const SymExpr> at, const SymExpr& size,
                       Negative negative) {
  if (is_in_range(l, index, size)) {
    const Bound& b = l.bound(index);
    if (b.form == Bound::Form::number) return {b.integer, std::nullopt, {}};
    return {apply(b.index, at, loop.ranges()), std::nullopt, {}};
  }
  Term t = loop.body.cast(loop.value(index, at), DType::kInt64);
  const Term extent = loop.body.index(size);
  if (negative == Negative::kFromEnd) t = choose(t < 0.0, t + extent, t);
  const Term valid = both(t >= 0.0, t < extent);
  loop.body.check(valid);
  return {scalar_var(t.id), valid, t};
}

Term load_at(Loop& loop, const std::optional<Term>& valid, ValueId v, std::span<const SymExpr> at) {
  return valid ? loop.value_if(*valid, v, at) : loop.value(v, at);
}

std::span<const SymExpr> first(const std::vector<SymExpr>& list, std::size_t count) {
  return std::span<const SymExpr>(list).first(count);
}

bool embedding(Lowering& l, const Node& node) {
  const ValueId weight = operand(node, 0), index = operand(node, 1);
  const SymExpr rows = l.type(weight).sizes[0];
  if (!can_read(l, index, rows)) return false;
  Loop loop(l, node, l.type(node.results[0]).sizes);
  const std::size_t rank = l.type(index).dim();
  const Position row = read_position(l, loop, index, first(loop.i, rank), rows, Negative::kRaises);
  const SymExpr at[] = {row.expr, loop.i[rank]};
  loop.yield(load_at(loop, row.valid, weight, at), node.results[0]);
  loop.map();
  return true;
}

bool index_select(Lowering& l, const Node& node) {
  const ValueId x = operand(node, 0), index = operand(node, 2);
  const auto& sizes = l.type(x).sizes;
  if (sizes.empty()) return false;
  const std::size_t dim = dim_arg(node, 1, sizes.size());
  if (!can_read(l, index, sizes[dim])) return false;
  Loop loop(l, node, l.type(node.results[0]).sizes);
  const auto along =
      l.type(index).dim() == 0 ? std::span<const SymExpr>() : std::span<const SymExpr>(loop.i).subspan(dim, 1);
  const Position p = read_position(l, loop, index, along, sizes[dim], Negative::kRaises);
  std::vector<SymExpr> at = loop.i;
  at[dim] = p.expr;
  loop.yield(load_at(loop, p.valid, x, at), node.results[0]);
  loop.map();
  return true;
}

bool gather(Lowering& l, const Node& node) {
  const ValueId x = operand(node, 0), index = operand(node, 2);
  const auto& sizes = l.type(x).sizes;
  if (sizes.empty() || l.type(index).dim() != sizes.size()) return false;
  const std::size_t dim = dim_arg(node, 1, sizes.size());
  if (!can_read(l, index, sizes[dim])) return false;
  Loop loop(l, node, l.type(node.results[0]).sizes);
  const Position p = read_position(l, loop, index, loop.i, sizes[dim], Negative::kRaises);
  std::vector<SymExpr> at = loop.i;
  at[dim] = p.expr;
  loop.yield(load_at(loop, p.valid, x, at), node.results[0]);
  loop.map();
  return true;
}

/// x[indices] of advanced indexing: which dimensions are indexed, and where their common shape stands in the result.
struct Advanced {
  std::vector<std::pair<std::size_t, ValueId>> indexed;  ///< dimension of x, index tensor
  std::size_t rank = 0;                                  ///< of the common shape of the index tensors
  std::size_t begin = 0;                                 ///< its first dimension in the result
};

std::optional<Advanced> advanced_of(const Lowering& l, ValueId x, const std::vector<ValueId>& indices) {
  Advanced a;
  const auto& sizes = l.type(x).sizes;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    if (indices[k].is_none()) continue;
    if (!can_read(l, indices[k], sizes[k])) return std::nullopt;
    a.indexed.emplace_back(k, indices[k]);
    a.rank = std::max(a.rank, l.type(indices[k]).dim());
  }
  if (a.indexed.empty()) return std::nullopt;
  const bool adjacent = a.indexed.back().first - a.indexed.front().first + 1 == a.indexed.size();
  a.begin = adjacent ? a.indexed.front().first : 0;  // apart: their shape goes to the front
  return a;
}

/// The indices of x for the result's indices i.
struct Target {
  std::vector<SymExpr> at;
  std::optional<Term> valid;
  std::vector<Position> positions;  ///< of the indexed dimensions
};
Target advanced_target(Lowering& l, Loop& loop, ValueId x, const Advanced& a, std::span<const SymExpr> i) {
  const auto& sizes = l.type(x).sizes;
  Target target{std::vector<SymExpr>(sizes.size()), std::nullopt, {}};
  std::vector<bool> indexed(sizes.size());
  const auto shape = i.subspan(a.begin, a.rank);
  for (const auto& [dim, index] : a.indexed) {
    std::vector<SymExpr> own(l.type(index).dim());
    for (std::size_t k = 0; k < own.size(); ++k) {
      if (!l.type(index).sizes[k].is_value(1)) own[k] = shape[a.rank - own.size() + k];
    }
    const Position p = read_position(l, loop, index, own, sizes[dim], Negative::kFromEnd);
    indexed[dim] = true;
    target.at[dim] = p.expr;
    target.positions.push_back(p);
    if (p.valid) target.valid = target.valid ? both(*target.valid, *p.valid) : *p.valid;
  }
  std::size_t next = 0;
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    if (indexed[dim]) continue;
    if (next == a.begin) next += a.rank;
    target.at[dim] = i[next++];
  }
  return target;
}

/// The index tensors of advanced indexing; a dimension that is not indexed has a none id.
const std::vector<ValueId>* index_list(const Node& node, std::size_t position) {
  return std::get_if<std::vector<ValueId>>(&node.args[position]);
}

bool index_tensor(Lowering& l, const Node& node) {
  const auto* indices = index_list(node, 1);
  const auto a = indices ? advanced_of(l, operand(node, 0), *indices) : std::nullopt;
  if (!a) return false;
  Loop loop(l, node, l.type(node.results[0]).sizes);
  const Target target = advanced_target(l, loop, operand(node, 0), *a, loop.i);
  loop.yield(load_at(loop, target.valid, operand(node, 0), target.at), node.results[0]);
  loop.map();
  return true;
}

/// Where a checked target is out of range the store goes to position 0: the results are void anyway.
SymExpr safe_target(const Position& p) {
  return p.valid ? scalar_var(choose(*p.valid, p.data, like(p.data, 0)).id) : p.expr;
}

bool is_empty(const SymExpr& size) { return size.is_value(0); }

/// A tensor of its own with the value's elements; none for zeros.
TensorId initial(Lowering& l, ValueId v) {
  const Bound& b = l.bound(v);
  if (b.form == Bound::Form::number && b.number == 0 && b.integer == 0) return TensorId();
  return l.materialise_plain(v);
}

bool embedding_backward(Lowering& l, const Node& node) {
  const ValueId dy = operand(node, 0), index = operand(node, 1);
  const auto& sizes = l.type(node.results[0]).sizes;
  if (bool_arg(node, 4) || !can_read(l, index, sizes[0]) || is_empty(sizes[0])) return false;
  Loop loop(l, node, l.type(dy).sizes);
  const std::size_t rank = l.type(index).dim();
  const Position row = read_position(l, loop, index, first(loop.i, rank), sizes[0], Negative::kRaises);
  Term gradient = loop.value(dy, loop.i);
  const SymExpr& padding = int_arg(node, 3);
  if (!padding.is_value(-1)) {
    const Term at = row.valid ? row.data : loop.body.index(row.expr);
    gradient = choose(equal(at, loop.body.index(padding)), like(gradient, 0), gradient);
  }
  loop.yield(gradient, node.results[0]);
  loop.scatter(TensorId(), {safe_target(row), loop.i[rank]}, true);
  return true;
}

/// self with dimension dim indexed by `index`, over the index's own space (scatter) or the source's (index_add).
struct Scattered {
  ValueId self, index;
  std::size_t dim = 0;
  bool accumulate = false;
};

std::optional<Scattered> scattered(const Lowering& l, const Node& node, bool accumulate) {
  Scattered s{operand(node, 0), operand(node, 2), 0, accumulate};
  const auto& sizes = l.type(s.self).sizes;
  if (sizes.empty()) return std::nullopt;
  s.dim = dim_arg(node, 1, sizes.size());
  if (!can_read(l, s.index, sizes[s.dim]) || is_empty(sizes[s.dim])) return std::nullopt;
  return s;
}

void finish_scatter(Lowering& l, const Node& node, Loop& loop, const Scattered& s, const Position& p, Term value) {
  std::vector<SymExpr> targets = loop.i;
  targets[s.dim] = safe_target(p);
  const TensorId init = initial(l, s.self);
  loop.yield(value, node.results[0]);
  loop.scatter(init, std::move(targets), s.accumulate);
}

/// scatter.src, scatter.value, scatter_add.
template <bool kAccumulate>
bool scatter(Lowering& l, const Node& node) {
  const auto s = scattered(l, node, kAccumulate);
  if (!s || l.type(s->index).dim() != l.type(s->self).dim()) return false;
  const DType type = op::compute_type(l.type(node.results[0]).dtype);
  const auto fill = is_value(node, 3) ? std::nullopt : number_arg(node, 3);
  if (!is_value(node, 3) && !fill) return false;
  Loop loop(l, node, l.type(s->index).sizes);
  const Position p = read_position(l, loop, s->index, loop.i, l.type(s->self).sizes[s->dim], Negative::kRaises);
  const Term value = fill ? loop.body.constant(*fill, type) : loop.value(operand(node, 3), loop.i);
  finish_scatter(l, node, loop, *s, p, value);
  return true;
}

bool index_add(Lowering& l, const Node& node) {
  const auto s = scattered(l, node, true);
  const auto alpha = number_arg(node, 4);
  const ValueId source = operand(node, 3);
  if (!s || !alpha || l.type(source).dim() != l.type(s->self).dim()) return false;
  Loop loop(l, node, l.type(source).sizes);
  const auto along =
      l.type(s->index).dim() == 0 ? std::span<const SymExpr>() : std::span<const SymExpr>(loop.i).subspan(s->dim, 1);
  const Position p = read_position(l, loop, s->index, along, l.type(s->self).sizes[s->dim], Negative::kRaises);
  const Term value = loop.value(source, loop.i);
  finish_scatter(l, node, loop, *s, p, *alpha == 1 ? value : value * *alpha);
  return true;
}

/// The space of an index_put: what self[indices] would have as its shape.
std::vector<SymExpr> put_space(const Lowering& l, ValueId x, const Advanced& a) {
  std::vector<SymExpr> shape(a.rank, SymExpr(1)), space;
  std::vector<bool> indexed(l.type(x).dim());
  for (const auto& [dim, index] : a.indexed) {
    indexed[dim] = true;
    const auto& own = l.type(index).sizes;
    for (std::size_t k = 0; k < own.size(); ++k) {
      if (!own[k].is_value(1)) shape[a.rank - own.size() + k] = own[k];
    }
  }
  for (std::size_t dim = 0; dim < indexed.size(); ++dim) {
    if (!indexed[dim]) space.push_back(l.type(x).sizes[dim]);
  }
  space.insert(space.begin() + static_cast<std::ptrdiff_t>(a.begin), shape.begin(), shape.end());
  return space;
}

bool index_put(Lowering& l, const Node& node) {
  const ValueId self = operand(node, 0), values = operand(node, 2);
  const auto* indices = index_list(node, 1);
  const auto a = indices ? advanced_of(l, self, *indices) : std::nullopt;
  if (!a) return false;
  for (const auto& [dim, index] : a->indexed) {
    if (is_empty(l.type(self).sizes[dim])) return false;
  }
  const std::vector<SymExpr> space = put_space(l, self, *a);
  if (l.type(values).dim() > space.size()) return false;
  Loop loop(l, node, space);
  Target target = advanced_target(l, loop, self, *a, loop.i);
  for (std::size_t k = 0; k < target.positions.size(); ++k)
    target.at[a->indexed[k].first] = safe_target(target.positions[k]);
  const TensorId init = initial(l, self);
  loop.yield(loop.broadcast(values, loop.i), node.results[0]);
  loop.scatter(init, std::move(target.at), bool_arg(node, 3));
  return true;
}

constexpr RuleRow kRows[] = {
    {Op::embedding, embedding},
    {Op::index_select, index_select},
    {Op::gather, gather},
    {Op::index_Tensor, index_tensor},
    {Op::embedding_dense_backward, embedding_backward},
    {Op::scatter_src, scatter<false>},
    {Op::scatter_value, scatter<false>},
    {Op::scatter_add, scatter<true>},
    {Op::index_add, index_add},
    {Op::index_put, index_put},
};

}  // namespace

std::span<const RuleRow> gather_rules() { return kRows; }

}  // namespace braze::loop
