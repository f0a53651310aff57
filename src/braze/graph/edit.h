// Tools of passes over graphs: who is live, who uses whom, rebuilding without some nodes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braze/graph/graph.h"

namespace braze::graph {

/// Pure or a view with a row: may be dropped when nothing uses it. Operators without a row are kept.
bool is_removable(const Node& node);

/// Values that the roots, or a node that may not be removed, depend on (all results of a needed node are live).
std::vector<bool> live_values(const Graph& g, std::span<const ValueId> roots);

/// Drops nodes whose flag is false, their results and values that nothing produces; renumbers ids, keeps names. Kept
/// nodes and outputs must not use what is dropped.
void rebuild(Graph& g, const std::vector<bool>& keep);

/// The name that add_node gives to the next value.
std::string next_name(const Graph& g);

/// For each value the value whose storage it shares, found through views; itself for all others.
std::vector<ValueId> storage_roots(const Graph& g);

/// Which values share memory with an output (or an input): there a copy or a second computation can be told apart.
class OutputStorage {
 public:
  explicit OutputStorage(const Graph& g);
  bool is_seen(ValueId v) const { return seen_[roots_[v.index].index]; }
  void mark_seen(ValueId v) { seen_[roots_[v.index].index] = true; }

 private:
  std::vector<ValueId> roots_;
  std::vector<bool> seen_;
};

/// "aten::mul.Tensor" as texts show it: "aten.mul.Tensor".
std::string operator_text(std::string_view name);

/// Every use of `from` by nodes and outputs becomes a use of the value it is mapped to; a none id maps to itself.
void replace_uses(Graph& g, const std::vector<ValueId>& replacement);

}  // namespace braze::graph
