// Building graphs, and taking parts of them: dead code, extraction.
#include <algorithm>

#include "braze/graph/edit.h"
#include "braze/support/check.h"

namespace braze::graph {
namespace {

/// %0, %1, ... are numbers in a row; a name given by hand that is a number too moves the row on.
std::string fresh_name(const Graph& g, std::size_t start) {
  const auto is_taken = [&](const std::string& name) {
    return std::ranges::any_of(g.values, [&](const Value& v) { return v.name == name; });
  };
  for (std::size_t i = start;; ++i)
    if (std::string name = std::to_string(i); !is_taken(name)) return name;
}

bool is_number(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

ValueId add_input(Graph& g, std::string_view name, TensorType type) {
  const ValueId id(g.values.size());
  const std::string chosen = name.empty() ? fresh_name(g, 0) : std::string(name);
  g.values.push_back({.name = chosen, .type = std::move(type), .producer = {}});
  g.inputs.push_back(id);
  return id;
}

std::vector<ValueId> add_node(Graph& g, std::string_view op_name, std::vector<Arg> args, std::vector<TensorType> types,
                              Location at) {
  Node node{.op = op::find_op(op_name),
            .name = std::string(op_name),
            .args = std::move(args),
            .results = {},
            .at = std::move(at)};
  const NodeId producer(g.nodes.size());
  for (TensorType& type : types) {
    const ValueId id(g.values.size());
    g.values.push_back({.name = next_name(g), .type = std::move(type), .producer = producer});
    node.results.push_back(id);
  }
  node.returns_list = node.op != Op::kOther && op::returns_list(node.op);
  g.nodes.push_back(std::move(node));
  return g.nodes.back().results;
}

// The last value has the highest number unless names were given by hand: usually one step.
std::string next_name(const Graph& g) {
  for (std::size_t i = g.values.size(); i-- > 0;)
    if (is_number(g.values[i].name)) return std::to_string(std::stoull(g.values[i].name) + 1);
  return fresh_name(g, 0);
}

bool is_removable(const Node& node) {
  if (node.op == Op::kOther) return false;
  const op::Effect effect = op::info(node.op).effect;
  return effect == op::Effect::pure || effect == op::Effect::view;
}

void rebuild(Graph& g, const std::vector<bool>& keep) {
  BRAZE_CHECK(keep.size() == g.nodes.size(), "{} flags for {} nodes", keep.size(), g.nodes.size());
  std::vector<ValueId> moved(g.values.size());
  std::vector<Value> values;
  const auto move_value = [&](ValueId v, NodeId producer) {
    if (v.is_none() || !moved[v.index].is_none()) return;
    moved[v.index] = ValueId(values.size());
    values.push_back(std::move(g.values[v.index]));
    values.back().producer = producer;
  };
  for (ValueId v : g.inputs) move_value(v, {});
  std::vector<Node> nodes;
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    if (!keep[n]) continue;
    for (ValueId v : g.nodes[n].results) move_value(v, NodeId(nodes.size()));
    nodes.push_back(std::move(g.nodes[n]));
  }
  const auto rename = [&](ValueId& v) {
    if (v.is_none()) return;
    v = moved[v.index];
    BRAZE_CHECK(!v.is_none(), "a removed value is used");
  };
  for (Node& node : nodes) {
    for_each_operand(node, rename);
    for (ValueId& v : node.results) rename(v);
  }
  for (ValueId& v : g.inputs) rename(v);
  for (ValueId& v : g.outputs) rename(v);
  g.nodes = std::move(nodes);
  g.values = std::move(values);
}

std::vector<bool> live_values(const Graph& g, std::span<const ValueId> roots) {
  std::vector<bool> live(g.values.size());
  const auto mark = [&](ValueId v) {
    if (!v.is_none()) live[v.index] = true;
  };
  for (ValueId v : roots) mark(v);
  for (std::size_t n = g.nodes.size(); n-- > 0;) {
    const Node& node = g.nodes[n];
    const bool needed = !is_removable(node) ||
                        std::ranges::any_of(node.results, [&](ValueId v) { return !v.is_none() && live[v.index]; });
    if (!needed) continue;
    for_each_operand(node, mark);
    for (ValueId v : node.results) mark(v);
  }
  return live;
}

std::vector<ValueId> storage_roots(const Graph& g) {
  std::vector<ValueId> roots(g.values.size());
  for (std::size_t v = 0; v < roots.size(); ++v) roots[v] = ValueId(v);
  for (const Node& node : g.nodes) {
    if (node.op == Op::kOther || op::info(node.op).effect != op::Effect::view) continue;
    const auto* base = std::get_if<ValueId>(&node.args[0]);
    if (!base || base->is_none()) continue;
    for (ValueId r : node.results)
      if (!r.is_none()) roots[r.index] = roots[base->index];
  }
  return roots;
}

OutputStorage::OutputStorage(const Graph& g) : roots_(storage_roots(g)), seen_(g.values.size()) {
  for (const auto* list : {&g.outputs, &g.inputs})
    for (ValueId v : *list)
      if (!v.is_none()) mark_seen(v);
}

void replace_uses(Graph& g, const std::vector<ValueId>& replacement) {
  const auto replace = [&](ValueId& v) {
    while (!v.is_none() && v.index < replacement.size() && !replacement[v.index].is_none()) v = replacement[v.index];
  };
  for (Node& node : g.nodes) for_each_operand(node, replace);
  for (ValueId& v : g.outputs) replace(v);
}

void eliminate_dead_code(Graph& g) {
  const std::vector<bool> live = live_values(g, g.outputs);
  std::vector<bool> keep(g.nodes.size());
  for (std::size_t n = 0; n < keep.size(); ++n) {
    const Node& node = g.nodes[n];
    keep[n] = !is_removable(node) ||
              std::ranges::any_of(node.results, [&](ValueId v) { return !v.is_none() && live[v.index]; });
  }
  rebuild(g, keep);
}

Graph extract(const Graph& g, std::span<const ValueId> outputs) {
  Graph result = g;
  result.outputs.assign(outputs.begin(), outputs.end());
  eliminate_dead_code(result);
  return result;
}

}  // namespace braze::graph
