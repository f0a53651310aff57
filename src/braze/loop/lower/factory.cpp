// Tensors made of nothing: known numbers and positions need no memory until somebody asks for it.
#include "braze/loop/lower/args.h"
#include "braze/loop/lower/lowering.h"

namespace braze::loop {
namespace {

const TensorType& type_of(const Lowering& l, const Node& node) { return l.type(node.results[0]); }

bool bind_fill(Lowering& l, const Node& node, const graph::Arg& fill) {
  const DType type = type_of(l, node).dtype;
  const ValueId result = node.results[0];
  if (const auto* e = std::get_if<SymExpr>(&fill); e && !e->is_constant()) {
    if (!op::is_integral(type)) return false;
    l.bind_content(result, *e);
    return true;
  }
  BodyBuilder body;
  Term term;
  if (const auto* e = std::get_if<SymExpr>(&fill)) term = body.integer(e->constant(), type);
  else if (const auto* b = std::get_if<bool>(&fill)) term = body.integer(*b, type);
  else if (const auto* d = std::get_if<double>(&fill)) term = body.constant(*d, type);
  else return false;
  l.bind_number(result, body.at(term.id).number, body.at(term.id).integer);
  return true;
}

template <std::size_t kPosition>
bool fill_with(Lowering& l, const Node& node) {
  return bind_fill(l, node, node.args[kPosition]);
}
template <int kNumber>
bool fill(Lowering& l, const Node& node) {
  return bind_fill(l, node, SymExpr(kNumber));
}

bool is_int(const Node& node, std::size_t position) { return std::holds_alternative<SymExpr>(node.args[position]); }

/// start + step * i0; the number of elements is the result's size.
bool arange_of(Lowering& l, const Node& node, const graph::Arg& start, const graph::Arg& step) {
  const TensorType& type = type_of(l, node);
  const auto *first = std::get_if<SymExpr>(&start), *by = std::get_if<SymExpr>(&step);
  const SymExpr position = type.sizes[0].is_value(1) ? SymExpr(0) : space_var(0);
  if (op::is_integral(type.dtype)) {
    if (!first || !by) return false;
    l.bind_content(node.results[0], *first + *by * position);
    return true;
  }
  Loop loop(l, node, type.sizes);
  const auto number = [&](const graph::Arg& a) {
    if (const auto* e = std::get_if<SymExpr>(&a)) return loop.body.cast(loop.body.index(*e), DType::kFloat64);
    return loop.body.constant(std::get<double>(a), DType::kFloat64);
  };
  const Term at = loop.body.cast(loop.body.index(loop.i[0]), DType::kFloat64);
  loop.yield(number(start) + number(step) * at, node.results[0]);
  loop.map();
  return true;
}

bool is_real(const graph::Arg& a) { return std::holds_alternative<SymExpr>(a) || std::holds_alternative<double>(a); }

bool arange(Lowering& l, const Node& node) {
  return (is_int(node, 0) || !op::is_integral(type_of(l, node).dtype)) && arange_of(l, node, SymExpr(0), SymExpr(1));
}
bool arange_start(Lowering& l, const Node& node) {
  return is_real(node.args[0]) && arange_of(l, node, node.args[0], SymExpr(1));
}
bool arange_step(Lowering& l, const Node& node) {
  return is_real(node.args[0]) && is_real(node.args[2]) && arange_of(l, node, node.args[0], node.args[2]);
}

bool eye(Lowering& l, const Node& node) {
  Loop loop(l, node, type_of(l, node).sizes);
  const Term hit = equal(loop.body.index(loop.i[0]), loop.body.index(loop.i[1]));
  loop.yield(hit, node.results[0]);
  loop.map();
  return true;
}

/// From both ends towards the middle, as PyTorch's kernel.
bool linspace(Lowering& l, const Node& node) {
  const TensorType& type = type_of(l, node);
  const auto start = number_arg(node, 0), end = number_arg(node, 1);
  if (!start || !end || !op::is_floating(type.dtype) || !type.sizes[0].is_constant()) return false;
  const std::int64_t steps = type.sizes[0].constant();
  if (steps <= 1) return steps == 1 && bind_fill(l, node, *start);
  Loop loop(l, node, type.sizes);
  const DType compute = op::compute_type(type.dtype);
  const double low = round_to(*start, compute), high = round_to(*end, compute);
  const double step = round_to(round_to(high - low, compute) / static_cast<double>(steps - 1), compute);
  const Term at = loop.body.index(loop.i[0]);
  const Term from_start = loop.body.cast(at, compute),
             from_end = loop.body.cast(loop.body.index(SymExpr(steps - 1) - loop.i[0]), compute);
  loop.yield(choose(at < static_cast<double>(steps / 2), low + step * from_start, high - step * from_end),
             node.results[0]);
  loop.map();
  return true;
}

constexpr RuleRow kRows[] = {
    {Op::arange, arange},
    {Op::arange_start, arange_start},
    {Op::arange_start_step, arange_step},
    {Op::full, fill_with<1>},
    {Op::full_like, fill_with<1>},
    {Op::new_full, fill_with<2>},
    {Op::scalar_tensor, fill_with<0>},
    {Op::zeros, fill<0>},
    {Op::zeros_like, fill<0>},
    {Op::new_zeros, fill<0>},
    {Op::ones, fill<1>},
    {Op::ones_like, fill<1>},
    {Op::new_ones, fill<1>},
    {Op::empty_memory_format, fill<0>},
    {Op::empty_like, fill<0>},
    {Op::new_empty, fill<0>},
    {Op::new_empty_strided, fill<0>},
    {Op::empty_strided, fill<0>},
    {Op::eye, eye},
    {Op::linspace, linspace},
};

}  // namespace

std::span<const RuleRow> factory_rules() { return kRows; }

}  // namespace braze::loop
