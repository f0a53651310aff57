// Partitions compute what the joint graph computes; specialised backwards what zeros would give.
#include <gtest/gtest.h>

#include <random>

#include "braze/autograd/joint_graph.h"
#include "braze/graph/edit.h"
#include "braze/graph/interpret.h"
#include "braze/graph/passes.h"

namespace braze::autograd {
namespace {

using graph::Arg;
using graph::Array;

Array random_array(const Graph& g, ValueId v, std::mt19937& rng) {
  Array a{.dtype = g.type(v).dtype, .sizes = {}, .data = {}};
  for (const auto& s : g.type(v).sizes) a.sizes.push_back(s.constant());
  std::size_t n = 1;
  for (std::int64_t s : a.sizes) n *= static_cast<std::size_t>(s);
  for (std::size_t i = 0; i < n; ++i) a.data.push_back(static_cast<double>(static_cast<int>(rng() % 9) - 4) / 4);
  return a;
}

/// A random chain of operators, then random operators on tangents and forward values that stand for a backward.
JointGraph random_joint(std::mt19937& rng) {
  Graph g;
  const auto type = op::contiguous(op::DType::kFloat32, {4, 4});
  const auto pick = [&](const std::vector<ValueId>& from) { return from[rng() % from.size()]; };
  std::vector<ValueId> forward = {graph::add_input(g, "x", type), graph::add_input(g, "y", type)};
  const ValueId tangents[] = {graph::add_input(g, "tangent0", type), graph::add_input(g, "tangent1", type)};
  const auto add = [&](std::string_view name, std::vector<Arg> args) {
    return graph::add_node(g, name, std::move(args), {type})[0];
  };
  const std::size_t nodes = 6 + rng() % 8;
  for (std::size_t i = 0; i < nodes; ++i) {
    const ValueId a = pick(forward), b = pick(forward);
    switch (rng() % 6) {
      case 0: forward.push_back(add("aten::mm", {a, b})); break;
      case 1: forward.push_back(add("aten::mul.Tensor", {a, b})); break;
      case 2: forward.push_back(add("aten::sin", {a})); break;
      case 3: forward.push_back(add("aten::view", {a, std::vector<graph::SymExpr>{4, 4}})); break;
      case 4: forward.push_back(add("aten::_softmax", {a, graph::SymExpr(1), false})); break;
      default: forward.push_back(add("aten::add.Tensor", {a, b, graph::SymExpr(1)})); break;
    }
  }
  g.outputs = {forward.back(), pick(forward)};
  std::vector<ValueId> backward(std::begin(tangents), std::end(tangents));
  for (std::size_t i = 0; i < 8; ++i) {
    const ValueId t = pick(backward);
    switch (rng() % 4) {
      case 0: backward.push_back(add("aten::mm", {t, pick(forward)})); break;
      case 1: backward.push_back(add("aten::tanh_backward", {t, pick(forward)})); break;
      case 2: backward.push_back(add("aten::mul.Tensor", {t, pick(forward)})); break;
      default: backward.push_back(add("aten::add.Tensor", {t, pick(backward), graph::SymExpr(1)})); break;
    }
  }
  g.outputs.push_back(backward.back());
  g.outputs.push_back(pick(backward));
  return read_joint(std::move(g));
}

struct Values {
  std::vector<Array> inputs, outputs;
};

Values run_parts(const Partitioned& p, std::span<const Array> inputs, const Graph& backward) {
  const std::size_t primals = p.forward.inputs.size();
  const std::vector<Array> forward = graph::interpret(p.forward, inputs.first(primals));
  Values run;
  for (const Saved& s : p.backwards[0].saved)
    run.inputs.push_back(s.kind == Saved::Kind::kPrimal   ? inputs[s.index]
                         : s.kind == Saved::Kind::kOutput ? forward[s.index]
                                                          : forward[p.forward_outputs + s.index]);
  for (std::size_t i = primals; i < inputs.size(); ++i) run.inputs.push_back(inputs[i]);
  run.outputs.assign(forward.begin(), forward.begin() + static_cast<std::ptrdiff_t>(p.forward_outputs));
  for (Array& a : graph::interpret(backward, run.inputs)) run.outputs.push_back(std::move(a));
  return run;
}

TEST(Partition, KeepsTheMeaningOfRandomGraphs) {
  std::mt19937 rng(7);
  for (int round = 0; round < 300; ++round) {
    const JointGraph joint = random_joint(rng);
    Partitioned p = partition(joint);
    std::vector<Array> inputs;
    for (ValueId v : joint.graph.inputs) inputs.push_back(random_array(joint.graph, v, rng));
    const std::vector<Array> expected = graph::interpret(joint.graph, inputs);
    verify(p.forward, "partition");
    verify(p.backwards[0].graph, "partition");
    ASSERT_EQ(run_parts(p, inputs, p.backwards[0].graph).outputs, expected) << to_text(joint.graph) << to_text(p);
    for (const auto& pass : graph::kGraphPasses) {
      pass.apply(p.forward);
      pass.apply(p.backwards[0].graph);
      verify(p.forward, pass.name);
      ASSERT_EQ(run_parts(p, inputs, p.backwards[0].graph).outputs, expected) << pass.name << to_text(joint.graph);
    }
  }
}

TEST(Specialise, UndefinedTangentsCountAsZeros) {
  std::mt19937 rng(11);
  int undefined_gradients = 0;
  for (int round = 0; round < 300; ++round) {
    const JointGraph joint = random_joint(rng);
    const Partitioned p = partition(joint);
    std::vector<Array> inputs;
    for (ValueId v : joint.graph.inputs) inputs.push_back(random_array(joint.graph, v, rng));
    std::fill(inputs[3].data.begin(), inputs[3].data.end(), 0.0);
    const Graph special = specialise(p.backwards[0], {true, false}, {true, true});
    verify(special, "specialise");
    const Values with_zeros = run_parts(p, inputs, p.backwards[0].graph), run = run_parts(p, inputs, special);
    for (std::size_t i = 0; i < run.outputs.size(); ++i) {
      const bool is_none = i >= 2 && special.outputs[i - 2].is_none();
      undefined_gradients += is_none;
      for (std::size_t k = 0; k < with_zeros.outputs[i].data.size(); ++k)
        ASSERT_EQ(is_none ? 0.0 : run.outputs[i].data[k], with_zeros.outputs[i].data[k]) << to_text(special);
    }
  }
  EXPECT_GT(undefined_gradients, 0);
}

TEST(Specialise, DropsWhatIsNotNeeded) {
  std::mt19937 rng(3);
  const Partitioned p = partition(random_joint(rng));
  const Graph none = specialise(p.backwards[0], {true, true}, {false, false});
  EXPECT_TRUE(none.nodes.empty());
  EXPECT_EQ(none.inputs.size(), p.backwards[0].graph.inputs.size());
}

}  // namespace
}  // namespace braze::autograd
