// Expressions as text, and walks over whole expressions: evaluate, substitute, collect.
#include <algorithm>

#include "braze/support/check.h"
#include "braze/support/error.h"
#include "braze/sym/node.h"

namespace braze::sym {
namespace {

constexpr std::string_view kFunctions[] = {"", "", "floordiv", "mod", "min", "max", ""};  // by Kind

void print(const SymExpr& e, std::string& out);

void print_list(std::span<const SymExpr> list, std::string_view separator, std::string& out) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i) out += separator;
    print(list[i], out);
  }
}

void print_term(std::int64_t coefficient, const SymExpr& monomial, bool first, std::string& out) {
  if (first) out += coefficient == -1 ? "-" : "";
  else out += coefficient < 0 ? " - " : " + ";
  const std::int64_t shown = first || coefficient > 0 ? coefficient : -coefficient;
  if (shown != 1 && shown != -1) out += std::to_string(shown) + "*";
  print(monomial, out);
}

void print(const SymExpr& e, std::string& out) {
  if (e.is_constant()) {
    out += std::to_string(e.constant());
    return;
  }
  const SymNode& node = *e.node();
  switch (node.kind) {
    case Kind::kSymbol: out += node.name; return;
    case Kind::kProduct: return print_list(node.operands, "*", out);
    case Kind::kSum:
      for (std::size_t i = 0; i < node.operands.size(); ++i)
        print_term(node.coefficients[i], node.operands[i], i == 0, out);
      if (node.constant > 0) out += " + " + std::to_string(node.constant);
      if (node.constant < 0) out += " - " + std::to_string(node.constant).substr(1);
      return;
    default:
      (out += kFunctions[static_cast<int>(node.kind)]) += '(';
      print_list(node.operands, ", ", out);
      out += ')';
  }
}

SymExpr fold(Kind kind, const std::vector<SymExpr>& operands) {
  SymExpr result = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) {
    switch (kind) {
      case Kind::kProduct: result = result * operands[i]; break;
      case Kind::kFloorDiv: result = floor_div(result, operands[i]); break;
      case Kind::kMod: result = mod(result, operands[i]); break;
      case Kind::kMin: result = min(result, operands[i]); break;
      case Kind::kMax: result = max(result, operands[i]); break;
      default: BRAZE_CHECK(false, "kind {} is no fold", static_cast<int>(kind));
    }
  }
  return result;
}

class Parser {
 public:
  explicit Parser(support::Scanner& in) : in_(in) {}

  SymExpr sum() {
    SymExpr result = in_.accept("-") ? SymExpr(-1) * term() : term();
    for (;;) {
      if (in_.accept("+")) result = result + term();
      else if (in_.accept("-")) result = result - term();
      else return result;
    }
  }

 private:
  SymExpr term() {
    SymExpr result = factor();
    while (in_.accept("*")) result = result * factor();
    return result;
  }

  SymExpr factor() {
    if (in_.accept("(")) {
      SymExpr inner = sum();
      in_.expect(")");
      return inner;
    }
    const bool scalar = in_.accept("@");
    const std::string_view word = in_.identifier();
    if (scalar) return SymExpr::symbol("@" + std::string(word));
    if (word[0] >= '0' && word[0] <= '9') return number(word);
    for (Kind kind : {Kind::kFloorDiv, Kind::kMod, Kind::kMin, Kind::kMax})
      if (word == kFunctions[static_cast<int>(kind)] && in_.peek("(")) return call(kind);
    return SymExpr::symbol(word);
  }

  SymExpr number(std::string_view digits) {
    std::int64_t value = 0;
    for (char c : digits) {
      if (c < '0' || c > '9') in_.fail("an expression");
      value = checked_add(checked_mul(value, 10), c - '0');
    }
    return value;
  }

  SymExpr call(Kind kind) {
    std::vector<SymExpr> operands;
    in_.expect("(");
    do operands.push_back(sum());
    while (in_.accept(","));
    in_.expect(")");
    const bool division = kind == Kind::kFloorDiv || kind == Kind::kMod;
    if (division && (operands.size() != 2 || (operands[1].is_constant() && operands[1].constant() <= 0)))
      in_.fail("two operands, the second positive");
    return fold(kind, operands);
  }

  support::Scanner& in_;
};

}  // namespace

std::string to_text(const SymExpr& e) {
  std::string out;
  print(e, out);
  return out;
}

SymExpr parse_expr(support::Scanner& in) { return Parser(in).sum(); }

SymExpr parse_expr(std::string_view text) {
  support::Scanner in(text);
  SymExpr result = parse_expr(in);
  if (!in.at_end()) in.fail("the end of the expression");
  return result;
}

std::int64_t evaluate(const SymExpr& e, const std::function<std::int64_t(std::string_view)>& value_of) {
  if (e.is_constant()) return e.constant();
  const SymNode& node = *e.node();
  if (node.kind == Kind::kSymbol) return value_of(node.name);
  std::vector<std::int64_t> values;
  for (const SymExpr& operand : node.operands) values.push_back(evaluate(operand, value_of));
  if (node.kind == Kind::kSum) {
    std::int64_t sum = node.constant;
    for (std::size_t i = 0; i < values.size(); ++i)
      sum = checked_add(sum, checked_mul(node.coefficients[i], values[i]));
    return sum;
  }
  std::vector<SymExpr> constants(values.begin(), values.end());
  return fold(node.kind, constants).constant();
}

SymExpr substitute(const SymExpr& e, const std::function<std::optional<SymExpr>(std::string_view)>& replacement) {
  if (e.is_constant()) return e;
  const SymNode& node = *e.node();
  if (node.kind == Kind::kSymbol) return replacement(node.name).value_or(e);
  std::vector<SymExpr> operands;
  for (const SymExpr& operand : node.operands) operands.push_back(substitute(operand, replacement));
  if (operands == node.operands) return e;
  if (node.kind != Kind::kSum) return fold(node.kind, operands);
  SymExpr sum = node.constant;
  for (std::size_t i = 0; i < operands.size(); ++i) sum = sum + operands[i] * SymExpr(node.coefficients[i]);
  return sum;
}

void collect_symbols(const SymExpr& e, std::vector<std::string>& names) {
  if (e.is_constant()) return;
  const SymNode& node = *e.node();
  if (node.kind == Kind::kSymbol && std::find(names.begin(), names.end(), node.name) == names.end())
    names.push_back(node.name);
  for (const SymExpr& operand : node.operands) collect_symbols(operand, names);
}

}  // namespace braze::sym
