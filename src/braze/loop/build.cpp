// Terms and the merging of equal scalar nodes.
#include "braze/loop/build.h"

#include <bit>
#include <cmath>

#include "braze/support/check.h"

namespace braze::loop {
namespace {

float round_bits(float value, int dropped) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t half = (1u << (dropped - 1)) - 1 + ((bits >> dropped) & 1);
  return std::bit_cast<float>((bits + half) & ~((1u << dropped) - 1));
}

float round_half(float value) {
  if (!std::isfinite(value) || value == 0) return value;
  const float size = std::fabs(value);
  if (size < 0x1p-14f) return std::nearbyint(value * 0x1p24f) * 0x1p-24f;
  const float rounded = round_bits(value, 13);
  return std::fabs(rounded) > 65504.f ? std::copysign(INFINITY, value) : rounded;
}

DType result_type(ScalarOp op, std::span<const Term> operands) {
  if (type_rule(op) == TypeRule::boolean) return DType::kBool;
  return op == ScalarOp::select ? operands[1].type() : operands[0].type();
}

bool same_node(const Scalar& a, const Scalar& b) {
  return a.op == b.op && a.type == b.type && a.operands == b.operands && a.integer == b.integer &&
         std::bit_cast<std::uint64_t>(a.number) == std::bit_cast<std::uint64_t>(b.number) && a.tensor == b.tensor &&
         a.indices == b.indices;
}

}  // namespace

double round_to(double value, DType type) {
  switch (type) {
    case DType::kFloat32: return static_cast<float>(value);
    case DType::kBFloat16: return std::isnan(value) ? value : round_bits(static_cast<float>(value), 16);
    case DType::kFloat16: return round_half(static_cast<float>(value));
    default: return value;
  }
}

std::int64_t wrap_to(std::int64_t value, DType type) {
  switch (type) {
    case DType::kBool: return value != 0;
    case DType::kUInt8: return static_cast<std::uint8_t>(value);
    case DType::kInt8: return static_cast<std::int8_t>(value);
    case DType::kInt16: return static_cast<std::int16_t>(value);
    case DType::kInt32: return static_cast<std::int32_t>(value);
    default: return value;
  }
}

Term BodyBuilder::add(Scalar node) {
  for (std::size_t i = body_.nodes.size(); i-- > 0;) {
    if (same_node(body_.nodes[i], node)) return {this, ScalarId(i)};
  }
  body_.nodes.push_back(std::move(node));
  return {this, ScalarId(body_.nodes.size() - 1)};
}

Term BodyBuilder::constant(double value, DType type) {
  if (type == DType::kBool) return integer(value != 0, type);  // NaN is true
  if (!op::is_floating(type))
    return integer(std::fabs(value) < 0x1p63 ? static_cast<std::int64_t>(value) : INT64_MIN, type);
  Scalar node;
  node.type = type;
  node.number = round_to(value, type);
  return add(std::move(node));
}

Term BodyBuilder::integer(std::int64_t value, DType type) {
  if (op::is_floating(type)) return constant(static_cast<double>(value), type);
  Scalar node;
  node.type = type;
  node.integer = wrap_to(value, type);
  return add(std::move(node));
}

Term BodyBuilder::index(const SymExpr& e) {
  if (e.is_constant()) return integer(e.constant(), DType::kInt64);
  Scalar node;
  node.op = ScalarOp::index;
  node.type = DType::kInt64;
  node.indices = {e};
  return add(std::move(node));
}

Term BodyBuilder::load(TensorId tensor, DType type, std::vector<SymExpr> indices) {
  Scalar node;
  node.op = ScalarOp::load;
  node.type = op::compute_type(type);
  node.tensor = tensor;
  node.indices = std::move(indices);
  return add(std::move(node));
}

Term BodyBuilder::load_if(Term mask, TensorId tensor, DType type, std::vector<SymExpr> indices) {
  Scalar node;
  node.op = ScalarOp::load;
  node.type = op::compute_type(type);
  node.operands = {mask.id};
  node.tensor = tensor;
  node.indices = std::move(indices);
  return add(std::move(node));
}

Term BodyBuilder::op(ScalarOp op, std::span<const Term> operands) {
  Scalar node;
  node.op = op;
  node.type = result_type(op, operands);
  node.operands.reserve(operands.size());
  for (const Term& t : operands) node.operands.push_back(t.id);
  return add(std::move(node));
}

Term BodyBuilder::cast(Term x, DType type) {
  if (x.type() == type) return x;
  const Scalar& from = at(x.id);
  if (from.op == ScalarOp::constant) {
    return op::is_floating(from.type) ? constant(from.number, type) : integer(from.integer, type);
  }
  Scalar node;
  node.op = ScalarOp::cast;
  node.type = type;
  node.operands = {x.id};
  return add(std::move(node));
}

void BodyBuilder::yield(Term x) { body_.yields.push_back(x.id); }
void BodyBuilder::check(Term condition) { body_.checks.push_back(condition.id); }

Term apply(ScalarOp op, Term a) { return a.builder->op(op, std::span(&a, 1)); }

Term apply(ScalarOp op, Term a, Term b) {
  BRAZE_CHECK(a.type() == b.type(), "{} of {} and {}", to_text(op), to_text(a.type()), to_text(b.type()));
  const Term operands[] = {a, b};
  return a.builder->op(op, operands);
}

Term like(Term a, double value) { return a.builder->constant(value, a.type()); }

Term operator+(Term a, Term b) { return apply(a.type() == DType::kBool ? ScalarOp::bit_or : ScalarOp::add, a, b); }
Term operator-(Term a, Term b) { return apply(ScalarOp::sub, a, b); }
Term operator*(Term a, Term b) { return apply(a.type() == DType::kBool ? ScalarOp::bit_and : ScalarOp::mul, a, b); }

Term choose(Term condition, Term yes, Term no) {
  BRAZE_CHECK(yes.type() == no.type(), "select of {} and {}", to_text(yes.type()), to_text(no.type()));
  const Term operands[] = {condition, yes, no};
  return condition.builder->op(ScalarOp::select, operands);
}

}  // namespace braze::loop
