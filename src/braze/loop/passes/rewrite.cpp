// The one walk that all body passes share.
#include "braze/loop/passes/rewrite.h"

#include "braze/support/check.h"

namespace braze::loop {
namespace {

using Numbers = std::vector<ScalarId>;  // old to new

bool names_scalar(const SymExpr& e) {
  if (e.is_constant()) return false;
  std::vector<std::string> names;
  sym::collect_symbols(e, names);
  for (const std::string& name : names)
    if (name[0] == '@') return true;
  return false;
}

SymExpr renumber(const SymExpr& e, const Numbers& numbers) {
  if (!names_scalar(e)) return e;
  return sym::substitute(e, [&](std::string_view name) -> std::optional<SymExpr> {
    if (name[0] != '@') return std::nullopt;
    return scalar_var(numbers.at(std::stoul(std::string(name.substr(1)))));
  });
}

Scalar renumber(Scalar s, const Numbers& numbers) {
  for (ScalarId& id : s.operands) id = numbers[id.index];
  for (SymExpr& e : s.indices) e = renumber(e, numbers);
  return s;
}

/// Scalars in the order in which the text names them: depth first from checks and yields.
struct DepthFirst {
  explicit DepthFirst(LoopOp& o) : op(o), numbers(o.body.nodes.size()) {}

  void visit_named(const SymExpr& e) {
    if (e.is_constant()) return;
    std::vector<std::string> names;
    sym::collect_symbols(e, names);
    for (const std::string& name : names)
      if (name[0] == '@') visit(ScalarId(std::stoul(name.substr(1))));
  }
  void visit(ScalarId id) {
    if (!numbers[id.index].is_none()) return;
    Scalar& s = op.body.nodes[id.index];
    for (const SymExpr& e : s.indices) visit_named(e);
    for (const ScalarId operand : s.operands) visit(operand);
    ordered.push_back(renumber(std::move(s), numbers));
    numbers[id.index] = ScalarId(ordered.size() - 1);
  }
  void run() {
    for (const ScalarId id : op.body.checks) visit(id);
    for (const SymExpr& e : op.targets) visit_named(e);
    for (const ScalarId id : op.body.yields) visit(id);
    op.body.nodes = std::move(ordered);
    for (ScalarId& id : op.body.yields) id = numbers[id.index];
    for (ScalarId& id : op.body.checks) id = numbers[id.index];
    for (SymExpr& e : op.targets) e = renumber(e, numbers);
  }

  LoopOp& op;
  Numbers numbers;
  std::vector<Scalar> ordered;
};

}  // namespace

Term keep(BodyBuilder& body, Scalar s) { return body.add(std::move(s)); }

void order_body(LoopOp& op) { DepthFirst(op).run(); }

void rewrite_body(LoopOp& op, const std::function<Term(BodyBuilder&, Scalar)>& visit) {
  BodyBuilder builder;
  Numbers numbers;
  for (Scalar& s : op.body.nodes) {
    const DType type = s.type;
    const Term term = visit(builder, renumber(std::move(s), numbers));
    BRAZE_CHECK(term.type() == type, "a rewrite keeps the type {}", to_text(type));
    numbers.push_back(term.id);
  }
  for (const ScalarId id : op.body.yields) builder.yield({&builder, numbers[id.index]});
  for (const ScalarId id : op.body.checks) builder.check({&builder, numbers[id.index]});
  for (SymExpr& e : op.targets) e = renumber(e, numbers);
  op.body = builder.take();
  order_body(op);
}

}  // namespace braze::loop
