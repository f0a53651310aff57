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

void mark_named(const SymExpr& e, std::vector<bool>& used) {
  if (e.is_constant()) return;
  std::vector<std::string> names;
  sym::collect_symbols(e, names);
  for (const std::string& name : names)
    if (name[0] == '@') used.at(std::stoul(name.substr(1))) = true;
}

void drop_unused(LoopOp& op) {
  Body& body = op.body;
  std::vector<bool> used(body.nodes.size());
  for (const ScalarId id : body.yields) used[id.index] = true;
  for (const ScalarId id : body.checks) used[id.index] = true;
  for (const SymExpr& e : op.targets) mark_named(e, used);
  for (std::size_t k = body.nodes.size(); k-- > 0;) {
    if (!used[k]) continue;
    for (const ScalarId id : body.nodes[k].operands) used[id.index] = true;
    for (const SymExpr& e : body.nodes[k].indices) mark_named(e, used);
  }
  Numbers numbers(body.nodes.size());
  std::vector<Scalar> kept;
  for (std::size_t k = 0; k < body.nodes.size(); ++k) {
    if (!used[k]) continue;
    kept.push_back(renumber(std::move(body.nodes[k]), numbers));
    numbers[k] = ScalarId(kept.size() - 1);
  }
  body.nodes = std::move(kept);
  for (ScalarId& id : body.yields) id = numbers[id.index];
  for (ScalarId& id : body.checks) id = numbers[id.index];
  for (SymExpr& e : op.targets) e = renumber(e, numbers);
}

}  // namespace

Term keep(BodyBuilder& body, Scalar s) { return body.add(std::move(s)); }

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
  drop_unused(op);
}

}  // namespace braze::loop
