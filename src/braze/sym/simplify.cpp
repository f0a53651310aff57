// Division by range analysis: a remainder that lies within [0, divisor) vanishes.
#include "braze/sym/simplify.h"

#include <algorithm>
#include <numeric>

#include "braze/sym/node.h"

namespace braze::sym {
namespace {

constexpr std::int64_t kMinus = INT64_MIN, kPlus = INT64_MAX;

const Range* find(const Ranges& ranges, const std::string& name) {
  for (const Range& r : ranges)
    if (r.name == name) return &r;
  return nullptr;
}

std::int64_t saturate(__int128 v) { return v >= kPlus ? kPlus : v <= kMinus ? kMinus : static_cast<std::int64_t>(v); }
bool is_infinite(std::int64_t v) { return v == kPlus || v == kMinus; }

std::int64_t times(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (is_infinite(a) || is_infinite(b)) return (a < 0) == (b < 0) ? kPlus : kMinus;
  return saturate(static_cast<__int128>(a) * b);
}
/// For lower bounds minus infinity wins, for upper bounds plus infinity: they never meet the other one.
std::int64_t plus(std::int64_t a, std::int64_t b) {
  if (is_infinite(a)) return a;
  if (is_infinite(b)) return b;
  return saturate(static_cast<__int128>(a) + b);
}
std::int64_t quotient(std::int64_t a, std::int64_t b) { return is_infinite(a) ? a : floor_quotient(a, b); }

Bounds add(Bounds a, Bounds b) { return {plus(a.low, b.low), plus(a.high, b.high)}; }
Bounds multiply(Bounds a, Bounds b) {
  const auto [low, high] =
      std::minmax({times(a.low, b.low), times(a.low, b.high), times(a.high, b.low), times(a.high, b.high)});
  return {low, high};
}

Bounds division_bounds(const SymNode& node, const Ranges& ranges) {
  const Bounds a = bounds_of(node.operands[0], ranges), b = bounds_of(node.operands[1], ranges);
  if (node.kind == Kind::kMod) {
    if (a.low >= 0 && a.high < b.low) return a;
    return {0, b.high == kPlus ? (a.low >= 0 ? a.high : kPlus) : b.high - 1};
  }
  const std::int64_t d = std::max<std::int64_t>(b.low, 1), e = std::max(d, b.high);
  const auto smallest = [&](std::int64_t v) { return v < 0 ? quotient(v, d) : e == kPlus ? 0 : quotient(v, e); };
  const auto largest = [&](std::int64_t v) { return v >= 0 ? quotient(v, d) : e == kPlus ? -1 : quotient(v, e); };
  return {smallest(a.low), largest(a.high)};
}

Bounds symbol_bounds(const SymNode& node, const Ranges& ranges) {
  const Range* r = find(ranges, node.name);
  if (!r) return {kMinus, kPlus};
  std::int64_t high = r->high;
  if (r->limit && r->limit->is_constant()) high = std::min(high, r->limit->constant() - 1);
  return {r->low, high};
}

/// An expression that is not less than e wherever the ranges hold: indices replaced by their largest values.
SymExpr upper_bound(const SymExpr& e, const Ranges& ranges) {
  SymExpr result = constant_of(e);
  for (const Term& term : terms_of(e)) {
    SymExpr monomial = term.monomial;
    const bool positive = term.coefficient > 0;
    if (is_kind(monomial, Kind::kSymbol)) {
      const Range* r = find(ranges, monomial.node()->name);
      if (r && positive && r->limit) monomial = *r->limit - 1;
      else if (r && !positive && r->limit) monomial = r->low;  // an index: at least its lowest value
    } else if (is_kind(monomial, Kind::kMod) && positive) {
      monomial = monomial.node()->operands[1] - 1;
    } else if (is_kind(monomial, Kind::kProduct) && positive) {  // size * index
      SymExpr factor = 1;
      bool known = true;
      for (const SymExpr& atom : monomial.node()->operands) {
        const Range* r = is_kind(atom, Kind::kSymbol) ? find(ranges, atom.node()->name) : nullptr;
        known = known && r && r->low >= 0;
        factor = factor * (r && r->limit ? *r->limit - 1 : atom);
      }
      if (known) monomial = factor;
    }
    result = result + monomial * SymExpr(term.coefficient);
  }
  return result;
}

bool is_within(const SymExpr& e, const SymExpr& divisor, const Ranges& ranges) {
  return bounds_of(e, ranges).low >= 0 && is_less(e, divisor, ranges);
}

/// Divisors g of d that some coefficients of e have, large ones first, d itself left out.
std::vector<std::int64_t> shared_factors(const SymExpr& e, std::int64_t d) {
  std::vector<std::int64_t> factors;
  for (const Term& term : terms_of(e)) {
    const std::int64_t g = std::gcd(term.coefficient, d);
    if (g > 1 && g < d) factors.push_back(g);
  }
  std::sort(factors.rbegin(), factors.rend());
  factors.erase(std::unique(factors.begin(), factors.end()), factors.end());
  return factors;
}

struct Parts {
  SymExpr multiple, rest;  ///< e == g*multiple + rest
};
Parts split_by(const SymExpr& e, std::int64_t g) {
  std::vector<Term> multiple, rest;
  for (Term& term : terms_of(e)) {
    if (term.coefficient % g == 0) multiple.push_back({term.coefficient / g, std::move(term.monomial)});
    else rest.push_back(std::move(term));
  }
  const std::int64_t c = constant_of(e), q = floor_quotient(c, g);
  return {make_sum(std::move(multiple), q), make_sum(std::move(rest), c - q * g)};
}

/// The quotient if the ranges leave only one.
std::optional<std::int64_t> only_quotient(const SymExpr& a, const SymExpr& b, const Ranges& ranges) {
  if (is_within(a, b, ranges)) return 0;
  if (!b.is_constant()) return std::nullopt;
  const Bounds bounds = bounds_of(a, ranges);
  if (is_infinite(bounds.low) || is_infinite(bounds.high)) return std::nullopt;
  const std::int64_t low = floor_quotient(bounds.low, b.constant());
  if (low != floor_quotient(bounds.high, b.constant())) return std::nullopt;
  return low;
}

SymExpr simplify_division(Kind kind, const SymExpr& a, const SymExpr& b, const Ranges& ranges);

/// A canonical sum whose addends may be divisions: each is simplified, the others stay.
SymExpr simplify_atoms(const SymExpr& e, Kind kind, const Ranges& ranges) {
  SymExpr result = constant_of(e);
  for (const Term& term : terms_of(e)) {
    const SymExpr& m = term.monomial;
    const SymExpr part =
        is_kind(m, kind) ? simplify_division(kind, m.node()->operands[0], m.node()->operands[1], ranges) : m;
    result = result + part * SymExpr(term.coefficient);
  }
  return result;
}

SymExpr simplify_division(Kind kind, const SymExpr& a, const SymExpr& b, const Ranges& ranges) {
  if (const auto q = only_quotient(a, b, ranges)) return kind == Kind::kFloorDiv ? SymExpr(*q) : a - SymExpr(*q) * b;
  if (b.is_constant()) {
    const std::int64_t d = b.constant();
    for (std::int64_t g : shared_factors(a, d)) {
      const auto [multiple, rest] = split_by(a, g);
      if (!is_within(rest, g, ranges)) continue;
      if (kind == Kind::kFloorDiv) return simplify_atoms(floor_div(multiple, d / g), kind, ranges);
      return rest + SymExpr(g) * simplify_atoms(mod(multiple, d / g), kind, ranges);
    }
  }
  return make_atom(kind, {a, b});
}

/// c*mod(x, d) + c*d*floordiv(x, d) == c*x.
SymExpr recombine(SymExpr e) {
  for (bool again = true; again;) {
    again = false;
    for (const Term& term : terms_of(e)) {
      if (!is_kind(term.monomial, Kind::kMod)) continue;
      const SymExpr &x = term.monomial.node()->operands[0], &d = term.monomial.node()->operands[1];
      const SymExpr c = term.coefficient;
      const SymExpr other = e - c * term.monomial - c * d * floor_div(x, d);
      if (terms_of(other).size() + 2 > terms_of(e).size()) continue;
      e = other + c * x;
      again = true;
      break;
    }
  }
  return e;
}

SymExpr simplify_extremum(Kind kind, std::vector<SymExpr> operands, const Ranges& ranges) {
  SymExpr result = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const SymExpr& e = operands[i];
    const bool min_kind = kind == Kind::kMin;
    if (is_less_equal(result, e, ranges)) result = min_kind ? result : e;
    else if (is_less_equal(e, result, ranges)) result = min_kind ? e : result;
    else result = min_kind ? min(result, e) : max(result, e);
  }
  return result;
}

SymExpr simplify_node(const SymNode& node, const SymExpr& e, const Ranges& ranges) {
  std::vector<SymExpr> operands;
  for (const SymExpr& operand : node.operands) operands.push_back(simplify(operand, ranges));
  switch (node.kind) {
    case Kind::kSymbol: {
      const Range* r = find(ranges, node.name);
      const Bounds b = symbol_bounds(node, ranges);
      return r && b.low == b.high ? SymExpr(b.low) : e;
    }
    case Kind::kProduct: return product(operands);
    case Kind::kFloorDiv: return simplify_atoms(floor_div(operands[0], operands[1]), node.kind, ranges);
    case Kind::kMod: return simplify_atoms(mod(operands[0], operands[1]), node.kind, ranges);
    case Kind::kMin:
    case Kind::kMax: return simplify_extremum(node.kind, std::move(operands), ranges);
    case Kind::kSum: break;
  }
  SymExpr sum = node.constant;
  for (std::size_t i = 0; i < operands.size(); ++i) sum = sum + operands[i] * SymExpr(node.coefficients[i]);
  return recombine(sum);
}

}  // namespace

