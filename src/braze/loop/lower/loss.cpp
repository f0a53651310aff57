// Losses and their derivatives.
#include <functional>

#include "braze/loop/lower/reduction.h"

namespace braze::loop {
namespace {

enum Reduction : std::int64_t { kNone = 0, kMean = 1, kSum = 2 };

ValueId operand(const Node& node, std::size_t position) { return value_arg(node, position); }
DType compute(const Lowering& l, const Node& node) { return op::compute_type(l.type(node.results[0]).dtype); }

using Element = std::function<Term(Loop&, std::span<const SymExpr>)>;

/// The sizes that the two operands have together.
std::vector<SymExpr> joint_sizes(const Lowering& l, ValueId a, ValueId b) {
  std::vector<SymExpr> x = l.type(a).sizes, y = l.type(b).sizes;
  if (x.size() < y.size()) std::swap(x, y);
  for (std::size_t k = 0; k < y.size(); ++k) {
    SymExpr& size = x[x.size() - y.size() + k];
    if (size.is_value(1)) size = y[k];
  }
  return x;
}

/// The elements themselves, their mean or their sum.
void reduce_loss(Lowering& l, const Node& node, const std::vector<SymExpr>& sizes, std::int64_t reduction,
                 const Element& element) {
  const ValueId result = node.results[0];
  if (reduction == kNone) {
    Loop loop(l, node, sizes);
    loop.yield(element(loop, loop.i), result);
    return loop.map();
  }
  const Folded f = fold_dims(sizes, all_dims(sizes.size()), false);
  Loop loop(l, node, f.space, f.reduced);
  const Term x = element(loop, f.at(loop));
  if (reduction == kSum) {
    loop.yield(x, result);
    return loop.reduce(Fold::sum);
  }
  const TensorId total = loop.yield(x, compute(l, node), "sum");
  loop.reduce(Fold::sum);
  Loop divide(l, node, f.space);
  divide.yield(divide.tensor(total, {}) / count_term(divide, f.count(), compute(l, node)), result);
  divide.map();
}

/// Two operands of one loss element.
struct Pair {
  Term x, y;
};
Pair read_pair(Lowering& l, Loop& loop, const Node& node, std::size_t first, std::span<const SymExpr> at) {
  const DType type = compute(l, node);
  return {loop.body.cast(loop.broadcast(operand(node, first), at), type),
          loop.body.cast(loop.broadcast(operand(node, first + 1), at), type)};
}

bool mse_loss(Lowering& l, const Node& node) {
  reduce_loss(l, node, joint_sizes(l, operand(node, 0), operand(node, 1)), constant_arg(node, 2),
              [&](Loop& loop, std::span<const SymExpr> at) {
                const auto [x, y] = read_pair(l, loop, node, 0, at);
                return (x - y) * (x - y);
              });
  return true;
}

bool smooth_l1_loss(Lowering& l, const Node& node) {
  const double beta = *number_arg(node, 3);
  reduce_loss(l, node, joint_sizes(l, operand(node, 0), operand(node, 1)), constant_arg(node, 2),
              [&](Loop& loop, std::span<const SymExpr> at) {
                const auto [x, y] = read_pair(l, loop, node, 0, at);
                const Term z = abs(x - y);
                return beta == 0 ? z : choose(z < beta, 0.5 * z * z / beta, z - 0.5 * beta);
              });
  return true;
}

/// A map of grad_output, x, target and 1 (or 1 / count for a mean).
bool loss_backward(Lowering& l, const Node& node, std::int64_t reduction,
                   const std::function<Term(Term dy, Pair, Term scale)>& formula) {
  Loop loop(l, node, l.type(node.results[0]).sizes);
  const DType type = compute(l, node);
  const Pair pair = read_pair(l, loop, node, 1, loop.i);
  const Term dy = loop.body.cast(loop.broadcast(operand(node, 0), loop.i), type);
  const SymExpr count = sym::product(joint_sizes(l, operand(node, 1), operand(node, 2)));
  const Term one = loop.body.constant(1, type);
  loop.yield(formula(dy, pair, reduction == kMean ? one / count_term(loop, count, type) : one), node.results[0]);
  loop.map();
  return true;
}

bool mse_loss_backward(Lowering& l, const Node& node) {
  return loss_backward(l, node, constant_arg(node, 3),
                       [](Term dy, Pair p, Term scale) { return 2.0 * scale * (p.x - p.y) * dy; });
}

bool smooth_l1_loss_backward(Lowering& l, const Node& node) {
  const double beta = *number_arg(node, 4);
  return loss_backward(l, node, constant_arg(node, 3), [beta](Term dy, Pair p, Term scale) {
    const Term x = p.x - p.y, inner = beta == 0 ? like(x, 0) : scale * x * dy / beta;
    return choose(x <= -beta, -(scale * dy), choose(x >= beta, scale * dy, inner));
  });
}

/// PyTorch raises on inputs outside [0, 1].
bool binary_cross_entropy(Lowering& l, const Node& node) {
  if (!l.options.checks) return false;
  const ValueId weight = operand(node, 2);
  reduce_loss(l, node, l.type(operand(node, 0)).sizes, constant_arg(node, 3),
              [&](Loop& loop, std::span<const SymExpr> at) {
                const auto [x, y] = read_pair(l, loop, node, 0, at);
                loop.body.check(both(x >= 0.0, x <= 1.0));
                const Term floor = like(x, -100);
                const Term loss = (y - 1.0) * maximum(log1p(-x), floor) - y * maximum(log(x), floor);
                return weight.is_none() ? loss : loss * loop.body.cast(loop.broadcast(weight, at), x.type());
              });
  return true;
}

bool bce_with_logits(Lowering& l, const Node& node) {
  const ValueId weight = operand(node, 2), pos_weight = operand(node, 3);
  reduce_loss(
      l, node, l.type(operand(node, 0)).sizes, constant_arg(node, 4), [&](Loop& loop, std::span<const SymExpr> at) {
        const auto [x, y] = read_pair(l, loop, node, 0, at);
        Term log_sigmoid = minimum(x, like(x, 0)) - log1p(exp(-abs(x)));
        if (!pos_weight.is_none())
          log_sigmoid = log_sigmoid * ((loop.body.cast(loop.broadcast(pos_weight, at), x.type()) - 1.0) * y + 1.0);
        const Term loss = (1.0 - y) * x - log_sigmoid;
        return weight.is_none() ? loss : loss * loop.body.cast(loop.broadcast(weight, at), x.type());
      });
  return true;
}

/// Class scores [N, C] or [C], targets [N] or [].
struct Classes {
  Classes(const Lowering& lowering, const Node& node, std::size_t first)
      : l(lowering),
        x(operand(node, first)),
        target(operand(node, first + 1)),
        weight(operand(node, first + 2)),
        reduction(constant_arg(node, first + 3)),
        ignored(int_arg(node, first + 4)),
        type(op::compute_type(l.type(x).dtype)),
        count(l.type(x).sizes.back()) {}

