// Pointwise arithmetic, comparison and conversion, with PyTorch's type promotion. Activations: activation.cpp.
#include "braze/loop/lower/pointwise.h"

#include <algorithm>
#include <cmath>

#include "braze/support/check.h"

namespace braze::loop {
namespace {

/// Types of one category of operands; nothing yet: no value.
using MaybeType = std::optional<DType>;

MaybeType join(MaybeType a, DType b) { return a ? op::promote(*a, b) : b; }

/// PyTorch's combine_categories, without complex types.
MaybeType yield_to(MaybeType higher, MaybeType lower) {
  if (!higher) return lower;
  if (!lower || op::is_floating(*higher)) return higher;
  if (*higher == DType::kBool || op::is_floating(*lower)) return op::promote(*higher, *lower);
  return higher;
}

/// The type of a Scalar; doubles have the default dtype.
DType scalar_type(const graph::Arg& a) {
  if (std::holds_alternative<bool>(a)) return DType::kBool;
  return std::holds_alternative<double>(a) ? DType::kFloat32 : DType::kInt64;
}

Term round_half(BodyBuilder& body, Term x, DType half) {
  const Term rounded = body.cast(x, half);
  return body.cast(rounded, DType::kFloat32);
}

}  // namespace

Pointwise::Pointwise(Lowering& lowering, const Node& n, DType type)
    : l(lowering), node(n), common(type), loop(lowering, n, lowering.type(n.results[0]).sizes) {}

Term Pointwise::convert(std::size_t position, bool keep_scalars) {
  const graph::Arg& a = node.args[position];
  const DType type = op::compute_type(common);
  if (const auto* v = std::get_if<ValueId>(&a)) {
    const Term x = loop.broadcast(*v, loop.i);
    const bool rounds = op::is_half(common) && l.type(*v).dtype != common && !(keep_scalars && l.type(*v).dim() == 0);
    return rounds ? round_half(loop.body, x, common) : loop.body.cast(x, type);
  }
  Term x;
  if (const auto* e = std::get_if<SymExpr>(&a)) x = loop.body.cast(loop.body.index(*e), type);
  else if (const auto* b = std::get_if<bool>(&a)) x = loop.body.integer(*b, type);
  else x = loop.body.constant(arg<double>(node, position), type);
  return op::is_half(common) && !keep_scalars ? round_half(loop.body, x, common) : x;
}

Term Pointwise::operator[](std::size_t position) { return convert(position, false); }
Term Pointwise::wide(std::size_t position) { return convert(position, true); }
Term Pointwise::raw(std::size_t position) { return loop.broadcast(arg<ValueId>(node, position), loop.i); }

Term Pointwise::truth(std::size_t position) {
  if (is_value(node, position)) return loop.body.cast(raw(position), DType::kBool);
  return loop.body.integer(number(position) != 0, DType::kBool);
}

double Pointwise::number(std::size_t position) const {
  const auto value = number_arg(node, position);
  BRAZE_CHECK(value, "{}: argument {} is no known number", node.name, position);
  return *value;
}

DType common_type(const Lowering& l, const Node& node, std::span<const std::size_t> positions) {
  MaybeType dims, zero_dims, scalars;
  for (const std::size_t position : positions) {
    const graph::Arg& a = node.args[position];
    const auto* v = std::get_if<ValueId>(&a);
    MaybeType& category = !v ? scalars : l.type(*v).dim() > 0 ? dims : zero_dims;
    category = join(category, v ? l.type(*v).dtype : scalar_type(a));
  }
  const MaybeType type = yield_to(dims, yield_to(zero_dims, scalars));
  BRAZE_CHECK(type, "{} has no operands", node.name);
  return *type;
}

bool has_known_scalars(const Node& node) {
  return std::none_of(node.args.begin(), node.args.end(), [](const graph::Arg& a) {
    const auto* e = std::get_if<SymExpr>(&a);
    return e && !e->is_constant();
  });
}

namespace {

template <ScalarOp kOp>
Term unary(Pointwise& p) {
  return apply(kOp, p[0]);
}

template <ScalarOp kOp>
Term binary(Pointwise& p) {
  return apply(kOp, p[0], p[1]);
}

/// Rounding of integers is the identity.
template <ScalarOp kOp>
Term rounding(Pointwise& p) {
  return op::is_floating(p.common) ? apply(kOp, p[0]) : p[0];
}

/// bool has no order of its own: max is or, min is and.
template <ScalarOp kOp, ScalarOp kBool>
Term extremum(Pointwise& p) {
  return apply(p.common == DType::kBool ? kBool : kOp, p[0], p[1]);
}

/// A map whose operands may be symbolic Scalars.
template <Formula kFormula>
bool arithmetic(Lowering& l, const Node& node) {
  Pointwise p(l, node, l.type(node.results[0]).dtype);
  p.loop.yield(kFormula(p), node.results[0]);
  p.loop.map();
  return true;
}

Term scaled(Term x, double factor) { return factor == 1 ? x : x * factor; }

template <std::size_t kLeft, std::size_t kRight, ScalarOp kOp>
bool add_scaled(Lowering& l, const Node& node) {  // left +- alpha * right
  const auto alpha = number_arg(node, 2);
  const DType type = l.type(node.results[0]).dtype;
  if (!alpha || (type == DType::kBool && *alpha != 1)) return false;
  Pointwise p(l, node, type);
  const Term left = p.wide(kLeft), right = scaled(p.wide(kRight), *alpha);
  p.loop.yield(kOp == ScalarOp::add ? left + right : left - right, node.results[0]);
  p.loop.map();
  return true;
}

Term mul(Pointwise& p) { return p.wide(0) * p.wide(1); }
Term div(Pointwise& p) { return p.wide(0) / p.wide(1); }

/// Integer division raises on a zero divisor: a known one, a checked one, or no kernel.
template <ScalarOp kFloat, ScalarOp kInteger>
bool divide(Lowering& l, const Node& node) {
  const DType type = l.type(node.results[0]).dtype;
  const auto known = is_value(node, 1) ? std::nullopt : number_arg(node, 1);
  const bool checked = !op::is_floating(type) && !(known && *known != 0 && *known != -1);
  if (type == DType::kBool || (checked && !l.options.checks)) return false;
  Pointwise p(l, node, type);
  const Term a = p[0];
  Term b = p[1];
  if (checked) {
    const Term valid = apply(ScalarOp::ne, b, like(b, 0));
    p.loop.body.check(valid);
    b = choose(valid, b, like(b, 1));
  }
  const Term quotient = apply(op::is_floating(type) ? kFloat : kInteger, a, b);
  const bool truncates = op::is_floating(type) && kFloat == ScalarOp::div;
  p.loop.yield(truncates ? apply(ScalarOp::trunc, quotient) : quotient, node.results[0]);
  p.loop.map();
  return true;
}

bool div_mode(Lowering& l, const Node& node) {
  if (is_none(node, 2)) return arithmetic<div>(l, node);
  return arg<std::string>(node, 2) == "floor" ? divide<ScalarOp::floor_div, ScalarOp::floor_div>(l, node)
                                              : divide<ScalarOp::div, ScalarOp::trunc_div>(l, node);
}

Term integer_power(Term x, std::int64_t exponent) {
  Term power = x;
  for (std::int64_t k = 1; k < exponent; ++k) power = power * x;
  return power;
}

/// The cases that PyTorch's kernel treats apart; others by pow.
Term power_of(Term x, double exponent) {
  if (exponent == 0) return like(x, 1);
  if (exponent == 1) return x;
  if (exponent == 2 || exponent == 3) return integer_power(x, static_cast<std::int64_t>(exponent));
  if (exponent == 0.5) return sqrt(x);
  if (exponent == -0.5) return rsqrt(x);
  if (exponent == -1) return apply(ScalarOp::reciprocal, x);
  if (exponent == -2) return apply(ScalarOp::reciprocal, x * x);
  return apply(ScalarOp::pow, x, like(x, exponent));
}

bool pow_scalar(Lowering& l, const Node& node) {
  const auto exponent = number_arg(node, 1);
  const DType type = l.type(node.results[0]).dtype;
  const bool integer = !op::is_floating(type);
  if (!exponent || type == DType::kBool || (integer && *exponent < 0)) return false;
  Pointwise p(l, node, type);
  const Term x = p[0];
  const bool by_ipow = integer && *exponent > 3;
  p.loop.yield(by_ipow ? apply(ScalarOp::ipow, x, like(x, *exponent)) : power_of(x, *exponent), node.results[0]);
  p.loop.map();
  return true;
}

bool pow_tensor(Lowering& l, const Node& node) {
  const DType type = l.type(node.results[0]).dtype;
  if (type == DType::kBool) return false;
  return op::is_floating(type) ? arithmetic<binary<ScalarOp::pow>>(l, node)
                               : arithmetic<binary<ScalarOp::ipow>>(l, node);
}

template <ScalarOp kOp>
bool compare(Lowering& l, const Node& node) {
  constexpr std::size_t kBoth[] = {0, 1};
  Pointwise p(l, node, common_type(l, node, kBoth));
  p.loop.yield(apply(kOp, p[0], p[1]), node.results[0]);
  p.loop.map();
  return true;
}

template <ScalarOp kOp>
Term logical(Pointwise& p) {
  return apply(kOp, p.truth(0), p.truth(1));
}
Term logical_not(Pointwise& p) { return apply(ScalarOp::bit_not, p.truth(0)); }

template <ScalarOp kOp>
Term classify(Pointwise& p) {  // isnan, isinf: false for integers
  const Term x = p.raw(0);
  return op::is_floating(x.type()) ? apply(kOp, x) : p.loop.body.integer(0, DType::kBool);
}
Term signbit(Pointwise& p) {
  const Term x = p.raw(0);
  if (x.type() == DType::kBool) return p.loop.body.integer(0, DType::kBool);
  return op::is_floating(x.type()) ? apply(ScalarOp::signbit, x) : x < 0.0;
}

Term where_of(Pointwise& p) { return choose(p.raw(0), p[1], p[2]); }
Term masked_fill_of(Pointwise& p) { return choose(p.raw(1), p[2], p[0]); }

bool where(Lowering& l, const Node& node) {
  if (l.type(arg<ValueId>(node, 0)).dtype != DType::kBool) return false;
  return arithmetic<where_of>(l, node);
}
bool masked_fill(Lowering& l, const Node& node) {
  if (l.type(arg<ValueId>(node, 1)).dtype != DType::kBool) return false;
  return arithmetic<masked_fill_of>(l, node);
}

Term clamp(Pointwise& p) {
  Term x = p[0];
  if (!is_none(p.node, 1)) x = maximum(x, p[1]);
  if (!is_none(p.node, 2)) x = minimum(x, p[2]);
  return x;
}

Term lerp(Pointwise& p) {
  const Term a = p[0], b = p[1], w = p.wide(2);
  return choose(abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1.0 - w));
}
Term addcmul(Pointwise& p) { return p.wide(0) + scaled(p.wide(1), p.number(3)) * p.wide(2); }
Term addcdiv(Pointwise& p) { return p.wide(0) + scaled(p.wide(1), p.number(3)) / p.wide(2); }

Term logaddexp(Pointwise& p) {
  const Term a = p[0], b = p[1];
  const Term same = both(apply(ScalarOp::isinf, a), equal(a, b));
  return choose(same, a, maximum(a, b) + log1p(exp(-abs(a - b))));
}

bool integer_bits(Lowering& l, const Node& node) { return !op::is_floating(l.type(node.results[0]).dtype); }
template <ScalarOp kOp>
bool bitwise(Lowering& l, const Node& node) {
  return integer_bits(l, node) && arithmetic<binary<kOp>>(l, node);
}
bool bitwise_not(Lowering& l, const Node& node) {
  return integer_bits(l, node) && arithmetic<unary<ScalarOp::bit_not>>(l, node);
}

Term square(Pointwise& p) { return p[0] * p[0]; }
Term frac(Pointwise& p) { return p[0] - apply(ScalarOp::trunc, p[0]); }

/// neg, abs, sign of bool are refused or special in PyTorch.
template <ScalarOp kOp>
bool signed_unary(Lowering& l, const Node& node) {
  return l.type(node.results[0]).dtype != DType::kBool && arithmetic<unary<kOp>>(l, node);
}

/// A conversion that the program asks for rounds, also where fusion later drops the store that would have rounded.
Term rounded(Pointwise& p, std::size_t position) {
  const Term x = p.raw(position);
  const bool is_wider = is_value(p.node, position) && p.l.type(arg<ValueId>(p.node, position)).dtype != p.common;
  return op::is_half(p.common) && is_wider ? round_half(p.loop.body, x, p.common)
                                           : p.loop.body.cast(x, op::compute_type(p.common));
}
Term converted(Pointwise& p) { return rounded(p, 0); }

/// A copy in the result's type and layout: without a change of type it is the operand itself until memory is needed.
bool copy(Lowering& l, const Node& node) {
  const ValueId x = arg<ValueId>(node, 0), result = node.results[0];
  const TensorType &from = l.type(x), &to = l.type(result);
  if (from.device != to.device) return false;
  const bool same = from.dtype == to.dtype;
  if (same && !l.escapes(result)) {
    l.bind_view(result, x, identity_map(to.sizes),
                from.strides == to.strides ? std::optional<SymExpr>(0) : std::nullopt);
    return true;
  }
  if (l.bound(x).form == Bound::Form::number && !l.escapes(result)) {
    BodyBuilder body;
    const Bound& b = l.bound(x);
    const bool floating = op::is_floating(from.dtype);
    const Term before = floating ? body.constant(b.number, from.dtype) : body.integer(b.integer, from.dtype);
    const Scalar& after = body.at(body.cast(before, to.dtype).id);
    l.bind_number(result, after.number, after.integer);
    return true;
  }
  if (l.bound(x).form == Bound::Form::content && to.dtype == DType::kInt64 && !l.escapes(result)) {
    l.bind_content(result, l.bound(x).index);
    return true;
  }
  return arithmetic<converted>(l, node);
}

/// aten::copy(self, src): src broadcast to self, in self's type.
Term copy_from(Pointwise& p) { return rounded(p, 1); }

constexpr RuleRow kRows[] = {
    {Op::add_Tensor, add_scaled<0, 1, ScalarOp::add>},
    {Op::add_Scalar, add_scaled<0, 1, ScalarOp::add>},
    {Op::sub_Tensor, add_scaled<0, 1, ScalarOp::sub>},
    {Op::sub_Scalar, add_scaled<0, 1, ScalarOp::sub>},
    {Op::rsub_Scalar, add_scaled<1, 0, ScalarOp::sub>},
    {Op::mul_Tensor, arithmetic<mul>},
    {Op::mul_Scalar, arithmetic<mul>},
    {Op::div_Tensor, arithmetic<div>},
    {Op::div_Scalar, arithmetic<div>},
    {Op::div_Tensor_mode, div_mode},
    {Op::maximum, arithmetic<extremum<ScalarOp::maximum, ScalarOp::bit_or>>},
    {Op::minimum, arithmetic<extremum<ScalarOp::minimum, ScalarOp::bit_and>>},
    {Op::fmax, arithmetic<extremum<ScalarOp::fmax, ScalarOp::bit_or>>},
    {Op::fmin, arithmetic<extremum<ScalarOp::fmin, ScalarOp::bit_and>>},
    {Op::floor_divide, divide<ScalarOp::floor_div, ScalarOp::floor_div>},
    {Op::remainder_Tensor, divide<ScalarOp::mod, ScalarOp::mod>},
    {Op::remainder_Scalar, divide<ScalarOp::mod, ScalarOp::mod>},
    {Op::fmod_Tensor, divide<ScalarOp::fmod, ScalarOp::fmod>},
    {Op::fmod_Scalar, divide<ScalarOp::fmod, ScalarOp::fmod>},
    {Op::pow_Tensor_Scalar, pow_scalar},
    {Op::pow_Tensor_Tensor, pow_tensor},
    {Op::pow_Scalar, pow_tensor},
    {Op::atan2, arithmetic<binary<ScalarOp::atan2>>},
    {Op::hypot, arithmetic<binary<ScalarOp::hypot>>},
    {Op::copysign_Tensor, arithmetic<binary<ScalarOp::copysign>>},
    {Op::where_self, where},
    {Op::masked_fill_Scalar, masked_fill},
    {Op::masked_fill_Tensor, masked_fill},
    {Op::lerp_Scalar, arithmetic<lerp>},
    {Op::lerp_Tensor, arithmetic<lerp>},
    {Op::addcmul, pointwise<addcmul>},
    {Op::addcdiv, pointwise<addcdiv>},
    {Op::bitwise_and_Tensor, bitwise<ScalarOp::bit_and>},
    {Op::bitwise_or_Tensor, bitwise<ScalarOp::bit_or>},
    {Op::bitwise_xor_Tensor, bitwise<ScalarOp::bit_xor>},
    {Op::bitwise_and_Scalar, bitwise<ScalarOp::bit_and>},
    {Op::bitwise_or_Scalar, bitwise<ScalarOp::bit_or>},
    {Op::bitwise_not, bitwise_not},
    {Op::clamp, arithmetic<clamp>},
    {Op::clamp_Tensor, arithmetic<clamp>},
    {Op::clamp_min, arithmetic<extremum<ScalarOp::maximum, ScalarOp::bit_or>>},
    {Op::clamp_max, arithmetic<extremum<ScalarOp::minimum, ScalarOp::bit_and>>},
    {Op::logaddexp, arithmetic<logaddexp>},
    {Op::eq_Tensor, compare<ScalarOp::eq>},
    {Op::ne_Tensor, compare<ScalarOp::ne>},
    {Op::lt_Tensor, compare<ScalarOp::lt>},
    {Op::le_Tensor, compare<ScalarOp::le>},
    {Op::gt_Tensor, compare<ScalarOp::gt>},
    {Op::ge_Tensor, compare<ScalarOp::ge>},
    {Op::eq_Scalar, compare<ScalarOp::eq>},
    {Op::ne_Scalar, compare<ScalarOp::ne>},
    {Op::lt_Scalar, compare<ScalarOp::lt>},
    {Op::le_Scalar, compare<ScalarOp::le>},
    {Op::gt_Scalar, compare<ScalarOp::gt>},
    {Op::ge_Scalar, compare<ScalarOp::ge>},
    {Op::logical_and, arithmetic<logical<ScalarOp::bit_and>>},
    {Op::logical_or, arithmetic<logical<ScalarOp::bit_or>>},
    {Op::logical_xor, arithmetic<logical<ScalarOp::bit_xor>>},
    {Op::logical_not, arithmetic<logical_not>},
    {Op::isnan, arithmetic<classify<ScalarOp::isnan>>},
    {Op::isinf, arithmetic<classify<ScalarOp::isinf>>},
    {Op::signbit, arithmetic<signbit>},
    {Op::neg, signed_unary<ScalarOp::neg>},
    {Op::abs, signed_unary<ScalarOp::abs>},
    {Op::sign, signed_unary<ScalarOp::sign>},
    {Op::floor, arithmetic<rounding<ScalarOp::floor>>},
    {Op::ceil, arithmetic<rounding<ScalarOp::ceil>>},
    {Op::round, arithmetic<rounding<ScalarOp::round>>},
    {Op::trunc, arithmetic<rounding<ScalarOp::trunc>>},
    {Op::frac, arithmetic<frac>},
    {Op::square, arithmetic<square>},
    {Op::exp, arithmetic<unary<ScalarOp::exp>>},
    {Op::exp2, arithmetic<unary<ScalarOp::exp2>>},
    {Op::expm1, arithmetic<unary<ScalarOp::expm1>>},
    {Op::log, arithmetic<unary<ScalarOp::log>>},
    {Op::log2, arithmetic<unary<ScalarOp::log2>>},
    {Op::log10, arithmetic<unary<ScalarOp::log10>>},
    {Op::log1p, arithmetic<unary<ScalarOp::log1p>>},
    {Op::sqrt, arithmetic<unary<ScalarOp::sqrt>>},
    {Op::rsqrt, arithmetic<unary<ScalarOp::rsqrt>>},
    {Op::reciprocal, arithmetic<unary<ScalarOp::reciprocal>>},
    {Op::sin, arithmetic<unary<ScalarOp::sin>>},
    {Op::cos, arithmetic<unary<ScalarOp::cos>>},
    {Op::tan, arithmetic<unary<ScalarOp::tan>>},
    {Op::asin, arithmetic<unary<ScalarOp::asin>>},
    {Op::acos, arithmetic<unary<ScalarOp::acos>>},
    {Op::atan, arithmetic<unary<ScalarOp::atan>>},
    {Op::sinh, arithmetic<unary<ScalarOp::sinh>>},
    {Op::cosh, arithmetic<unary<ScalarOp::cosh>>},
    {Op::tanh, arithmetic<unary<ScalarOp::tanh>>},
    {Op::asinh, arithmetic<unary<ScalarOp::asinh>>},
    {Op::acosh, arithmetic<unary<ScalarOp::acosh>>},
    {Op::atanh, arithmetic<unary<ScalarOp::atanh>>},
    {Op::sigmoid, arithmetic<unary<ScalarOp::sigmoid>>},
    {Op::erf, arithmetic<unary<ScalarOp::erf>>},
    {Op::erfc, arithmetic<unary<ScalarOp::erfc>>},
    {Op::erfinv, arithmetic<unary<ScalarOp::erfinv>>},
    {Op::lgamma, arithmetic<unary<ScalarOp::lgamma>>},
    {Op::digamma, arithmetic<unary<ScalarOp::digamma>>},
    {Op::positive, copy},
    {Op::_to_copy, copy},
    {Op::clone, copy},
    {Op::lift_fresh_copy, copy},
    {Op::copy, arithmetic<copy_from>},
};

}  // namespace

std::span<const RuleRow> pointwise_rules() { return kRows; }

}  // namespace braze::loop
