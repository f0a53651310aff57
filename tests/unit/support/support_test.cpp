// Options, scanner, number text.
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "braze/support/error.h"
#include "braze/support/options.h"
#include "braze/support/text.h"

namespace braze::support {
namespace {

Options read(std::map<std::string, const char*> variables) {
  return read_options([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second;
  });
}

TEST(Options, AreReadFromTheEnvironment) {
  const Options o = read({{"BRAZE_STRICT", "1"}, {"BRAZE_RECOMPILE_LIMIT", "3"}, {"BRAZE_COMPILE_TIMEOUT", "1.5"}});
  EXPECT_TRUE(o.strict);
  EXPECT_EQ(o.recompile_limit, 3);
  EXPECT_EQ(o.compile_timeout, 1.5);
  EXPECT_EQ(read({}), Options{});
}

TEST(Options, WrongValuesAreNamed) {
  try {
    read({{"BRAZE_RECOMPILE_LIMIT", "many"}});
    FAIL() << "accepted";
  } catch (const std::invalid_argument& e) {
    EXPECT_STREQ(e.what(), "option recompile_limit is 'many'; it takes an integer of at least 0");
  }
}

TEST(Options, Lists) {
  EXPECT_TRUE(list_has("graph,perf", "perf"));
  EXPECT_TRUE(list_has("all", "perf"));
  EXPECT_FALSE(list_has("graph_breaks", "graph"));
}

TEST(Text, Doubles) {
  for (double d : {0.0, -0.0, 2.0, 1e-5, 0.1, 1e300, -3.5}) {
    const std::string text = double_text(d);
    Scanner in(text);
    EXPECT_TRUE(in.number_is_double());
    EXPECT_EQ(in.number(), d);
  }
  EXPECT_EQ(double_text(2), "2.0");
  EXPECT_EQ(double_text(-1.0 / 0.0), "-inf");
}

TEST(Scanner, WordsEndWhereWordsEnd) {
  Scanner in("inf_x in // comment\n  y");
  EXPECT_FALSE(in.accept("inf"));
  EXPECT_EQ(in.identifier(), "inf_x");
  EXPECT_TRUE(in.accept("in"));
  EXPECT_EQ(in.identifier(), "y");
  EXPECT_TRUE(in.at_end());
}

}  // namespace
}  // namespace braze::support
