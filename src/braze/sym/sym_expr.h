// Integer expressions over named symbols: tensor sizes, strides, offsets, loop indices.
//
// A SymExpr is an immutable value. Constants need no allocation; the rest are shared trees in canonical form, so that
// equal expressions compare equal structurally: (s0 + 1) + s0 == 2*s0 + 1. Arithmetic wraps never: overflow is an
// InternalError. Division and modulo are Python's (floor) and their divisor is positive.
// Text: `1024`, `s0`, `2*s0 + 1`, `s0*s1`, `floordiv(s0, 2)`, `mod(s0, 8)`, `min(a, b)`, `max(a, b)`.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braze/support/text.h"

namespace braze::sym {

struct SymNode;

class SymExpr {
 public:
  SymExpr() = default;                            ///< zero
  SymExpr(std::int64_t value) : value_(value) {}  // NOLINT: an integer is an expression
  static SymExpr symbol(std::string_view name);

  bool is_constant() const { return node_ == nullptr; }
  std::int64_t constant() const;  ///< InternalError if not constant
  std::optional<std::int64_t> maybe_constant() const { return is_constant() ? std::optional(value_) : std::nullopt; }
  bool is_value(std::int64_t v) const { return is_constant() && value_ == v; }

  friend SymExpr operator+(const SymExpr& a, const SymExpr& b);
  friend SymExpr operator-(const SymExpr& a, const SymExpr& b);
  friend SymExpr operator*(const SymExpr& a, const SymExpr& b);
  friend SymExpr floor_div(const SymExpr& a, const SymExpr& b);
  friend SymExpr mod(const SymExpr& a, const SymExpr& b);
  friend SymExpr min(const SymExpr& a, const SymExpr& b);
  friend SymExpr max(const SymExpr& a, const SymExpr& b);
  friend bool operator==(const SymExpr& a, const SymExpr& b);
  friend std::strong_ordering operator<=>(const SymExpr& a, const SymExpr& b);  ///< a total order, for sorting only

  const SymNode* node() const { return node_.get(); }

 private:
  friend struct SymBuilder;
  std::int64_t value_ = 0;
  std::shared_ptr<const SymNode> node_;  ///< null: the constant value_
};

std::string to_text(const SymExpr& e);
SymExpr parse_expr(std::string_view text);  ///< ParseError
SymExpr parse_expr(support::Scanner& in);   ///< as much as is an expression
std::int64_t evaluate(const SymExpr& e, const std::function<std::int64_t(std::string_view)>& value_of);
SymExpr substitute(const SymExpr& e, const std::function<std::optional<SymExpr>(std::string_view)>& replacement);
void collect_symbols(const SymExpr& e, std::vector<std::string>& names);  ///< each once, in order of appearance

SymExpr product(std::span<const SymExpr> factors);  ///< 1 for none

std::uint64_t hash(const SymExpr& e);  ///< equal expressions have equal hashes, in every process

}  // namespace braze::sym

template <>
struct std::hash<braze::sym::SymExpr> {
  std::size_t operator()(const braze::sym::SymExpr& e) const noexcept { return braze::sym::hash(e); }
};
