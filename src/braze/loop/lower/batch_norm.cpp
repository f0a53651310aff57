// Batch norm: statistics per channel over batch and space (training) or given ones (evaluation), then a map.
#include "braze/loop/lower/reduction.h"

namespace braze::loop {
namespace {

/// Everything but dimension 1.
Folded but_channels(const Lowering& l, ValueId x) {
  std::vector<bool> folded(l.type(x).dim(), true);
  folded[1] = false;
  return fold_dims(l.type(x).sizes, folded, false);
}

Term read(Loop& loop, ValueId v, std::span<const SymExpr> at, DType type) {
  return loop.body.cast(loop.value(v, at), type);
}

/// Mean and 1 / sqrt(variance + eps) per channel, as intermediates or given values.
struct Statistics {
  TensorId mean, rstd;  ///< intermediates of training
  ValueId running_mean, running_var;
  double eps = 0;

  Term mean_at(Loop& loop, std::span<const SymExpr> channel, DType type) const {
    return mean.is_none() ? read(loop, running_mean, channel, type) : loop.tensor(mean, channel);
  }
  Term rstd_at(Loop& loop, std::span<const SymExpr> channel, DType type) const {
    if (!rstd.is_none()) return loop.tensor(rstd, channel);
    return 1.0 / sqrt(read(loop, running_var, channel, type) + eps);
  }
};

struct Forward {
  ValueId x, weight, bias, running_mean, running_var;
  double momentum = 0, eps = 0;
};

/// Results 1 to 4: saved mean, saved 1/std, new running mean, new running variance.
Statistics train(Lowering& l, const Node& node, const Forward& in, DType type) {
  const auto result = [&](std::size_t k) { return k < node.results.size() ? node.results[k] : ValueId(); };
  const Folded f = but_channels(l, in.x);
  Loop sum(l, node, f.space, f.reduced);
  const TensorId total = sum.yield(read(sum, in.x, f.at(sum), type), type, "sum");
  sum.reduce(Fold::sum);
  Loop divide(l, node, f.space);
  const Term average = divide.tensor(total, divide.i) / count_term(divide, f.count(), type);
  Statistics s;
  s.mean = divide.yield_both(average, result(1), type, "mean");
  if (!result(3).is_none())
    divide.yield(read(divide, in.running_mean, divide.i, type) * (1 - in.momentum) + average * in.momentum, result(3));
  divide.map();
  Loop squares(l, node, f.space, f.reduced);
  const Term centred = read(squares, in.x, f.at(squares), type) - squares.tensor(s.mean, squares.i);
  const TensorId square_sum = squares.yield(centred * centred, type, "squares");
  squares.reduce(Fold::sum);
  Loop root(l, node, f.space);
  const Term squared = root.tensor(square_sum, root.i), n = count_term(root, f.count(), type);
  s.rstd = root.yield_both(1.0 / sqrt(squared / n + in.eps), result(2), type, "rstd");
  if (!result(4).is_none()) {
    const Term unbiased = squared / (n - 1.0);
    root.yield(read(root, in.running_var, root.i, type) * (1 - in.momentum) + unbiased * in.momentum, result(4));
  }
  root.map();
  return s;
}

void normalise(Lowering& l, const Node& node, const Forward& in, const Statistics& s, DType type) {
  Loop out(l, node, l.type(in.x).sizes);
  const std::vector<SymExpr> channel = {out.i[1]};
  Term y = (read(out, in.x, out.i, type) - s.mean_at(out, channel, type)) * s.rstd_at(out, channel, type);
  if (!in.weight.is_none()) y = y * read(out, in.weight, channel, type);
  if (!in.bias.is_none()) y = y + read(out, in.bias, channel, type);
  out.yield(y, node.results[0]);
  out.map();
}

bool has_channels(const Lowering& l, ValueId x) {
  return l.type(x).dim() >= 2 && op::is_floating(l.type(x).dtype) &&
         l.type(x).dtype == op::compute_type(l.type(x).dtype);  // mixed half statistics: the library's
}

/// In evaluation the saved statistics are empty tensors and the running ones pass through.
bool pass_through(Lowering& l, const Node& node, const Forward& in) {
  for (std::size_t k = 1; k < node.results.size(); ++k) {
    const ValueId v = node.results[k];
    if (v.is_none()) continue;
    if (k < 3 && !l.type(v).numel().is_value(0)) return false;
    if (k >= 3 && l.escapes(v)) return false;
  }
  for (std::size_t k = 1; k < node.results.size(); ++k) {
    const ValueId v = node.results[k];
    if (v.is_none()) continue;
    if (k < 3) l.bind_number(v, 0, 0);
    else l.bind_view(v, k == 3 ? in.running_mean : in.running_var, identity_map(l.type(v).sizes), SymExpr(0));
  }
  return true;
}

bool forward(Lowering& l, const Node& node, const Forward& in, bool training) {
  if (!has_channels(l, in.x)) return false;
  const DType type = op::compute_type(l.type(in.x).dtype);
  Statistics s;
  if (training) {
    s = train(l, node, in, type);
  } else {
    if (!pass_through(l, node, in)) return false;
    s.running_mean = in.running_mean;
    s.running_var = in.running_var;
    s.eps = in.eps;
  }
  normalise(l, node, in, s, type);
  return true;
}

bool functional(Lowering& l, const Node& node) {
  const auto v = [&](std::size_t k) { return value_arg(node, k); };
  return forward(l, node, {v(0), v(1), v(2), v(3), v(4), *number_arg(node, 6), *number_arg(node, 7)},
                 bool_arg(node, 5));
}
bool no_training(Lowering& l, const Node& node) {
  const auto v = [&](std::size_t k) { return value_arg(node, k); };
  return forward(l, node, {v(0), v(1), v(2), v(3), v(4), 0, *number_arg(node, 6)}, false);
}
bool no_stats(Lowering& l, const Node& node) {
  const auto v = [&](std::size_t k) { return value_arg(node, k); };
  return bool_arg(node, 3) && forward(l, node, {v(0), v(1), v(2), {}, {}, 0, *number_arg(node, 5)}, true);
}

bool backward(Lowering& l, const Node& node) {
  const auto v = [&](std::size_t k) { return value_arg(node, k); };
  const auto result = [&](std::size_t k) { return node.results[k]; };
  const ValueId dy = v(0), x = v(1), weight = v(2);
  const bool training = bool_arg(node, 7);
  if (!has_channels(l, x) || (training ? v(5) : v(3)).is_none()) return false;
  const DType type = op::compute_type(l.type(x).dtype);
  const ValueId mean = training ? v(5) : v(3);
  const auto rstd = [&](Loop& loop, std::span<const SymExpr> channel) {
    return training ? read(loop, v(6), channel, type)
                    : 1.0 / sqrt(read(loop, v(4), channel, type) + *number_arg(node, 8));
  };
  const Folded f = but_channels(l, x);
  Loop sums(l, node, f.space, f.reduced);
  const auto at = f.at(sums);
  const Term gradient = read(sums, dy, at, type);
  const TensorId dot = sums.yield(gradient * (read(sums, x, at, type) - read(sums, mean, sums.i, type)), type, "dot");
  const TensorId total = sums.yield_both(gradient, result(2), type, "sum");
  sums.reduce(Fold::sum);
  if (!result(1).is_none()) {
    Loop scale(l, node, f.space);
    scale.yield(scale.tensor(dot, scale.i) * rstd(scale, scale.i), result(1));
    scale.map();
  }
  if (result(0).is_none()) return true;
  Loop out(l, node, l.type(x).sizes);
  const std::vector<SymExpr> channel = {out.i[1]};
  Term dx = read(out, dy, out.i, type);
  const Term r = rstd(out, channel);
  if (training) {
    const Term n = count_term(out, f.count(), type),
               centred = read(out, x, out.i, type) - read(out, mean, channel, type);
    dx = dx - out.tensor(total, channel) / n - centred * (out.tensor(dot, channel) * r * r / n);
  }
  dx = dx * r;
  out.yield(weight.is_none() ? dx : dx * read(out, weight, channel, type), result(0));
  out.map();
  return true;
}

constexpr RuleRow kRows[] = {
    {Op::_native_batch_norm_legit_functional, functional},
    {Op::_native_batch_norm_legit_no_training, no_training},
    {Op::_native_batch_norm_legit_no_stats, no_stats},
    {Op::native_batch_norm_backward, backward},
};

}  // namespace

std::span<const RuleRow> batch_norm_rules() { return kRows; }

}  // namespace braze::loop
