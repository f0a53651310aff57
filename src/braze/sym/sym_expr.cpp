// Canonical sums of products. Equal expressions are equal trees, because every operation below keeps the forms of
// node.h.
#include "braze/sym/sym_expr.h"

#include <algorithm>

#include "braze/support/check.h"
#include "braze/support/hash.h"
#include "braze/sym/node.h"

namespace braze::sym {
namespace {

std::uint64_t hash_of(const SymExpr& e) {
  return e.node() ? e.node()->hash : support::mix(static_cast<std::uint64_t>(e.constant()));
}

std::uint64_t hash_of(const SymNode& node) {
  std::uint64_t h = support::combine(static_cast<std::uint64_t>(node.kind), support::hash_bytes(node.name));
  h = support::combine(h, static_cast<std::uint64_t>(node.constant));
  for (std::int64_t c : node.coefficients) h = support::combine(h, static_cast<std::uint64_t>(c));
  for (const SymExpr& e : node.operands) h = support::combine(h, hash_of(e));
  return h;
}

std::strong_ordering compare_names(const std::string& a, const std::string& b) {
  if (const auto order = a.size() <=> b.size(); order != 0) return order;  // s2 before s10
  return a <=> b;
}

bool same_tree(const SymNode& a, const SymNode& b) {
  return a.hash == b.hash && a.kind == b.kind && a.constant == b.constant && a.name == b.name &&
         a.coefficients == b.coefficients && a.operands == b.operands;
}

}  // namespace

SymExpr SymBuilder::make(SymNode node) {
  node.hash = hash_of(node);
  SymExpr e;
  e.node_ = std::make_shared<const SymNode>(std::move(node));
  return e;
}

SymExpr make_atom(Kind kind, std::vector<SymExpr> operands) {
  return SymBuilder::make({.kind = kind, .name = {}, .coefficients = {}, .operands = std::move(operands)});
}

SymExpr SymExpr::symbol(std::string_view name) {
  BRAZE_CHECK(!name.empty(), "a symbol has a name");
  return SymBuilder::make({.kind = Kind::kSymbol, .name = std::string(name), .coefficients = {}, .operands = {}});
}

std::int64_t SymExpr::constant() const {
  BRAZE_CHECK(is_constant(), "{} is not a constant", to_text(*this));
  return value_;
}

bool operator==(const SymExpr& a, const SymExpr& b) {
  if (a.node_ == b.node_) return a.node_ || a.value_ == b.value_;
  return a.node_ && b.node_ && same_tree(*a.node_, *b.node_);
}

std::strong_ordering operator<=>(const SymExpr& a, const SymExpr& b) {
  if (!a.node_ || !b.node_) {
    if (!a.node_ && !b.node_) return a.value_ <=> b.value_;
    return a.node_ ? std::strong_ordering::greater : std::strong_ordering::less;
  }
  if (a.node_ == b.node_) return std::strong_ordering::equal;
  const SymNode &x = *a.node_, &y = *b.node_;
  if (const auto order = x.kind <=> y.kind; order != 0) return order;
  if (const auto order = compare_names(x.name, y.name); order != 0) return order;
  if (const auto order = x.operands <=> y.operands; order != 0) return order;
  if (const auto order = x.coefficients <=> y.coefficients; order != 0) return order;
  return x.constant <=> y.constant;
}

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  BRAZE_CHECK(!__builtin_add_overflow(a, b, &result), "size arithmetic overflows: {} + {}", a, b);
  return result;
}

std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  BRAZE_CHECK(!__builtin_mul_overflow(a, b, &result), "size arithmetic overflows: {} * {}", a, b);
  return result;
}

std::vector<Term> terms_of(const SymExpr& e) {
  if (e.is_constant()) return {};
  if (!is_kind(e, Kind::kSum)) return {{1, e}};
  const SymNode& node = *e.node();
  std::vector<Term> terms(node.operands.size());
  for (std::size_t i = 0; i < terms.size(); ++i) terms[i] = {node.coefficients[i], node.operands[i]};
  return terms;
}

std::int64_t constant_of(const SymExpr& e) {
  if (e.is_constant()) return e.constant();
  return is_kind(e, Kind::kSum) ? e.node()->constant : 0;
}

SymExpr make_sum(std::vector<Term> terms, std::int64_t constant) {
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.monomial < b.monomial; });
  SymNode node{.kind = Kind::kSum, .name = {}, .constant = constant, .coefficients = {}, .operands = {}};
  for (Term& term : terms) {
    if (!node.operands.empty() && node.operands.back() == term.monomial) {
      node.coefficients.back() = checked_add(node.coefficients.back(), term.coefficient);
    } else {
      node.operands.push_back(std::move(term.monomial));
      node.coefficients.push_back(term.coefficient);
    }
    if (node.coefficients.back() == 0) {
      node.operands.pop_back();
      node.coefficients.pop_back();
    }
  }
  if (node.operands.empty()) return constant;
  if (node.operands.size() == 1 && constant == 0 && node.coefficients[0] == 1) return node.operands[0];
  return SymBuilder::make(std::move(node));
}

