// The rules of a well-formed graph, as a list of named facts.
#include <unordered_set>

#include "braze/graph/graph.h"
#include "braze/support/check.h"

namespace braze::graph {
namespace {

struct Check {
  const Graph& g;
  std::string_view after;
  std::vector<bool> defined;

  [[noreturn]] void fail(std::size_t n, std::string_view rule) const {
    std::string text = support::format("after {}: {}\n", after, rule);
    for (std::size_t i = n < 2 ? 0 : n - 2; i < g.nodes.size() && i <= n + 2; ++i)
      text += support::format("{} {}: {}\n", i == n ? "->" : "  ", i, g.nodes[i].name);
    throw support::InternalError(text);
  }

  bool exists(ValueId v) const { return v.index < g.values.size(); }

  void inputs() {
    for (ValueId v : g.inputs) {
      BRAZE_CHECK(exists(v) && !defined[v.index], "after {}: input {} is a value of its own", after, v.index);
      BRAZE_CHECK(g.values[v.index].producer.is_none(), "after {}: no node produces input %{}", after,
                  g.values[v.index].name);
      defined[v.index] = true;
    }
  }

  void node(std::size_t n) {
    const Node& node = g.nodes[n];
    if (node.name.empty()) fail(n, "a node has a name");
    if (node.op != op::find_op(node.name)) fail(n, "op is the row of the name, or kOther");
    if (node.op != Op::kOther && node.args.size() != op::parameters(node.op).size())
      fail(n, support::format("{} takes {} arguments, not {}", node.name, op::parameters(node.op).size(),
                              node.args.size()));
    for_each_operand(node, [&](ValueId v) {
      if (!exists(v) || !defined[v.index]) fail(n, "operands are defined above");
    });
    if (node.op != Op::kOther && !node.returns_list &&
        node.results.size() != static_cast<std::size_t>(op::result_count(node.op)))
      fail(n, "one value per result of the schema");
    for (ValueId v : node.results) result(n, v);
  }

  void result(std::size_t n, ValueId v) {
    if (v.is_none()) return;
    if (!exists(v) || defined[v.index]) fail(n, "a result is a new value");
    if (g.values[v.index].producer != NodeId(n)) fail(n, "a result names its producer");
    const TensorType& type = g.values[v.index].type;
    if (type.sizes.size() != type.strides.size()) fail(n, "one stride per size");
    defined[v.index] = true;
  }

  void names() const {
    std::unordered_set<std::string_view> seen;
    for (std::size_t v = 0; v < g.values.size(); ++v) {
      BRAZE_CHECK(defined[v], "after {}: value %{} is an input or a result", after, g.values[v].name);
      BRAZE_CHECK(seen.insert(g.values[v].name).second, "after {}: value name %{} is unique", after, g.values[v].name);
    }
  }
};

}  // namespace

void verify(const Graph& g, std::string_view after) {
  Check check{g, after, std::vector<bool>(g.values.size())};
  check.inputs();
  for (std::size_t n = 0; n < g.nodes.size(); ++n) check.node(n);
  for (ValueId v : g.outputs)
    BRAZE_CHECK(v.is_none() || (check.exists(v) && check.defined[v.index]), "after {}: outputs are values", after);
  check.names();
}

}  // namespace braze::graph
