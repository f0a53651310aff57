// Scalar simplification: constants folded, neutral operations dropped, equal scalars merged (by the builder), checks
// that always hold dropped. Only rewrites that keep every bit of the value, NaN and signed zeros included.
#include <cmath>

#include "braze/loop/interpret.h"
#include "braze/loop/passes.h"
#include "braze/loop/passes/rewrite.h"

namespace braze::loop {
namespace {

bool is_constant(const BodyBuilder& b, ScalarId id) { return b.at(id).op == ScalarOp::constant; }
bool is_value(const BodyBuilder& b, ScalarId id, int value) {
  const Scalar& s = b.at(id);
  if (s.op != ScalarOp::constant) return false;
  return op::is_floating(s.type) ? s.number == value && (value != 0 || !std::signbit(s.number)) : s.integer == value;
}

/// Exact on every machine, so that folding here equals computing there.
bool is_foldable(ScalarOp op) {
  switch (op) {
    case ScalarOp::add:
    case ScalarOp::sub:
    case ScalarOp::mul:
    case ScalarOp::div:
    case ScalarOp::neg:
    case ScalarOp::abs:
    case ScalarOp::sqrt:
    case ScalarOp::maximum:
    case ScalarOp::minimum:
    case ScalarOp::cast:
    case ScalarOp::select:
    case ScalarOp::bit_and:
    case ScalarOp::bit_or:
    case ScalarOp::bit_xor:
    case ScalarOp::bit_not: return true;
    default: return type_rule(op) == TypeRule::boolean;
  }
}

std::optional<Term> fold(BodyBuilder& b, const Scalar& s) {
  if (s.operands.empty() || !is_foldable(s.op)) return std::nullopt;
  std::vector<Number> operands;
  std::vector<DType> types;
  for (const ScalarId id : s.operands) {
    if (!is_constant(b, id)) return std::nullopt;
    operands.push_back({b.at(id).number, b.at(id).integer});
    types.push_back(b.at(id).type);
  }
  const Number value = evaluate(s.op, s.type, operands, types);
  return op::is_floating(s.type) ? b.constant(value.number, s.type) : b.integer(value.integer, s.type);
}

/// The operand that an operation merely hands on.
std::optional<ScalarId> passed_on(const BodyBuilder& b, const Scalar& s) {
  const auto operand = [&](std::size_t k) { return s.operands[k]; };
  const bool is_bool = s.type == DType::kBool;
  switch (s.op) {
    case ScalarOp::mul:
      if (is_value(b, operand(1), 1)) return operand(0);
      if (is_value(b, operand(0), 1)) return operand(1);
      return std::nullopt;
    case ScalarOp::div: return is_value(b, operand(1), 1) ? std::optional(operand(0)) : std::nullopt;
    case ScalarOp::sub: return is_value(b, operand(1), 0) ? std::optional(operand(0)) : std::nullopt;
    case ScalarOp::add:
      if (op::is_floating(s.type)) return std::nullopt;  // -0.0 + 0.0 is 0.0
      if (is_value(b, operand(1), 0)) return operand(0);
      return is_value(b, operand(0), 0) ? std::optional(operand(1)) : std::nullopt;
    case ScalarOp::bit_and:
      if (operand(0) == operand(1) || (is_bool && is_value(b, operand(1), 1))) return operand(0);
      return is_bool && is_value(b, operand(0), 1) ? std::optional(operand(1)) : std::nullopt;
    case ScalarOp::bit_or:
      if (operand(0) == operand(1) || (is_bool && is_value(b, operand(1), 0))) return operand(0);
      return is_bool && is_value(b, operand(0), 0) ? std::optional(operand(1)) : std::nullopt;
    case ScalarOp::select:
      if (operand(1) == operand(2)) return operand(1);
      if (!is_constant(b, operand(0))) return std::nullopt;
      return b.at(operand(0)).integer ? operand(1) : operand(2);
    default: return std::nullopt;
  }
}

Term simplify(BodyBuilder& b, Scalar s) {
  if (const auto folded = fold(b, s)) return *folded;
  if (s.op == ScalarOp::load && !s.operands.empty() && is_constant(b, s.operands[0])) {
    if (b.at(s.operands[0]).integer == 0) return b.integer(0, s.type);
    s.operands.clear();
    return keep(b, std::move(s));
  }
  if (s.op == ScalarOp::index) return b.index(s.indices[0]);
  if (const auto id = passed_on(b, s)) return {&b, *id};
  return keep(b, std::move(s));
}

}  // namespace

void simplify_bodies(LoopProgram& p) {
  for (LoopOp& op : p.ops) {
    if (op.kind == Kind::external) continue;
    rewrite_body(op, simplify);
    std::erase_if(op.body.checks, [&](ScalarId id) {
      const Scalar& s = op.body.nodes[id.index];
      return s.op == ScalarOp::constant && s.integer != 0;
    });
  }
}

}  // namespace braze::loop
