// Reductions. Means and variances are two passes (mean, then centred squares), never E[x^2] - E[x]^2.
#include "braze/loop/lower/reduction.h"

#include <cmath>

namespace braze::loop {

std::vector<SymExpr> Folded::at(const Loop& loop) const {
  std::vector<SymExpr> indices;
  indices.reserve(from.size());
  for (const int k : from)
    indices.push_back(k >= 0 ? loop.i[static_cast<std::size_t>(k)] : loop.r[static_cast<std::size_t>(-1 - k)]);
  return indices;
}

std::vector<SymExpr> Folded::result_at(std::span<const SymExpr> i) const {
  std::vector<SymExpr> indices;
  for (std::size_t k = 0; k < from.size(); ++k) {
    if (from[k] >= 0) indices.push_back(i[k]);
    else if (keeps) indices.push_back(0);
  }
  return indices;
}

Folded fold_dims(const std::vector<SymExpr>& sizes, const std::vector<bool>& folded, bool keep) {
  Folded f;
  f.keeps = keep;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (folded[k]) {
      f.from.push_back(-1 - static_cast<int>(f.reduced.size()));
      f.reduced.push_back(sizes[k]);
      if (keep) f.space.push_back(1);
    } else {
      f.from.push_back(static_cast<int>(f.space.size()));
      f.space.push_back(sizes[k]);
    }
  }
  if (f.reduced.empty()) f.reduced.push_back(1);
  return f;
}

std::vector<bool> all_dims(std::size_t rank) { return std::vector<bool>(rank, true); }

std::vector<bool> dims_arg(const Node& node, std::size_t position, std::size_t rank) {
  const std::vector<SymExpr> dims = ints_arg(node, position);
  std::vector<bool> folded(rank, dims.empty());
  if (rank == 0) return folded;
  for (const SymExpr& d : dims) folded[wrap_dim(d.constant(), rank)] = true;
  return folded;
}

Term count_term(Loop& loop, const SymExpr& count, DType type) { return loop.body.cast(loop.body.index(count), type); }

