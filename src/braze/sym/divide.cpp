// floordiv and mod: what divides is divided, what remains is an atom.
#include <algorithm>
#include <numeric>

#include "braze/support/check.h"
#include "braze/sym/node.h"

namespace braze::sym {
namespace {

std::int64_t floor_remainder(std::int64_t a, std::int64_t b) { return a - b * floor_quotient(a, b); }

/// Degree first, then the total order: a monomial order, so polynomial division ends.
bool leads(const Term& a, const Term& b) {
  const std::size_t x = atoms_of(a.monomial).size(), y = atoms_of(b.monomial).size();
  if (x != y) return x > y;
  const auto p = atoms_of(a.monomial), q = atoms_of(b.monomial);
  return std::lexicographical_compare(p.begin(), p.end(), q.begin(), q.end());
}

std::optional<Term> leading_term(const SymExpr& e) {
  const std::vector<Term> terms = terms_of(e);
  if (terms.empty()) {
    if (e.is_value(0)) return std::nullopt;
    return Term{e.constant(), 1};
  }
  return *std::min_element(terms.begin(), terms.end(), leads);
}

/// a / b for single terms.
std::optional<SymExpr> divide_term(const Term& a, const Term& b) {
  if (a.coefficient % b.coefficient != 0) return std::nullopt;
  std::vector<SymExpr> left;
  if (!a.monomial.is_constant()) left.assign(atoms_of(a.monomial).begin(), atoms_of(a.monomial).end());
  if (!b.monomial.is_constant()) {
    for (const SymExpr& atom : atoms_of(b.monomial)) {
      const auto found = std::find(left.begin(), left.end(), atom);
      if (found == left.end()) return std::nullopt;
      left.erase(found);
    }
  }
  const std::int64_t c = a.coefficient / b.coefficient;
  if (left.empty()) return SymExpr(c);
  return make_sum({{c, make_monomial(std::move(left))}}, 0);
}

struct Split {
  SymExpr quotient, rest;  ///< a == quotient*b + rest
};

/// Takes out of a what the single-term or constant divisor b divides, term by term; the constant by floor.
Split split_terms(const SymExpr& a, const SymExpr& b) {
  const Term divisor = b.is_constant() ? Term{b.constant(), 1} : terms_of(b)[0];
  SymExpr quotient = 0;
  std::vector<Term> rest;
  for (Term& term : terms_of(a)) {
    if (const auto q = divide_term(term, divisor)) quotient = quotient + *q;
    else rest.push_back(std::move(term));
  }
  std::int64_t constant = constant_of(a);
  if (b.is_constant()) {
    const std::int64_t q = floor_quotient(constant, b.constant());
    quotient = quotient + SymExpr(q);
    constant -= q * b.constant();
  }
  return {quotient, make_sum(std::move(rest), constant)};
}

Split split(const SymExpr& a, const SymExpr& b) {
  if (b.is_constant() || (constant_of(b) == 0 && terms_of(b).size() == 1)) return split_terms(a, b);
  if (const auto q = exact_quotient(a, b)) return {*q, 0};
  return {0, a};
}

/// The largest number that divides all coefficients (of the constant addend too if asked) and `start`.
std::int64_t common_factor(const SymExpr& e, std::int64_t start) {
  for (const Term& term : terms_of(e)) start = std::gcd(start, term.coefficient);
  return start;
}

SymExpr divide_by(const SymExpr& e, std::int64_t factor) {
  std::vector<Term> terms = terms_of(e);
  for (Term& term : terms) term.coefficient /= factor;
  return make_sum(std::move(terms), floor_quotient(constant_of(e), factor));
}

void check_divisor(const SymExpr& b) {
  BRAZE_CHECK(!b.is_constant() || b.constant() > 0, "division by {}: divisors are positive", to_text(b));
}

}  // namespace

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

std::optional<SymExpr> exact_quotient(const SymExpr& a, const SymExpr& b) {
  const auto divisor = leading_term(b);
  if (!divisor) return std::nullopt;
  SymExpr quotient = 0, rest = a;
  for (int step = 0; step < 64; ++step) {
    const auto lead = leading_term(rest);
    if (!lead) return quotient;
    const auto q = divide_term(*lead, *divisor);
    if (!q) return std::nullopt;
    quotient = quotient + *q;
    rest = rest - *q * b;
  }
  return std::nullopt;
}

SymExpr floor_div(const SymExpr& a, const SymExpr& b) {
  check_divisor(b);
  if (b.is_value(1)) return a;
  if (a.is_constant() && b.is_constant()) return floor_quotient(a.constant(), b.constant());
  auto [quotient, rest] = split(a, b);
  if (rest.is_value(0)) return quotient;
  if (b.is_constant()) {
    if (rest.is_constant()) return quotient;  // within [0, b)
    const std::int64_t d = b.constant(), g = common_factor(rest, d);
    if (g > 1) return quotient + floor_div(divide_by(rest, g), d / g);
    if (is_kind(rest, Kind::kFloorDiv) && rest.node()->operands[1].is_constant()) {
      const auto& inner = rest.node()->operands;
      return quotient + floor_div(inner[0], checked_mul(inner[1].constant(), d));
    }
  }
  return quotient + make_atom(Kind::kFloorDiv, {rest, b});
}

SymExpr mod(const SymExpr& a, const SymExpr& b) {
  check_divisor(b);
  if (b.is_value(1)) return 0;
  if (a.is_constant() && b.is_constant()) return floor_remainder(a.constant(), b.constant());
  SymExpr rest = split(a, b).rest;
  if (rest.is_constant() && (rest.is_value(0) || b.is_constant())) return rest;
  if (!b.is_constant()) return make_atom(Kind::kMod, {rest, b});
  const std::int64_t d = b.constant();
  std::vector<Term> terms = terms_of(rest);
  for (Term& term : terms) term.coefficient %= d;
  rest = make_sum(std::move(terms), constant_of(rest));
  const std::int64_t g = std::gcd(common_factor(rest, d), constant_of(rest));
  if (g > 1) return SymExpr(g) * mod(divide_by(rest, g), d / g);
  if (is_kind(rest, Kind::kMod) && rest.node()->operands[1].is_constant() &&
      rest.node()->operands[1].constant() % d == 0)
    return mod(rest.node()->operands[0], b);
  return make_atom(Kind::kMod, {rest, b});
}

}  // namespace braze::sym