  Term target_at(Loop& loop, std::span<const SymExpr> n) const {
    return loop.body.cast(loop.value(target, n), DType::kInt64);
  }
  Term counts(Loop& loop, Term t) const { return apply(ScalarOp::ne, t, loop.body.index(ignored)); }

  const Lowering& l;
  ValueId x, target, weight;
  std::int64_t reduction;
  SymExpr ignored;
  DType type;
  SymExpr count;
};

/// One row's loss and weight; 0 for an ignored target.
struct RowLoss {
  Term loss, weight;
};
RowLoss row_loss(Loop& loop, const Classes& c, std::span<const SymExpr> n) {
  const Term t = c.target_at(loop, n), used = c.counts(loop, t);
  const Term in_range = both(t >= 0.0, t < loop.body.index(c.count));
  loop.body.check(either(in_range, apply(ScalarOp::bit_not, used)));
  const Term readable = both(in_range, used);
  std::vector<SymExpr> at(n.begin(), n.end());
  at.push_back(scalar_var(t.id));
  const Term score = loop.body.cast(loop.value_if(readable, c.x, at), c.type);
  if (c.weight.is_none()) return {-score, loop.body.cast(readable, c.type)};
  const Term w = loop.body.cast(loop.value_if(readable, c.weight, std::span(at).last(1)), c.type);
  return {-(w * score), w};
}

bool nll_loss_forward(Lowering& l, const Node& node) {
  const Classes c(l, node, 0);
  const std::vector<SymExpr>& rows = l.type(c.target).sizes;
  if (!l.options.checks || c.l.type(c.x).dim() > 2 || c.l.type(c.x).dim() != rows.size() + 1) return false;
  const ValueId output = node.results[0], total_weight = node.results[1];
  if (c.reduction == kNone) {
    Loop loop(l, node, rows);
    loop.yield(row_loss(loop, c, loop.i).loss, output);
    loop.map();
    if (!total_weight.is_none()) l.bind_number(total_weight, 0, 0);
    return true;
  }
  const Folded f = fold_dims(rows, all_dims(rows.size()), false);
  Loop loop(l, node, f.space, f.reduced);
  const RowLoss row = row_loss(loop, c, f.at(loop));
  if (c.reduction == kSum) {
    loop.yield(row.loss, output);
    loop.yield(row.weight, total_weight);
    loop.reduce(Fold::sum);
    return true;
  }
  const TensorId sum = loop.yield(row.loss, c.type, "sum");
  const TensorId weight = loop.yield_both(row.weight, total_weight, c.type, "weight");
  loop.reduce(Fold::sum);
  Loop divide(l, node, {});
  divide.yield(divide.tensor(sum, {}) / divide.tensor(weight, {}), output);
  divide.map();
  return true;
}

/// No gather: class j of row n gets a gradient where j is the row's target.
bool nll_loss_backward(Lowering& l, const Node& node) {
  const Classes c(l, node, 1);
  const auto& sizes = l.type(node.results[0]).sizes;
  if (sizes.empty() || sizes.size() > 2) return false;
  Loop loop(l, node, sizes);
  const auto n = std::span<const SymExpr>(loop.i).first(sizes.size() - 1);
  const auto j = std::span<const SymExpr>(loop.i).last(1);
  const Term t = c.target_at(loop, l.type(c.target).dim() == 0 ? std::span<const SymExpr>() : n);
  const ValueId dy = operand(node, 0);
  Term gradient = -loop.body.cast(loop.value(dy, l.type(dy).dim() == 0 ? std::span<const SymExpr>() : n), c.type);
  if (!c.weight.is_none()) gradient = gradient * loop.body.cast(loop.value(c.weight, j), c.type);
  if (c.reduction == kMean) gradient = gradient / loop.body.cast(loop.value(operand(node, 6), {}), c.type);
  const Term hit = both(equal(loop.body.index(j[0]), t), c.counts(loop, t));
  loop.yield(choose(hit, gradient, like(gradient, 0)), node.results[0]);
  loop.map();
  return true;
}

constexpr RuleRow kRows[] = {
    {Op::mse_loss, mse_loss},
    {Op::mse_loss_backward, mse_loss_backward},
    {Op::smooth_l1_loss, smooth_l1_loss},
    {Op::smooth_l1_loss_backward, smooth_l1_loss_backward},
    {Op::binary_cross_entropy, binary_cross_entropy},
    {Op::binary_cross_entropy_with_logits, bce_with_logits},
    {Op::nll_loss_forward, nll_loss_forward},
    {Op::nll_loss_backward, nll_loss_backward},
};

}  // namespace

std::span<const RuleRow> loss_rules() { return kRows; }

}  // namespace braze::loop