namespace {

ValueId operand(const Node& node) { return arg<ValueId>(node, 0); }
ValueId result(const Node& node) { return node.results[0]; }

/// Where the dims and keepdim of an overload stand; -1: it has none.
struct Form {
  int dim = -1, keep = -1;
};

Folded folded_of(const Lowering& l, const Node& node, Form form) {
  const std::size_t rank = l.type(operand(node)).dim();
  const auto dims = form.dim < 0 ? all_dims(rank) : dims_arg(node, static_cast<std::size_t>(form.dim), rank);
  return fold_dims(l.type(operand(node)).sizes, dims,
                   form.keep >= 0 && bool_arg(node, static_cast<std::size_t>(form.keep)));
}

/// The value, converted to the result's dtype (half types: rounded, then float), since sum(dtype=) converts first.
Term converted(Lowering& l, Loop& loop, const Node& node, const Folded& f, DType type) {
  const Term x = loop.value(operand(node), f.at(loop));
  const DType from = l.type(operand(node)).dtype;
  if (op::is_half(type) && from != type) return loop.body.cast(loop.body.cast(x, type), op::compute_type(type));
  return loop.body.cast(x, op::compute_type(type));
}

template <Fold kFold>
bool fold(Lowering& l, const Node& node, Form form) {
  const Folded f = folded_of(l, node, form);
  Loop loop(l, node, f.space, f.reduced);
  loop.yield(converted(l, loop, node, f, l.type(result(node)).dtype), result(node));
  loop.reduce(kFold);
  return true;
}

template <Fold kFold, int kDim, int kKeep>
bool plain_fold(Lowering& l, const Node& node) {
  return fold<kFold>(l, node, {kDim, kKeep});
}

/// sum and prod of bool count; the result's dtype says so. max and min of bool are any and all.
template <Fold kFold, Fold kBool, int kDim, int kKeep>
bool extremum(Lowering& l, const Node& node) {
  const bool is_bool = l.type(operand(node)).dtype == DType::kBool;
  return is_bool ? fold<kBool>(l, node, {kDim, kKeep}) : fold<kFold>(l, node, {kDim, kKeep});
}

/// any and all: of truth values; u8 gives u8.
template <Fold kFold, int kDim, int kKeep>
bool truth(Lowering& l, const Node& node) {
  if (node.op == Op::any_dims && !is_none(node, 1) && ints_arg(node, 1).empty()) return false;
  const Folded f = folded_of(l, node, {kDim, kKeep});
  Loop loop(l, node, f.space, f.reduced);
  const Term x = loop.body.cast(loop.value(operand(node), f.at(loop)), DType::kBool);
  if (l.type(result(node)).dtype == DType::kBool) {
    loop.yield(x, result(node));
    loop.reduce(kFold);
    return true;
  }
  const TensorId folded = loop.yield(x, DType::kBool, "truth");
  loop.reduce(kFold);
  Loop convert(l, node, f.space);
  convert.yield(convert.tensor(folded, convert.i), result(node));
  convert.map();
  return true;
}

template <int kDim, int kKeep>
bool mean(Lowering& l, const Node& node) {
  const DType type = op::compute_type(l.type(result(node)).dtype);
  const Folded f = folded_of(l, node, {kDim, kKeep});
  Loop sum(l, node, f.space, f.reduced);
  const TensorId total = sum.yield(converted(l, sum, node, f, l.type(result(node)).dtype), type, "sum");
  sum.reduce(Fold::sum);
  Loop divide(l, node, f.space);
  divide.yield(divide.tensor(total, divide.i) / count_term(divide, f.count(), type), result(node));
  divide.map();
  return true;
}

template <Fold kFold>
bool arg_extremum(Lowering& l, const Node& node) {
  const std::size_t rank = l.type(operand(node)).dim();
  std::vector<bool> folded = all_dims(rank);
  if (!is_none(node, 1) && rank > 0) {
    folded.assign(rank, false);
    folded[dim_arg(node, 1, rank)] = true;
  }
  const Folded f = fold_dims(l.type(operand(node)).sizes, folded, bool_arg(node, 2));
  Loop loop(l, node, f.space, f.reduced);
  loop.yield_key(loop.value(operand(node), f.at(loop)), result(node));
  loop.reduce(kFold);
  return true;
}

template <Fold kFold, Fold kArg, Fold kBool>
bool value_and_index(Lowering& l, const Node& node) {  // max.dim, min.dim
  const TensorType& from = l.type(operand(node));
  std::vector<bool> folded(from.dim());
  if (from.dim() > 0) folded[dim_arg(node, 1, from.dim())] = true;
  const Folded f = fold_dims(from.sizes, folded, bool_arg(node, 2));
  Loop value(l, node, f.space, f.reduced);
  value.yield(value.value(operand(node), f.at(value)), result(node));
  value.reduce(from.dtype == DType::kBool ? kBool : kFold);
  Loop index(l, node, f.space, f.reduced);
  index.yield_key(index.value(operand(node), f.at(index)), node.results[1]);
  index.reduce(kArg);
  return true;
}

/// The variance, and the mean as another result if asked.
struct Moments {
  ValueId variance, mean;
  bool root = false;  ///< the standard deviation
};

bool moments(Lowering& l, const Node& node, Moments want) {
  const auto correction = is_none(node, 2) ? std::optional<double>(1) : number_arg(node, 2);
  if (!correction) return false;
  const DType type = op::compute_type(l.type(result(node)).dtype);
  const Folded f = folded_of(l, node, {1, 3});
  Loop sum(l, node, f.space, f.reduced);
  const TensorId total = sum.yield(sum.value(operand(node), f.at(sum)), type, "sum");
  sum.reduce(Fold::sum);
  Loop divide(l, node, f.space);
  const Term average = divide.tensor(total, divide.i) / count_term(divide, f.count(), type);
  const TensorId mean = divide.yield_both(average, want.mean, type, "mean");
  divide.map();
  Loop squares(l, node, f.space, f.reduced);
  const Term centred = squares.value(operand(node), f.at(squares)) - squares.tensor(mean, squares.i);
  const TensorId centred_sum = squares.yield(centred * centred, type, "squares");
  squares.reduce(Fold::sum);
  Loop last(l, node, f.space);
  const Term freedom = count_term(last, f.count(), type) - *correction;
  const Term variance = last.tensor(centred_sum, last.i) / maximum(freedom, like(freedom, 0));
  last.yield(want.root ? sqrt(variance) : variance, want.variance);
  last.map();
  return true;
}

bool var(Lowering& l, const Node& node) { return moments(l, node, {result(node), ValueId(), false}); }
bool std_deviation(Lowering& l, const Node& node) { return moments(l, node, {result(node), ValueId(), true}); }
bool var_mean(Lowering& l, const Node& node) { return moments(l, node, {result(node), node.results[1], false}); }

/// What is folded for a norm of order p, and what is made of the fold.
Term norm_element(Term x, double p) {
  if (p == 0) return choose(apply(ScalarOp::ne, x, like(x, 0)), like(x, 1), like(x, 0));
  if (p == 2) return x * x;
  return p == 1 || std::isinf(p) ? abs(x) : apply(ScalarOp::pow, abs(x), like(x, p));
}
Term norm_result(Term folded, double p) {
  if (p == 2) return sqrt(folded);
  return p == 0 || p == 1 || std::isinf(p) ? folded : apply(ScalarOp::pow, folded, like(folded, 1 / p));
}

bool norm(Lowering& l, const Node& node, std::optional<double> order, Form form) {
  if (!order || !op::is_floating(l.type(operand(node)).dtype)) return false;
  const DType type = op::compute_type(l.type(result(node)).dtype);
  const Folded f = folded_of(l, node, form);
  Loop loop(l, node, f.space, f.reduced);
  const Term x = converted(l, loop, node, f, l.type(result(node)).dtype);
  const TensorId folded = loop.yield(norm_element(x, *order), type, "power");
  loop.reduce(!std::isinf(*order) ? Fold::sum : *order > 0 ? Fold::max : Fold::min);
  Loop last(l, node, f.space);
  last.yield(norm_result(last.tensor(folded, last.i), *order), result(node));
  last.map();
  return true;
}
bool vector_norm(Lowering& l, const Node& node) { return norm(l, node, number_arg(node, 1), {2, 3}); }
bool norm_dim(Lowering& l, const Node& node) {
  return norm(l, node, is_none(node, 1) ? std::optional<double>(2) : number_arg(node, 1), {2, 3});
}

/// max + log(sum(exp(x - max))), where an infinite max counts as 0.
bool logsumexp(Lowering& l, const Node& node) {
  const DType type = op::compute_type(l.type(result(node)).dtype);
  const Folded f = folded_of(l, node, {1, 2});
  Loop largest(l, node, f.space, f.reduced);
  const Term x = largest.body.cast(largest.value(operand(node), f.at(largest)), type);
  const TensorId top = largest.yield(x, type, "max");
  largest.reduce(Fold::max);
  const auto shift = [&](Loop& loop) {
    const Term m = loop.tensor(top, loop.i);
    return choose(apply(ScalarOp::isinf, m), like(m, 0), m);
  };
  Loop sum(l, node, f.space, f.reduced);
  const Term y = sum.body.cast(sum.value(operand(node), f.at(sum)), type);
  const TensorId total = sum.yield(exp(y - shift(sum)), type, "sum");
  sum.reduce(Fold::sum);
  Loop last(l, node, f.space);
  last.yield(log(last.tensor(total, last.i)) + shift(last), result(node));
  last.map();
  return true;
}

bool nansum(Lowering& l, const Node& node) {
  const DType type = l.type(result(node)).dtype;
  const Folded f = folded_of(l, node, {1, 2});
  Loop loop(l, node, f.space, f.reduced);
  const Term x = loop.value(operand(node), f.at(loop));
  const Term clean = op::is_floating(x.type()) ? choose(apply(ScalarOp::isnan, x), like(x, 0), x) : x;
  loop.yield(loop.body.cast(clean, op::compute_type(type)), result(node));
  loop.reduce(Fold::sum);
  return true;
}

bool count_nonzero(Lowering& l, const Node& node) {
  const Folded f = folded_of(l, node, {1, -1});
  Loop loop(l, node, f.space, f.reduced);
  const Term x = loop.body.cast(loop.value(operand(node), f.at(loop)), DType::kBool);
  loop.yield(loop.body.cast(x, DType::kInt64), result(node));
  loop.reduce(Fold::sum);
  return true;
}

constexpr RuleRow kRows[] = {
    {Op::sum, plain_fold<Fold::sum, -1, -1>},
    {Op::sum_dim_IntList, plain_fold<Fold::sum, 1, 2>},
    {Op::mean, mean<-1, -1>},
    {Op::mean_dim, mean<1, 2>},
    {Op::prod, plain_fold<Fold::prod, -1, -1>},
    {Op::prod_dim_int, plain_fold<Fold::prod, 1, 2>},
    {Op::amax, extremum<Fold::max, Fold::any, 1, 2>},
    {Op::amin, extremum<Fold::min, Fold::all, 1, 2>},
    {Op::max, extremum<Fold::max, Fold::any, -1, -1>},
    {Op::min, extremum<Fold::min, Fold::all, -1, -1>},
    {Op::any, truth<Fold::any, -1, -1>},
    {Op::any_dim, truth<Fold::any, 1, 2>},
    {Op::any_dims, truth<Fold::any, 1, 2>},
    {Op::all, truth<Fold::all, -1, -1>},
    {Op::all_dim, truth<Fold::all, 1, 2>},
    {Op::argmax, arg_extremum<Fold::argmax>},
    {Op::argmin, arg_extremum<Fold::argmin>},
    {Op::var_correction, var},
    {Op::std_correction, std_deviation},
    {Op::var_mean_correction, var_mean},
    {Op::linalg_vector_norm, vector_norm},
    {Op::logsumexp, logsumexp},
    {Op::max_dim, value_and_index<Fold::max, Fold::argmax, Fold::any>},
    {Op::min_dim, value_and_index<Fold::min, Fold::argmin, Fold::all>},
    {Op::norm_ScalarOpt_dim, norm_dim},
    {Op::nansum, nansum},
    {Op::count_nonzero, count_nonzero},
};

}  // namespace

std::span<const RuleRow> reduction_rules() { return kRows; }

}  // namespace braze::loop
