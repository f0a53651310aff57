// Splits a joint graph at a minimum cut over saved bytes.
//
// The network has an edge in -> out per forward value, as heavy as the value: cutting it means keeping the value.
// Values that cannot be computed in the backward hang on the source, values that the backward uses on the sink.
#include <algorithm>

#include "braze/autograd/joint_graph.h"
#include "braze/autograd/min_cut.h"
#include "braze/autograd/remat.h"
#include "braze/graph/edit.h"
#include "braze/graph/passes.h"
#include "braze/support/check.h"

namespace braze::autograd {
namespace {

using graph::Arg;
using graph::Node;
using graph::NodeId;

struct Analysis {
  const JointGraph& joint;
  const Graph& g = joint.graph;
  std::vector<ValueId> roots = graph::storage_roots(joint.graph);
  std::vector<bool> is_forward{};      ///< primals and results of forward nodes
  std::vector<bool> needed{};          ///< forward values that the traced backward uses itself
  std::vector<bool> materialised{};    ///< of these: some user reads it from memory
  std::vector<bool> visible{};         ///< by storage root: memory of a primal or a forward output
  std::vector<bool> needed_storage{};  ///< by storage root: some needed value lies in it

  explicit Analysis(const JointGraph& j) : joint(j) {
    find_forward_values();
    find_needed_values();
    find_visible_storage();
  }

 private:
  void find_forward_values() {
    is_forward.resize(g.values.size());
    for (std::size_t i = 0; i < joint.primals; ++i) is_forward[g.inputs[i].index] = true;
    for (std::size_t n = 0; n < joint.forward_nodes; ++n)
      for (ValueId v : g.nodes[n].results)
        if (!v.is_none()) is_forward[v.index] = true;
  }

  void use(ValueId v, bool in_memory) {
    if (v.is_none() || !is_forward[v.index]) return;
    needed[v.index] = true;
    materialised[v.index] = materialised[v.index] || in_memory;
  }

  void find_needed_values() {
    needed.resize(g.values.size());
    materialised.resize(g.values.size());
    std::vector<bool> live(g.values.size());
    for (const Level& level : joint.levels)
      for (ValueId v : level.gradients) {
        use(v, true);
        if (!v.is_none()) live[v.index] = true;
      }
    for (std::size_t n = g.nodes.size(); n-- > joint.forward_nodes;) {
      const Node& node = g.nodes[n];
      if (std::ranges::none_of(node.results, [&](ValueId v) { return !v.is_none() && live[v.index]; })) continue;
      graph::for_each_operand(node, [&](ValueId v) {
        live[v.index] = true;
        use(v, !is_fusible(node));
      });
    }
  }