Range index_range(std::string_view name, const SymExpr& extent) {
  return {.name = std::string(name), .low = 0, .high = INT64_MAX, .limit = extent};
}

Bounds bounds_of(const SymExpr& e, const Ranges& ranges) {
  if (e.is_constant()) return {e.constant(), e.constant()};
  const SymNode& node = *e.node();
  switch (node.kind) {
    case Kind::kSymbol: return symbol_bounds(node, ranges);
    case Kind::kFloorDiv:
    case Kind::kMod: return division_bounds(node, ranges);
    default: break;
  }
  Bounds result = node.kind == Kind::kSum ? Bounds{node.constant, node.constant} : bounds_of(node.operands[0], ranges);
  for (std::size_t i = node.kind == Kind::kSum ? 0 : 1; i < node.operands.size(); ++i) {
    const Bounds b = bounds_of(node.operands[i], ranges);
    switch (node.kind) {
      case Kind::kSum: result = add(result, multiply(b, {node.coefficients[i], node.coefficients[i]})); break;
      case Kind::kProduct: result = multiply(result, b); break;
      case Kind::kMin: result = {std::min(result.low, b.low), std::min(result.high, b.high)}; break;
      default: result = {std::max(result.low, b.low), std::max(result.high, b.high)}; break;
    }
  }
  return result;
}

bool is_less_equal(const SymExpr& a, const SymExpr& b, const Ranges& ranges) {
  const SymExpr difference = a - b;
  if (bounds_of(difference, ranges).high <= 0) return true;
  if (difference.is_constant() || b.is_constant()) return false;
  return bounds_of(upper_bound(difference, ranges), ranges).high <= 0;
}

bool is_less(const SymExpr& a, const SymExpr& b, const Ranges& ranges) { return is_less_equal(a + 1, b, ranges); }

SymExpr simplify(const SymExpr& e, const Ranges& ranges) {
  return e.is_constant() ? e : simplify_node(*e.node(), e, ranges);
}

}  // namespace braze::sym
