// Index simplification: what the ranges of loop variables and sizes say about divisions in indices.
#include "braze/loop/lower/index_map.h"
#include "braze/loop/passes.h"
#include "braze/loop/passes/rewrite.h"

namespace braze::loop {
namespace {

sym::Ranges ranges_of(const LoopProgram& p, const LoopOp& op) {
  sym::Ranges ranges;
  for (const graph::Symbol& s : p.symbols) ranges.push_back({s.name, s.low, s.high, std::nullopt});
  add_ranges(ranges, op.space, op.reduced);
  return ranges;
}

bool is_plain(const SymExpr& e, const LoopOp& op) {
  if (e.is_constant()) return true;
  for (std::size_t k = 0; k < op.space.size(); ++k)
    if (e == space_var(k)) return true;
  return false;
}

/// A comparison of two known positions whose answer is the same everywhere.
std::optional<bool> decide(const BodyBuilder& b, const Scalar& s, const sym::Ranges& ranges) {
  if (s.operands.size() != 2) return std::nullopt;
  const auto known = [&](ScalarId id) -> std::optional<SymExpr> {
    const Scalar& operand = b.at(id);
    if (operand.op == ScalarOp::index) return operand.indices[0];
    if (operand.op == ScalarOp::constant && operand.type == DType::kInt64) return SymExpr(operand.integer);
    return std::nullopt;
  };
  const auto x = known(s.operands[0]), y = known(s.operands[1]);
  if (!x || !y) return std::nullopt;
  const auto answer = [&](bool yes, bool no) {
    return yes ? std::optional(true) : no ? std::optional(false) : std::nullopt;
  };
  switch (s.op) {
    case ScalarOp::lt: return answer(sym::is_less(*x, *y, ranges), sym::is_less_equal(*y, *x, ranges));
    case ScalarOp::le: return answer(sym::is_less_equal(*x, *y, ranges), sym::is_less(*y, *x, ranges));
    case ScalarOp::gt: return answer(sym::is_less(*y, *x, ranges), sym::is_less_equal(*x, *y, ranges));
    case ScalarOp::ge: return answer(sym::is_less_equal(*y, *x, ranges), sym::is_less(*x, *y, ranges));
    default: return std::nullopt;
  }
}

}  // namespace

void simplify_indices(LoopProgram& p) {
  for (LoopOp& op : p.ops) {
    if (op.kind == Kind::external) continue;
    std::optional<sym::Ranges> ranges;
    const auto simpler = [&](SymExpr& e) {
      if (is_plain(e, op)) return;
      if (!ranges) ranges = ranges_of(p, op);
      e = sym::simplify(e, *ranges);
    };
    rewrite_body(op, [&](BodyBuilder& b, Scalar s) {
      for (SymExpr& e : s.indices) simpler(e);
      if (type_rule(s.op) == TypeRule::boolean && s.operands.size() == 2) {
        if (!ranges) ranges = ranges_of(p, op);
        if (const auto answer = decide(b, s, *ranges)) return b.integer(*answer, DType::kBool);
      }
      return keep(b, std::move(s));
    });
    for (SymExpr& e : op.targets) simpler(e);
  }
}

}  // namespace braze::loop
