// Softmax and its kin: maximum, exponentials, sum, quotient over one dimension, in float at least.
#include <limits>

#include "braze/loop/lower/reduction.h"

namespace braze::loop {
namespace {

/// One dimension of the first operand, kept as a 1 in the folds.
struct Row {
  Row(Lowering& lowering, const Node& n, std::size_t dim_position)
      : l(lowering), node(n), x(arg<ValueId>(n, 0)), sizes(l.type(x).sizes), type(compute(l, n)) {
    std::vector<bool> folded(sizes.size());
    if (!sizes.empty()) folded[dim_arg(n, dim_position, sizes.size())] = true;
    f = fold_dims(sizes, folded, true);
  }
  static DType compute(const Lowering& l, const Node& n) {
    const DType in = op::compute_type(l.type(arg<ValueId>(n, 0)).dtype);
    const DType out = op::compute_type(l.type(n.results[0]).dtype);
    return op::is_floating(in) ? op::promote(in, out) : out;
  }

  /// A fold over the dimension of a term made in the loop, at the value's indices.
  template <class Element>
  TensorId fold(Fold how, std::string_view name, Element element) {
    Loop loop(l, node, f.space, f.reduced);
    const TensorId result = loop.yield(element(loop, f.at(loop)), type, name);
    loop.reduce(how);
    return result;
  }
  /// A map over the value's space; `at` are a fold's indices.
  template <class Element>
  void map(Element element) {
    Loop loop(l, node, sizes);
    loop.yield(element(loop, f.result_at(loop.i)), node.results[0]);
    loop.map();
  }
  Term operand(Loop& loop, std::size_t position, std::span<const SymExpr> at) const {
    return loop.body.cast(loop.value(arg<ValueId>(node, position), at), type);
  }

  Lowering& l;
  const Node& node;
  ValueId x;
  std::vector<SymExpr> sizes;
  DType type;
  Folded f;
};

using At = std::span<const SymExpr>;

TensorId row_max(Row& row) {
  return row.fold(Fold::max, "max", [&](Loop& loop, At at) { return row.operand(loop, 0, at); });
}

/// exp(x - max), as its own value: a kernel keeps it in a row buffer or computes it twice.
TensorId exponentials(Row& row, TensorId max) {
  Loop loop(row.l, row.node, row.sizes);
  const Term shifted = row.operand(loop, 0, loop.i) - loop.tensor(max, row.f.result_at(loop.i));
  const TensorId result = loop.yield(exp(shifted), row.type, "exp");
  loop.map();
  return result;
}

template <bool kSafe>
bool softmax(Lowering& l, const Node& node) {
  Row row(l, node, 1);
  const TensorId max = row_max(row), e = exponentials(row, max);
  const TensorId sum = row.fold(Fold::sum, "sum", [&](Loop& loop, At at) { return loop.tensor(e, at); });
  row.map([&](Loop& loop, At at) {
    const Term share = loop.tensor(e, loop.i) / loop.tensor(sum, at);
    if (!kSafe) return share;
    const Term top = loop.tensor(max, at);  // a row of -inf only gives 0
    return choose(equal(top, like(top, -std::numeric_limits<double>::infinity())), like(share, 0), share);
  });
  return true;
}

bool log_softmax(Lowering& l, const Node& node) {
  Row row(l, node, 1);
  const TensorId max = row_max(row);
  const TensorId sum = row.fold(
      Fold::sum, "sum", [&](Loop& loop, At at) { return exp(row.operand(loop, 0, at) - loop.tensor(max, loop.i)); });
  row.map([&](Loop& loop, At at) {
    return row.operand(loop, 0, loop.i) - loop.tensor(max, at) - log(loop.tensor(sum, at));
  });
  return true;
}

bool softmax_backward(Lowering& l, const Node& node) {
  Row row(l, node, 2);
  const TensorId sum = row.fold(Fold::sum, "sum",
                                [&](Loop& loop, At at) { return row.operand(loop, 0, at) * row.operand(loop, 1, at); });
  row.map([&](Loop& loop, At at) {
    return row.operand(loop, 1, loop.i) * (row.operand(loop, 0, loop.i) - loop.tensor(sum, at));
  });
  return true;
}

bool log_softmax_backward(Lowering& l, const Node& node) {
  Row row(l, node, 2);
  const TensorId sum = row.fold(Fold::sum, "sum", [&](Loop& loop, At at) { return row.operand(loop, 0, at); });
  row.map([&](Loop& loop, At at) {
    return row.operand(loop, 0, loop.i) - exp(row.operand(loop, 1, loop.i)) * loop.tensor(sum, at);
  });
  return true;
}

constexpr RuleRow kRows[] = {
    {Op::_softmax, softmax<false>},
    {Op::_safe_softmax, softmax<true>},
    {Op::_log_softmax, log_softmax},
    {Op::_softmax_backward_data, softmax_backward},
    {Op::_log_softmax_backward_data, log_softmax_backward},
};

}  // namespace

std::span<const RuleRow> softmax_rules() { return kRows; }

}  // namespace braze::loop