  void find_visible_storage() {
    visible.resize(g.values.size());
    needed_storage.resize(g.values.size());
    for (std::size_t i = 0; i < joint.primals; ++i) visible[roots[g.inputs[i].index].index] = true;
    for (std::size_t i = 0; i < joint.forward_outputs; ++i)
      if (!g.outputs[i].is_none()) visible[roots[g.outputs[i].index].index] = true;
    for (std::size_t v = 0; v < g.values.size(); ++v)
      if (needed[v]) needed_storage[roots[v].index] = true;
  }
};

/// Keeping `v`: never a view (its base is kept and viewed again), and memory that others see only if eager keeps it
/// too.
std::int64_t weight(const Analysis& a, ValueId v) {
  const std::size_t root = a.roots[v.index].index;
  if (a.roots[v.index] != v) return FlowNetwork::kInfinite;
  if (a.visible[root] && !a.needed_storage[root]) return FlowNetwork::kInfinite;
  const bool is_primal = a.g.values[v.index].producer.is_none();
  return is_primal ? 1 : bytes_of(a.g, v);  // a primal is alive anyway
}

/// A value that a library reads in the backward would have to be written there again: it is kept instead.
void forbid_materialised(const Analysis& a, std::vector<bool>& fixed) {
  for (std::size_t v = 0; v < a.g.values.size(); ++v) {
    if (!a.materialised[v]) continue;
    const ValueId root = a.roots[v];
    const NodeId producer = a.g.values[root.index].producer;
    const bool is_free = !producer.is_none() && op::info(a.g.nodes[producer.index].op).lowering == "factory";
    const bool may_keep = weight(a, root) < FlowNetwork::kInfinite;
    if (!is_free && may_keep) fixed[root.index] = true;
  }
}

/// By value: true if the forward keeps it.
std::vector<bool> choose_saved(const Analysis& a) {
  const Graph& g = a.g;
  const std::size_t n = g.values.size(), source = 2 * n, sink = 2 * n + 1;
  std::vector<bool> fixed(n);  // cannot (or shall not) be computed in the backward
  for (std::size_t i = 0; i < a.joint.primals; ++i) fixed[g.inputs[i].index] = true;
  for (std::size_t i = 0; i < a.joint.forward_nodes; ++i)
    if (!is_recomputable(g.nodes[i]))
      for (ValueId v : g.nodes[i].results)
        if (!v.is_none()) fixed[v.index] = true;
  forbid_materialised(a, fixed);

  FlowNetwork network(2 * n + 2);
  const auto in = [](ValueId v) { return 2 * v.index; };
  const auto out = [](ValueId v) { return 2 * std::size_t{v.index} + 1; };
  for (std::size_t i = 0; i < n; ++i) {
    const ValueId v(i);
    if (!a.is_forward[i]) continue;
    network.add_edge(in(v), out(v), weight(a, v));
    if (fixed[i]) network.add_edge(source, in(v), FlowNetwork::kInfinite);
    if (a.needed[i]) network.add_edge(out(v), sink, FlowNetwork::kInfinite);
  }
  for (std::size_t i = 0; i < a.joint.forward_nodes; ++i)
    for (ValueId r : g.nodes[i].results)
      if (!r.is_none() && !fixed[r.index])
        graph::for_each_operand(g.nodes[i],
                                [&](ValueId v) { network.add_edge(out(v), in(r), FlowNetwork::kInfinite); });

  const std::vector<bool> before = network.source_side(source, sink);
  std::vector<bool> saved(n);
  for (std::size_t i = 0; i < n; ++i) saved[i] = a.is_forward[i] && before[2 * i] && !before[2 * i + 1];
  return saved;
}

struct Keeper {
  const JointGraph& joint;
  std::vector<ValueId> extras;

  /// How the forward hands value v on; a new extra output if it is neither a primal nor a forward output.
  Saved keep(ValueId v) {
    const auto index_in = [&](auto begin, auto end) {
      return static_cast<std::uint32_t>(std::find(begin, end, v) - begin);
    };
    const Graph& g = joint.graph;
    const auto primals = static_cast<std::ptrdiff_t>(joint.primals),
               outputs = static_cast<std::ptrdiff_t>(joint.forward_outputs);
    if (const auto i = index_in(g.inputs.begin(), g.inputs.begin() + primals); i < joint.primals)
      return {Saved::Kind::kPrimal, i};
    if (const auto i = index_in(g.outputs.begin(), g.outputs.begin() + outputs); i < joint.forward_outputs)
      return {Saved::Kind::kOutput, i};
    const auto i = index_in(extras.begin(), extras.end());
    if (i == extras.size()) extras.push_back(v);
    return {Saved::Kind::kExtra, i};
  }
};

/// Writes one level's backward: saved values and tangents in, gradients out, everything between computed anew.
class BackwardBuilder {
 public:
  BackwardBuilder(const Analysis& a, const std::vector<bool>& saved, const Level& level, Keeper& keeper)
      : a_(a), saved_(saved), level_(level), keeper_(keeper), moved_(a.g.values.size()), live_(a.g.values.size()) {}

  Backward build() {
    find_live();
    Backward result{.graph = {}, .saved = {}, .outputs = level_.outputs, .edges = level_.edges};
    g_.name = a_.g.name + "_backward";
    g_.symbols = a_.g.symbols;
    g_.opaques = a_.g.opaques;
    for (std::size_t v = 0; v < live_.size(); ++v) {
      if (!live_[v] || !saved_[v]) continue;
      result.saved.push_back(keeper_.keep(ValueId(v)));
      add_input(ValueId(v));
    }
    for (ValueId t : level_.tangents) add_input(t);
    for (std::size_t n = 0; n < a_.g.nodes.size(); ++n)
      if (is_computed(a_.g.nodes[n])) copy_node(a_.g.nodes[n]);
    for (ValueId v : level_.gradients) g_.outputs.push_back(v.is_none() ? v : moved(v));
    result.graph = std::move(g_);
    return result;
  }

