// zeros_like(x) needs x's type only: it becomes zeros of that type, so that x need not be kept for it.
#include "braze/graph/edit.h"
#include "braze/graph/passes.h"

namespace braze::graph {
namespace {

/// The number that the factory fills in; nothing for other operators and for tensors that are left unfilled.
std::optional<Arg> fill_of(const Node& node) {
  switch (node.op) {
    case Op::zeros_like:
    case Op::new_zeros: return SymExpr(0);
    case Op::ones_like:
    case Op::new_ones: return SymExpr(1);
    case Op::full_like: return node.args[1];
    case Op::new_full: return node.args[2];
    default: return std::nullopt;
  }
}

}  // namespace

void fold_likes(Graph& g) {
  for (Node& node : g.nodes) {
    const auto fill = fill_of(node);
    if (!fill) continue;
    const TensorType& type = g.type(node.results[0]);
    if (!(type.strides == op::contiguous_strides(type.sizes))) continue;
    const Arg device = type.device == Device{} ? Arg(None{}) : Arg(type.device);
    node.op = Op::full;
    node.name = op::info(Op::full).name;
    node.args = {type.sizes, *fill, type.dtype, None{}, device, None{}};
  }
}

}  // namespace braze::graph
