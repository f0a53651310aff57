// The tree behind a SymExpr, for those that walk expressions. terms_of, constant_of and atoms_of read one as a sum of
// products; others get by with sym_expr.h and simplify.h.
#pragma once

#include "braze/sym/sym_expr.h"

namespace braze::sym {

enum class Kind : std::uint8_t { kSymbol, kProduct, kFloorDiv, kMod, kMin, kMax, kSum };

/// Canonical forms:
///   product   two or more atoms (neither constants, sums nor products), sorted, repeats are powers
///   sum       constant + coefficients[i]*operands[i]; operands are atoms or products, sorted, distinct; coefficients
///             are not 0; not a bare atom (so one operand has a coefficient or a constant beside it)
///   floordiv  operands {a, b}; see divide.cpp for what cannot be divided further; mod likewise
///   min, max  two or more operands, sorted, distinct, at most one constant, none a min (max) itself
struct SymNode {
  Kind kind = Kind::kSymbol;
  std::uint64_t hash = 0;
  std::string name;
  std::int64_t constant = 0;
  std::vector<std::int64_t> coefficients;
  std::vector<SymExpr> operands;
};

/// Makes expressions from canonical parts.
struct SymBuilder {
  static SymExpr make(SymNode node);
};

/// One addend: coefficient * monomial (an atom or a product; the constant 1 for the constant addend).
struct Term {
  std::int64_t coefficient = 0;
  SymExpr monomial;
};

inline bool is_kind(const SymExpr& e, Kind kind) { return e.node() && e.node()->kind == kind; }

/// The addends other than the constant one. For a constant: none.
std::vector<Term> terms_of(const SymExpr& e);
std::int64_t constant_of(const SymExpr& e);  ///< the constant addend
/// Sorts, merges and drops zeros.
SymExpr make_sum(std::vector<Term> terms, std::int64_t constant);
/// The atoms of a monomial, with repeats.
std::span<const SymExpr> atoms_of(const SymExpr& monomial);
SymExpr make_monomial(std::vector<SymExpr> atoms);
/// a * constant, a + constant, checked for overflow.
std::int64_t checked_add(std::int64_t a, std::int64_t b);
std::int64_t checked_mul(std::int64_t a, std::int64_t b);
std::int64_t floor_quotient(std::int64_t a, std::int64_t b);

/// An atom as given: no canonicalising. For simplify and the builders.
SymExpr make_atom(Kind kind, std::vector<SymExpr> operands);
/// a / b if b divides a as a polynomial; else nothing.
std::optional<SymExpr> exact_quotient(const SymExpr& a, const SymExpr& b);

}  // namespace braze::sym
