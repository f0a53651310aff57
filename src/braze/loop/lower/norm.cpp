// Layer, group and RMS norm with their derivatives: two-pass statistics in float at least, then maps.
#include <functional>
#include <limits>

#include "braze/loop/lower/reduction.h"

namespace braze::loop {
namespace {

ValueId operand(const Node& node, std::size_t position) { return value_arg(node, position); }
ValueId result(const Node& node, std::size_t position) {
  return position < node.results.size() ? node.results[position] : ValueId();
}
DType compute(const Lowering& l, ValueId v) { return op::compute_type(l.type(v).dtype); }

Term read(Loop& loop, ValueId v, std::span<const SymExpr> at, DType type) {
  return loop.body.cast(loop.value(v, at), type);
}

/// The last dimensions, as many as the normalized shape has; statistics keep them as 1s.
Folded last_dims(const Lowering& l, ValueId x, std::size_t count) {
  const auto& sizes = l.type(x).sizes;
  std::vector<bool> folded(sizes.size());
  for (std::size_t k = sizes.size() - count; k < sizes.size(); ++k) folded[k] = true;
  return fold_dims(sizes, folded, true);
}

/// All but the last `count` dimensions: what weight and bias are shared over.
Folded leading_dims(const Lowering& l, ValueId x, std::size_t count) {
  const auto& sizes = l.type(x).sizes;
  std::vector<bool> folded(sizes.size());
  for (std::size_t k = 0; k + count < sizes.size(); ++k) folded[k] = true;
  return fold_dims(sizes, folded, false);
}

/// weight and bias, broadcast from the right, if there are any.
Term affine(Loop& loop, Term x, ValueId weight, ValueId bias) {
  if (!weight.is_none()) x = x * loop.body.cast(loop.broadcast(weight, loop.i), x.type());
  if (!bias.is_none()) x = x + loop.body.cast(loop.broadcast(bias, loop.i), x.type());
  return x;
}

bool layer_norm(Lowering& l, const Node& node) {
  const ValueId x = operand(node, 0);
  const DType type = compute(l, x);
  const Folded f = last_dims(l, x, ints_arg(node, 1).size());
  Loop sum(l, node, f.space, f.reduced);
  const TensorId total = sum.yield(read(sum, x, f.at(sum), type), type, "sum");
  sum.reduce(Fold::sum);
  Loop divide(l, node, f.space);
  const Term average = divide.tensor(total, divide.i) / count_term(divide, f.count(), type);
  const TensorId mean = divide.yield_both(average, result(node, 1), type, "mean");
  divide.map();
  Loop squares(l, node, f.space, f.reduced);
  const Term centred = read(squares, x, f.at(squares), type) - squares.tensor(mean, squares.i);
  const TensorId square_sum = squares.yield(centred * centred, type, "squares");
  squares.reduce(Fold::sum);
  Loop root(l, node, f.space);
  const Term variance = root.tensor(square_sum, root.i) / count_term(root, f.count(), type);
  const TensorId rstd = root.yield_both(rsqrt(variance + *number_arg(node, 4)), result(node, 2), type, "rstd");
  root.map();
  Loop out(l, node, l.type(x).sizes);
  const auto at = f.result_at(out.i);
  const Term normal = (read(out, x, out.i, type) - out.tensor(mean, at)) * out.tensor(rstd, at);
  out.yield(affine(out, normal, operand(node, 2), operand(node, 3)), result(node, 0));
  out.map();
  return true;
}

/// sums over the outer dimensions for weight and bias, both in one loop.
void affine_gradients(Lowering& l, const Node& node, std::size_t count, ValueId x,
                      const std::function<Term(Loop&, std::span<const SymExpr>)>& normal, ValueId weight_gradient,
                      ValueId bias_gradient) {
  const DType type = compute(l, x);
  const Folded f = leading_dims(l, x, count);
  Loop loop(l, node, f.space, f.reduced);
  const auto at = f.at(loop);
  const Term dy = read(loop, operand(node, 0), at, type);
  if (!weight_gradient.is_none()) loop.yield(dy * normal(loop, at), weight_gradient);
  loop.yield(dy, bias_gradient);
  loop.reduce(Fold::sum);
}

bool layer_norm_backward(Lowering& l, const Node& node) {
  const ValueId x = operand(node, 1), mean = operand(node, 3), rstd = operand(node, 4), weight = operand(node, 5);
  const DType type = compute(l, x);
  const std::size_t count = ints_arg(node, 2).size();
  const Folded f = last_dims(l, x, count);
  const auto normal = [&](Loop& loop, std::span<const SymExpr> at) {
    const auto row = f.result_at(at);
    return (read(loop, x, at, type) - read(loop, mean, row, type)) * read(loop, rstd, row, type);
  };
  const auto scaled = [&](Loop& loop, std::span<const SymExpr> at) {
    const Term dy = read(loop, operand(node, 0), at, type);
    return weight.is_none() ? dy : dy * loop.body.cast(loop.broadcast(weight, at), type);
  };
  if (!result(node, 0).is_none()) {
    Loop sums(l, node, f.space, f.reduced);
    const auto at = f.at(sums);
    const Term g = scaled(sums, at);
    const TensorId plain = sums.yield(g, type, "sum"), weighted = sums.yield(g * normal(sums, at), type, "dot");
    sums.reduce(Fold::sum);
    Loop out(l, node, l.type(x).sizes);
    const auto row = f.result_at(out.i);
    const Term n = count_term(out, f.count(), type);
    const Term inner =
        scaled(out, out.i) - out.tensor(plain, row) / n - normal(out, out.i) * (out.tensor(weighted, row) / n);
    out.yield(inner * read(out, rstd, row, type), result(node, 0));
    out.map();
  }
  affine_gradients(l, node, count, x, normal, result(node, 1), result(node, 2));
  return true;
}

bool rms_norm(Lowering& l, const Node& node) {
  const ValueId x = operand(node, 0);
  const DType type = compute(l, x);
  if (is_none(node, 3) && op::is_half(l.type(x).dtype)) return false;
  const double epsilon = type == DType::kFloat64 ? std::numeric_limits<double>::epsilon()
                                                 : static_cast<double>(std::numeric_limits<float>::epsilon());
  const double eps = is_none(node, 3) ? epsilon : *number_arg(node, 3);
  const Folded f = last_dims(l, x, ints_arg(node, 1).size());
  Loop squares(l, node, f.space, f.reduced);
  const Term element = read(squares, x, f.at(squares), type);
  const TensorId total = squares.yield(element * element, type, "squares");
  squares.reduce(Fold::sum);
  Loop root(l, node, f.space);
  const Term average = root.tensor(total, root.i) / count_term(root, f.count(), type);
  const TensorId rstd = root.yield_both(rsqrt(average + eps), result(node, 1), type, "rstd");
  root.map();
  Loop out(l, node, l.type(x).sizes);
  const Term normal = read(out, x, out.i, type) * out.tensor(rstd, f.result_at(out.i));
  out.yield(affine(out, normal, operand(node, 2), ValueId()), result(node, 0));
  out.map();
  return true;
}

/// Group norm sees [N, C, rest...] as [N, groups, C / groups, rest...]. Statistics are [N, groups].
struct Groups {
  Groups(const Lowering& l, ValueId x, std::int64_t group_count, const SymExpr& channels)
      : sizes(l.type(x).sizes), width(floor_div(channels, group_count)), ranges(l.ranges(sizes)) {
    space = {sizes[0], group_count};
    reduced.assign(sizes.begin() + 1, sizes.end());
    reduced[0] = width;
  }
  /// Indices of x in a loop over space and reduced.
  std::vector<SymExpr> at(const Loop& loop) const {
    std::vector<SymExpr> indices = {loop.i[0], loop.i[1] * width + loop.r[0]};
    indices.insert(indices.end(), loop.r.begin() + 1, loop.r.end());
    return indices;
  }
  /// Indices of the statistics in a loop over x's own space, or at x's indices `at` over other loops.
  std::vector<SymExpr> row(std::span<const SymExpr> at) const {
    return {at[0], sym::simplify(floor_div(at[1], width), ranges)};
  }
  SymExpr count() const { return sym::product(reduced); }

