// Joint graphs from text, partitions as text: for golden tests and dumps.
#include <algorithm>

#include "braze/autograd/joint_graph.h"
#include "braze/support/text.h"

namespace braze::autograd {

JointGraph read_joint(Graph g) {
  JointGraph joint;
  std::vector<bool> depends(g.values.size());
  Level level;
  for (ValueId v : g.inputs) {
    if (!g.values[v.index].name.starts_with("tangent")) {
      ++joint.primals;
      continue;
    }
    depends[v.index] = true;
    level.outputs.push_back(static_cast<std::uint32_t>(level.tangents.size()));
    level.tangents.push_back(v);
  }
  joint.forward_nodes = g.nodes.size();
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    bool any = false;
    for_each_operand(g.nodes[n], [&](ValueId v) { any = any || depends[v.index]; });
    if (any) joint.forward_nodes = std::min(joint.forward_nodes, n);
    for (ValueId v : g.nodes[n].results)
      if (!v.is_none()) depends[v.index] = any;
  }
  const auto first = std::ranges::find_if(g.outputs, [&](ValueId v) { return v.is_none() || depends[v.index]; });
  joint.forward_outputs = static_cast<std::size_t>(first - g.outputs.begin());
  for (auto v = first; v != g.outputs.end(); ++v) {
    level.edges.push_back({Edge::Kind::kPrimal, static_cast<std::uint32_t>(v - first)});
    level.gradients.push_back(*v);
  }
  if (!level.tangents.empty()) joint.levels.push_back(std::move(level));
  joint.graph = std::move(g);
  return joint;
}

namespace {

std::string saved_text(const Saved& s) {
  constexpr std::string_view kKinds[] = {"primal", "output", "extra"};
  return support::format("{} {}", kKinds[static_cast<int>(s.kind)], s.index);
}

std::string edge_text(const Edge& e) {
  return support::format("{} {}", e.kind == Edge::Kind::kPrimal ? "primal" : "output", e.index);
}

template <class List, class Print>
std::string join(const List& list, Print print) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ", ") + print(item);
  return text;
}

}  // namespace

std::string to_text(const Partitioned& p) {
  std::string text = to_text(p.forward);
  for (const Backward& b : p.backwards) {
    text += support::format("// saved: {}; gradients of: {}\n", join(b.saved, saved_text), join(b.edges, edge_text));
    text += to_text(b.graph);
  }
  return text;
}

}  // namespace braze::autograd
