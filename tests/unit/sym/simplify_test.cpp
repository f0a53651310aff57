// Simplification by ranges: the expected texts, and agreement with evaluation on every index.
#include "braze/sym/simplify.h"

#include <gtest/gtest.h>

#include <random>

namespace braze::sym {
namespace {

struct Case {
  std::string_view input, expected;
};

TEST(SymExpr, CanonicalForm) {
  const Case cases[] = {
      {"(s0 + 1) + s0", "2*s0 + 1"},
      {"s0 - s0", "0"},
      {"(s0 + 1)*(s1 + 2)", "2*s0 + s1 + s0*s1 + 2"},
      {"floordiv(1024*i + j, 1024)", "i + floordiv(j, 1024)"},
      {"floordiv(s0*s1, s1)", "s0"},
      {"floordiv(64*s0*s1 + 64*s0, 64*s1 + 64)", "s0"},
      {"floordiv(floordiv(x, 4), 8)", "floordiv(x, 32)"},
      {"floordiv(6*x + 5, 4)", "floordiv(3*x, 2) + 1"},
      {"mod(12*x + 3*y, 9)", "3*mod(x + y, 3)"},
      {"mod(mod(x, 32), 8)", "mod(x, 8)"},
      {"mod(s0*s1 + s0, s0)", "0"},
      {"min(s0, s0 + 1)", "s0"},
      {"max(3, max(s0, 5))", "max(5, s0)"},
      {"-s0 - 3", "-s0 - 3"},
      {"@4 + 2*@12", "@4 + 2*@12"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(to_text(parse_expr(c.input)), c.expected) << c.input;
    EXPECT_EQ(parse_expr(to_text(parse_expr(c.input))), parse_expr(c.input)) << c.input;
  }
}

Ranges test_ranges() {
  return {index_range("i", 8),
          index_range("j", 1024),
          index_range("k", 32),
          index_range("p", SymExpr::symbol("s0")),
          index_range("q", SymExpr::symbol("s1")),
          {.name = "s0", .low = 2, .high = INT64_MAX, .limit = {}},
          {.name = "s1", .low = 2, .high = INT64_MAX, .limit = {}}};
}

TEST(Simplify, Texts) {
  const Case cases[] = {
      {"floordiv(1024*i + j, 1024)", "i"},
      {"mod(1024*i + j, 1024)", "j"},
      {"floordiv(1024*i + j, 2048)", "floordiv(i, 2)"},
      {"mod(1024*i + j, 2048)", "j + 1024*mod(i, 2)"},
      {"floordiv(1024*i + j, 32)", "32*i + floordiv(j, 32)"},
      {"32*floordiv(j, 32) + mod(j, 32)", "j"},
      {"8*mod(floordiv(j, 8), 4) + 32*floordiv(j, 32) + mod(j, 8)", "j"},
      {"floordiv(p*s1 + q, s1)", "p"},
      {"mod(p*s1 + q, s1)", "q"},
      {"floordiv(32*i + k, 32)", "i"},
      {"mod(floordiv(1024*i + j, 1024), 8)", "i"},
      {"min(j, 1023)", "j"},
      {"max(j - 2000, 0)", "0"},
      {"floordiv(k - 1, 32)", "floordiv(k + 31, 32) - 1"},
      {"floordiv(k + 32, 32)", "1"},
  };
  for (const Case& c : cases) EXPECT_EQ(to_text(simplify(parse_expr(c.input), test_ranges())), c.expected) << c.input;
}

TEST(Simplify, Comparisons) {
  const Ranges r = test_ranges();
  EXPECT_TRUE(is_less(parse_expr("p*s1 + q"), parse_expr("s0*s1"), r));
  EXPECT_TRUE(is_less(parse_expr("1024*i + j"), 8192, r));
  EXPECT_FALSE(is_less(parse_expr("1024*i + j"), 8191, r));
  EXPECT_FALSE(is_less(parse_expr("p"), parse_expr("s1"), r));
}

SymExpr random_expr(std::mt19937& rng, int depth) {
  const auto pick = [&](int n) { return static_cast<std::int64_t>(rng() % static_cast<unsigned>(n)); };
  if (depth == 0)
    return pick(3) == 0 ? SymExpr(pick(9) - 4) : SymExpr::symbol(std::string(1, static_cast<char>('i' + pick(3))));
  const SymExpr a = random_expr(rng, depth - 1), b = random_expr(rng, depth - 1);
  const SymExpr d = SymExpr(1 + pick(12));
  switch (pick(7)) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * SymExpr(pick(7) - 2);
    case 3: return floor_div(a, d);
    case 4: return mod(a, d);
    case 5: return min(a, b);
    default: return max(a, b);
  }
}

TEST(Simplify, KeepsTheValueOfRandomExpressions) {
  std::mt19937 rng(1);
  const Ranges ranges = {index_range("i", 4), index_range("j", 6), index_range("k", 12)};
  for (int round = 0; round < 2000; ++round) {
    const SymExpr e = random_expr(rng, 4), s = simplify(e, ranges);
    const Bounds bounds = bounds_of(e, ranges);
    for (int n = 0; n < 8; ++n) {
      const std::int64_t values[] = {static_cast<std::int64_t>(rng() % 4), static_cast<std::int64_t>(rng() % 6),
                                     static_cast<std::int64_t>(rng() % 12)};
      const auto value_of = [&](std::string_view name) { return values[name[0] - 'i']; };
      const std::int64_t value = evaluate(e, value_of);
      ASSERT_EQ(value, evaluate(s, value_of)) << to_text(e) << " became " << to_text(s);
      ASSERT_LE(bounds.low, value) << to_text(e);
      ASSERT_GE(bounds.high, value) << to_text(e);
    }
  }
}

}  // namespace
}  // namespace braze::sym
