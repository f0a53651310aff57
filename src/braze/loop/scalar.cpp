// The table of scalar operators as the loop level reads it: names, arities, type rules, loop variables.
#include <array>

#include "braze/loop/loop.h"

namespace braze::loop {
namespace {

constexpr TypeRule kRuleSame = TypeRule::same, kRuleBoolean = TypeRule::boolean, kRuleCast = TypeRule::cast,
                   kRuleFloat = TypeRule::floating, kRuleBits = TypeRule::bits, kRuleSpecial = TypeRule::special;

struct Row {
  std::string_view name;
  int arity;
  TypeRule rule;
};

#define BRAZE_RULE_same kRuleSame
#define BRAZE_RULE_boolean kRuleBoolean
#define BRAZE_RULE_cast kRuleCast
#define BRAZE_RULE_float kRuleFloat
#define BRAZE_RULE_bits kRuleBits
#define BRAZE_RULE_special kRuleSpecial
constexpr Row kRows[] = {
    {"constant", 0, kRuleSpecial},
    {"index", 0, kRuleSpecial},
    {"load", -1, kRuleSpecial},
#define SCALAR(id, arity, type, ...) {#id, arity, BRAZE_RULE_##type},
#include "braze/op/scalar_ops.def"
#undef SCALAR
};

constexpr std::size_t kCachedVariables = 32;

std::array<SymExpr, kCachedVariables> variables(char prefix) {
  std::array<SymExpr, kCachedVariables> all;
  for (std::size_t i = 0; i < kCachedVariables; ++i) all[i] = SymExpr::symbol(prefix + std::to_string(i));
  return all;
}

template <char kPrefix>
SymExpr variable(std::size_t position) {
  static const std::array<SymExpr, kCachedVariables> cached = variables(kPrefix);
  return position < kCachedVariables ? cached[position] : SymExpr::symbol(kPrefix + std::to_string(position));
}

}  // namespace

std::string_view to_text(ScalarOp op) { return kRows[static_cast<std::size_t>(op)].name; }
int arity(ScalarOp op) { return kRows[static_cast<std::size_t>(op)].arity; }
TypeRule type_rule(ScalarOp op) { return kRows[static_cast<std::size_t>(op)].rule; }

std::optional<ScalarOp> find_scalar_op(std::string_view text) {
  for (std::size_t i = 0; i < std::size(kRows); ++i) {
    if (kRows[i].name == text) return static_cast<ScalarOp>(i);
  }
  return std::nullopt;
}

std::string_view to_text(Fold fold) {
  constexpr std::string_view kNames[] = {"sum", "prod", "max", "min", "argmax", "argmin", "any", "all"};
  return kNames[static_cast<std::size_t>(fold)];
}

std::string_view to_text(Kind kind) {
  constexpr std::string_view kNames[] = {"map", "reduce", "scatter", "external"};
  return kNames[static_cast<std::size_t>(kind)];
}

SymExpr space_var(std::size_t position) { return variable<'i'>(position); }
SymExpr reduced_var(std::size_t position) { return variable<'r'>(position); }
SymExpr scalar_var(ScalarId id) { return variable<'@'>(id.index); }

}  // namespace braze::loop