 private:
  bool is_computed(const Node& node) const {
    return std::ranges::any_of(node.results,
                               [&](ValueId v) { return !v.is_none() && live_[v.index] && !saved_[v.index]; });
  }

  void find_live() {
    for (ValueId v : level_.gradients)
      if (!v.is_none()) live_[v.index] = true;
    for (std::size_t n = a_.g.nodes.size(); n-- > 0;) {
      const Node& node = a_.g.nodes[n];
      if (!is_computed(node)) continue;
      BRAZE_CHECK(n >= a_.joint.forward_nodes || is_recomputable(node), "{} would be computed twice", node.name);
      graph::for_each_operand(node, [&](ValueId v) { live_[v.index] = true; });
    }
  }

  void add_input(ValueId v) {
    const graph::Value& value = a_.g.values[v.index];
    moved_[v.index] = graph::add_input(g_, value.name, value.type);
  }

  ValueId moved(ValueId v) const {
    BRAZE_CHECK(!moved_[v.index].is_none(), "the backward uses %{}, which is neither kept nor computed",
                a_.g.values[v.index].name);
    return moved_[v.index];
  }

  void copy_node(Node node) {
    graph::for_each_operand(node, [&](ValueId& v) { v = moved(v); });
    for (ValueId& v : node.results) {
      if (v.is_none()) continue;
      const graph::Value& value = a_.g.values[v.index];
      const ValueId copy(g_.values.size());
      const bool is_kept = !moved_[v.index].is_none();  // another result of a node that is computed again
      g_.values.push_back({.name = is_kept ? value.name + ".again" : value.name,
                           .type = value.type,
                           .producer = NodeId(g_.nodes.size())});
      if (!is_kept) moved_[v.index] = copy;
      v = copy;
    }
    g_.nodes.push_back(std::move(node));
  }

  const Analysis& a_;
  const std::vector<bool>& saved_;
  const Level& level_;
  Keeper& keeper_;
  Graph g_;
  std::vector<ValueId> moved_;
  std::vector<bool> live_;
};

/// The forward nodes of the joint graph with the given outputs; tangents are gone.
Graph forward_part(const JointGraph& joint, std::span<const ValueId> outputs) {
  Graph g = joint.graph;
  g.outputs.assign(outputs.begin(), outputs.end());
  g.inputs.resize(joint.primals);
  std::vector<bool> keep(g.nodes.size());
  const std::vector<bool> live = graph::live_values(joint.graph, outputs);
  for (std::size_t n = 0; n < joint.forward_nodes; ++n) {
    const Node& node = g.nodes[n];
    keep[n] = !graph::is_removable(node) ||
              std::ranges::any_of(node.results, [&](ValueId v) { return !v.is_none() && live[v.index]; });
  }
  rebuild(g, keep);
  return g;
}

}  // namespace

Partitioned partition(const JointGraph& traced) {
  JointGraph joint = traced;
  graph::fold_likes(joint.graph);  // a value that is used for its type alone costs nothing
  const Analysis analysis(joint);
  const std::vector<bool> saved = choose_saved(analysis);
  Keeper keeper{joint, {}};
  Partitioned result;
  result.forward_outputs = joint.forward_outputs;
  for (const Level& level : joint.levels)
    result.backwards.push_back(BackwardBuilder(analysis, saved, level, keeper).build());
  std::vector<ValueId> outputs(joint.graph.outputs.begin(),
                               joint.graph.outputs.begin() + static_cast<std::ptrdiff_t>(joint.forward_outputs));
  outputs.insert(outputs.end(), keeper.extras.begin(), keeper.extras.end());
  result.extras = keeper.extras.size();
  result.forward = forward_part(joint, outputs);
  return result;
}

}  // namespace braze::autograd