  std::vector<SymExpr> sizes;
  SymExpr width;
  sym::Ranges ranges;
  std::vector<SymExpr> space, reduced;
};

Term per_channel(Loop& loop, ValueId v, std::span<const SymExpr> at, DType type) {
  return read(loop, v, at.subspan(1, 1), type);
}

bool group_norm(Lowering& l, const Node& node) {
  const ValueId x = operand(node, 0), weight = operand(node, 1), bias = operand(node, 2);
  const DType type = compute(l, x);
  if (l.type(x).dim() < 2) return false;
  const Groups g(l, x, constant_arg(node, 6), int_arg(node, 4));
  Loop sum(l, node, g.space, g.reduced);
  const TensorId total = sum.yield(read(sum, x, g.at(sum), type), type, "sum");
  sum.reduce(Fold::sum);
  Loop divide(l, node, g.space);
  const Term average = divide.tensor(total, divide.i) / count_term(divide, g.count(), type);
  const TensorId mean = divide.yield_both(average, result(node, 1), type, "mean");
  divide.map();
  Loop squares(l, node, g.space, g.reduced);
  const Term centred = read(squares, x, g.at(squares), type) - squares.tensor(mean, squares.i);
  const TensorId square_sum = squares.yield(centred * centred, type, "squares");
  squares.reduce(Fold::sum);
  Loop root(l, node, g.space);
  const Term variance = root.tensor(square_sum, root.i) / count_term(root, g.count(), type);
  const TensorId rstd = root.yield_both(rsqrt(variance + *number_arg(node, 7)), result(node, 2), type, "rstd");
  root.map();
  Loop out(l, node, g.sizes);
  const auto row = g.row(out.i);
  Term normal = (read(out, x, out.i, type) - out.tensor(mean, row)) * out.tensor(rstd, row);
  if (!weight.is_none()) normal = normal * per_channel(out, weight, out.i, type);
  if (!bias.is_none()) normal = normal + per_channel(out, bias, out.i, type);
  out.yield(normal, result(node, 0));
  out.map();
  return true;
}

bool group_norm_backward(Lowering& l, const Node& node) {
  const ValueId dy = operand(node, 0), x = operand(node, 1), mean = operand(node, 2), rstd = operand(node, 3),
                weight = operand(node, 4);
  const DType type = compute(l, x);
  if (l.type(x).dim() < 2) return false;
  const Groups g(l, x, constant_arg(node, 8), int_arg(node, 6));
  const auto normal = [&](Loop& loop, std::span<const SymExpr> at, std::span<const SymExpr> row) {
    return (read(loop, x, at, type) - read(loop, mean, row, type)) * read(loop, rstd, row, type);
  };
  const auto scaled = [&](Loop& loop, std::span<const SymExpr> at) {
    const Term gradient = read(loop, dy, at, type);
    return weight.is_none() ? gradient : gradient * per_channel(loop, weight, at, type);
  };
  if (!result(node, 0).is_none()) {
    Loop sums(l, node, g.space, g.reduced);
    const auto at = g.at(sums);
    const Term gradient = scaled(sums, at);
    const TensorId plain = sums.yield(gradient, type, "sum");
    const TensorId weighted = sums.yield(gradient * normal(sums, at, sums.i), type, "dot");
    sums.reduce(Fold::sum);
    Loop out(l, node, g.sizes);
    const auto row = g.row(out.i);
    const Term n = count_term(out, g.count(), type);
    const Term inner =
        scaled(out, out.i) - out.tensor(plain, row) / n - normal(out, out.i, row) * (out.tensor(weighted, row) / n);
    out.yield(inner * read(out, rstd, row, type), result(node, 0));
    out.map();
  }
  std::vector<bool> folded(g.sizes.size(), true);
  folded[1] = false;
  const Folded f = fold_dims(g.sizes, folded, false);
  Loop channels(l, node, f.space, f.reduced);
  const auto at = f.at(channels);
  const Term gradient = read(channels, dy, at, type);
  const std::vector<SymExpr> row = {at[0], sym::simplify(floor_div(at[1], g.width), l.ranges(f.space))};
  if (!result(node, 1).is_none()) channels.yield(gradient * normal(channels, at, row), result(node, 1));
  channels.yield(gradient, result(node, 2));
  channels.reduce(Fold::sum);
  return true;
}

constexpr RuleRow kRows[] = {
    {Op::native_layer_norm, layer_norm}, {Op::native_layer_norm_backward, layer_norm_backward},
    {Op::native_group_norm, group_norm}, {Op::native_group_norm_backward, group_norm_backward},
    {Op::_fused_rms_norm, rms_norm},
};

}  // namespace

std::span<const RuleRow> norm_rules() { return kRows; }

}  // namespace braze::loop
