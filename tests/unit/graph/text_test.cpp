// Text round trips, parse errors, and the rules that verify holds.
#include <gtest/gtest.h>

#include "braze/graph/graph.h"
#include "braze/support/check.h"
#include "braze/support/error.h"

namespace braze::graph {
namespace {

constexpr std::string_view kExample =
    "graph @f(%x: f32[s0, 1024], %w: f32[1024]) -> f32[s0] {\n"
    "  symbols s0 in [2, inf]\n"
    "  %0: f32[s0, 1024] = aten.mul.Tensor(%x, %w)  // m.py:12\n"
    "  %1: f32[s0] = aten.sum.dim_IntList(%0, dim=[1])\n"
    "  return %1 }\n";

constexpr std::string_view kEverything =
    "graph @g(%x: f32[4, 8]{1, 4}, %m: b8[4, 8] cuda:0, %layer.0.w: bf16[]) -> (f32[4, 8]{1, 4}, none, i64[2]) {\n"
    "  symbols s0 in [2, inf] hint 7, s1 in [3, 9]\n"
    "  %0: f32[4, 8]{1, 4} = aten.add.Tensor(%x, 2.0, alpha=3)\n"
    "  %1: f32[4, 8] = aten._to_copy(%0, dtype=f32, device=cuda:0, memory_format=channels_last)\n"
    "  [%2: f32[2, 8], %3: f32[2, 8]] = aten.split.Tensor(%1, split_size=2)\n"
    "  %4: f32[4, 8], none, %5: f32[8] = aten.native_layer_norm_backward(%1, %1, normalized_shape=[8], mean=%x, "
    "rstd=%x, "
    "weight=none, bias=undefined, output_mask=[true, false, true])\n"
    "  %6: f32[4, 8] = foo.bar(%1, none, [%x, none], tensors[], floats[], bools[], [], [1.5, inf], complex(1.0, -2.0), "
    "\"a\\\"b\", strided, preserve_format, opaque#0, i64, cpu, 2*s0 + 1)\n"
    "  %7: i64[2] = aten.full(size=[2], fill_value=-1, dtype=i64)\n"
    "  %8: f32[4, 8] = aten.gelu(%1, approximate=\"tanh\")\n"
    "  foo.effect(%6)\n"
    "  return %0, none, %7 }\n";

TEST(GraphText, RoundTrip) {
  for (std::string_view text : {kExample, kEverything}) {
    const Graph g = parse(text);
    verify(g, "parse");
    EXPECT_EQ(to_text(g), text);
    EXPECT_EQ(parse(to_text(g)), g);
  }
}

TEST(GraphText, DefaultsAreFilledIn) {
  const Graph g = parse(kExample);
  const Node& sum = g.nodes[1];
  ASSERT_EQ(sum.args.size(), 4u);
  EXPECT_EQ(sum.args[2], Arg(false));
  EXPECT_EQ(sum.args[3], Arg(None{}));
}

TEST(GraphText, ErrorsNameTheLine) {
  try {
    parse("graph @f(%x: f32[2]) -> f32[2] {\n  %0: f32[2] = aten.relu(%y)\n  return %0 }");
    FAIL() << "parsed";
  } catch (const support::ParseError& e) {
    EXPECT_STREQ(e.what(), "line 2: expected a value defined above at ')'");
  }
}

TEST(GraphText, VerifyRejects) {
  Graph g = parse(kExample);
  std::swap(g.nodes[0], g.nodes[1]);
  EXPECT_THROW(verify(g, "test"), support::InternalError);
}

TEST(GraphBuild, ExtractKeepsInputs) {
  const Graph g = parse(kExample);
  const ValueId wanted[] = {g.nodes[0].results[0]};
  EXPECT_EQ(to_text(extract(g, wanted)),
            "graph @f(%x: f32[s0, 1024], %w: f32[1024]) -> f32[s0, 1024] {\n"
            "  symbols s0 in [2, inf]\n"
            "  %0: f32[s0, 1024] = aten.mul.Tensor(%x, %w)  // m.py:12\n"
            "  return %0 }\n");
}

TEST(GraphBuild, NamesGoOn) {
  Graph g;
  const ValueId x = add_input(g, "x", op::contiguous(DType::kFloat32, {2}));
  const ValueId a = add_node(g, "aten::relu", {x}, {g.type(x)})[0];
  const ValueId b = add_node(g, "aten::exp", {a}, {g.type(x)})[0];
  g.outputs = {b};
  verify(g, "building");
  EXPECT_EQ(parse(to_text(g)), g);
}

}  // namespace
}  // namespace braze::graph