std::span<const SymExpr> atoms_of(const SymExpr& monomial) {
  if (is_kind(monomial, Kind::kProduct)) return monomial.node()->operands;
  return {&monomial, 1};
}

SymExpr make_monomial(std::vector<SymExpr> atoms) {
  if (atoms.empty()) return 1;
  if (atoms.size() == 1) return atoms[0];
  std::sort(atoms.begin(), atoms.end());
  return make_atom(Kind::kProduct, std::move(atoms));
}

SymExpr operator+(const SymExpr& a, const SymExpr& b) {
  if (a.is_constant() && b.is_constant()) return checked_add(a.constant(), b.constant());
  if (a.is_value(0)) return b;
  if (b.is_value(0)) return a;
  std::vector<Term> terms = terms_of(a);
  for (Term& term : terms_of(b)) terms.push_back(std::move(term));
  return make_sum(std::move(terms), checked_add(constant_of(a), constant_of(b)));
}

SymExpr operator-(const SymExpr& a, const SymExpr& b) { return a + b * SymExpr(-1); }

namespace {

SymExpr scale(const SymExpr& e, std::int64_t factor) {
  if (factor == 0) return 0;
  if (factor == 1) return e;
  std::vector<Term> terms = terms_of(e);
  for (Term& term : terms) term.coefficient = checked_mul(term.coefficient, factor);
  return make_sum(std::move(terms), checked_mul(constant_of(e), factor));
}

SymExpr multiply_monomials(const SymExpr& a, const SymExpr& b) {
  const auto left = atoms_of(a), right = atoms_of(b);
  std::vector<SymExpr> atoms(left.begin(), left.end());
  atoms.insert(atoms.end(), right.begin(), right.end());
  return make_monomial(std::move(atoms));
}

}  // namespace

SymExpr operator*(const SymExpr& a, const SymExpr& b) {
  if (a.is_constant() && b.is_constant()) return checked_mul(a.constant(), b.constant());
  if (a.is_constant()) return scale(b, a.constant());
  if (b.is_constant()) return scale(a, b.constant());
  const std::int64_t ca = constant_of(a), cb = constant_of(b);
  const std::vector<Term> left = terms_of(a), right = terms_of(b);
  std::vector<Term> terms;
  for (const Term& x : left)
    for (const Term& y : right)
      terms.push_back({checked_mul(x.coefficient, y.coefficient), multiply_monomials(x.monomial, y.monomial)});
  for (const Term& x : left) terms.push_back({checked_mul(x.coefficient, cb), x.monomial});
  for (const Term& y : right) terms.push_back({checked_mul(y.coefficient, ca), y.monomial});
  return make_sum(std::move(terms), checked_mul(ca, cb));
}

SymExpr product(std::span<const SymExpr> factors) {
  SymExpr result = 1;
  for (const SymExpr& f : factors) result = result * f;
  return result;
}

namespace {

/// min or max: flat, sorted, at most one constant, operands that differ by a constant merged.
SymExpr extremum(Kind kind, const SymExpr& a, const SymExpr& b) {
  const auto pick = [kind](std::int64_t x, std::int64_t y) {
    return kind == Kind::kMin ? std::min(x, y) : std::max(x, y);
  };
  if (a.is_constant() && b.is_constant()) return pick(a.constant(), b.constant());
  std::vector<SymExpr> operands;
  const auto add = [&](const SymExpr& e) {
    for (SymExpr& other : operands) {
      const SymExpr difference = e - other;
      if (!difference.is_constant()) continue;
      if ((difference.constant() < 0) == (kind == Kind::kMin)) other = e;
      return;
    }
    operands.push_back(e);
  };
  for (const SymExpr* side : {&a, &b}) {
    if (is_kind(*side, kind))
      for (const SymExpr& e : side->node()->operands) add(e);
    else add(*side);
  }
  if (operands.size() == 1) return operands[0];
  std::sort(operands.begin(), operands.end());
  return make_atom(kind, std::move(operands));
}

}  // namespace

SymExpr min(const SymExpr& a, const SymExpr& b) { return extremum(Kind::kMin, a, b); }
SymExpr max(const SymExpr& a, const SymExpr& b) { return extremum(Kind::kMax, a, b); }

std::uint64_t hash(const SymExpr& e) { return hash_of(e); }

}  // namespace braze::sym
