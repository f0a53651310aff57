#include "braze/autograd/remat.h"

#include <algorithm>

namespace braze::autograd {

using graph::Node;
using graph::Op;

bool is_view(const Node& node) { return node.op != Op::kOther && op::info(node.op).effect == op::Effect::view; }

bool is_fusible(const Node& node) { return node.op != Op::kOther && op::info(node.op).lowering != "library_call"; }

bool is_recomputable(const Node& node) {
  if (node.op == Op::kOther) return false;
  const op::OpInfo& row = op::info(node.op);
  if (row.effect == op::Effect::view) return true;
  return row.effect == op::Effect::pure && (row.lowering == "pointwise" || row.lowering == "factory");
}

std::int64_t bytes_of(const Graph& g, ValueId v) {
  const auto hint = [&](std::string_view name) {
    const auto found = std::ranges::find(g.symbols, name, &graph::Symbol::name);
    return found == g.symbols.end() ? std::int64_t{2} : found->hint;
  };
  const std::int64_t numel = sym::evaluate(g.type(v).numel(), hint);
  return std::max<std::int64_t>(1, numel * op::bytes(g.type(v).dtype));
}

}  // namespace braze::autograd
