// Shape rules against eager PyTorch: the cases of make_shape_cases.py.
#include "braze/graph/shape_rules.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace braze::graph {
namespace {

const char* const kCases[] = {
#include "shape_cases.inc"
};

struct Outcome {
  int right = 0, left_to_pytorch = 0;
};

/// The types as eager gave them; nothing if eager raised.
std::optional<std::vector<std::optional<TensorType>>> expected_types(const Graph& g) {
  std::vector<std::optional<TensorType>> types;
  for (ValueId v : g.nodes[0].results) {
    if (!v.is_none() && g.values[v.index].name == "error") return std::nullopt;
    types.push_back(v.is_none() ? std::nullopt : std::optional(g.type(v)));
  }
  return types;
}

TEST(ShapeRules, GiveEagersTypesOrNone) {
  std::map<std::string, Outcome> outcomes;
  for (std::string_view text : kCases) {
    const Graph g = parse(text);
    const Node& node = g.nodes[0];
    ASSERT_NE(node.op, Op::kOther) << text;
    std::vector<std::optional<TensorType>> types;
    const bool answered = infer_types(g, node.op, node.args, DType::kFloat32, types);
    const auto expected = expected_types(g);
    if (!answered) {
      if (expected) ++outcomes[node.name].left_to_pytorch;
      if (expected && std::getenv("SHAPE_RULES_VERBOSE")) std::puts(std::string(text).c_str());
      continue;
    }
    std::string got;
    for (const auto& t : types) got += (t ? op::to_text(*t) : "none") + " ";
    EXPECT_TRUE(expected) << "eager raises, the rule gives " << got << "\n" << text;
    if (!expected) continue;
    EXPECT_EQ(types, *expected) << got << "\n" << text;
    ++outcomes[node.name].right;
  }
  // Every operator is answered in its plain cases.
  for (const auto& [name, outcome] : outcomes) {
    if (std::getenv("SHAPE_RULES_VERBOSE"))
      std::printf("%-60s %5d right %5d left to PyTorch\n", name.c_str(), outcome.right, outcome.left_to_pytorch);
    EXPECT_GT(outcome.right, 0) << name;
  }
}

TEST(ShapeRules, SymbolicSizes) {
  const Graph g = parse(R"(graph @f(%x: f32[s0, s1, 64], %y: f32[s1, 1], %z: f32[s2, 64]) -> () {
    symbols s0 in [2, inf], s1 in [2, inf], s2 in [2, inf]
    %0: f32[s0, s1, 64] = aten.add.Tensor(%x, %y)
    %1: f32[s0*s1, 64] = aten.view(%x, size=[-1, 64])
    %2: f32[s0, s1, 8, 8] = aten.view(%x, size=[s0, s1, 8, 8])
    %3: f32[s1, s0, 64]{64, 64*s1, 1} = aten.transpose.int(%x, dim0=0, dim1=1)
    %4: f32[s0, 64] = aten.sum.dim_IntList(%x, dim=[1])
    %5: f32[s1, s0, 64]{64, 64*s1, 1} = aten.relu(%3)
    return })");
  for (const Node& node : g.nodes) {
    std::vector<std::optional<TensorType>> types;
    ASSERT_TRUE(infer_types(g, node.op, node.args, DType::kFloat32, types)) << node.name;
    EXPECT_EQ(op::to_text(*types[0]), op::to_text(g.type(node.results[0]))) << node.name;
  }
  std::vector<std::optional<TensorType>> types;
  const std::vector<Arg> unknown = {g.inputs[0], g.inputs[2], SymExpr(1)};
  EXPECT_FALSE(infer_types(g, Op::add_Tensor, unknown, DType::kFloat32, types)) << "s1 == s2 is not known";
}

}  // namespace
}  // namespace braze::graph
