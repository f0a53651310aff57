// Nodes that change nothing: views of the same type, copies that nobody can tell from the original, exact identities.
#include <cmath>

#include "braze/graph/edit.h"
#include "braze/graph/passes.h"

namespace braze::graph {
namespace {

bool is_number(const Arg& a, double value) {
  if (const auto* d = std::get_if<double>(&a)) return *d == value;
  const auto* e = std::get_if<SymExpr>(&a);
  return e && e->is_constant() && static_cast<double>(e->constant()) == value;
}

/// A view that shows all of its operand in the same order if the types agree.
bool is_plain_view(Op op) {
  switch (op) {
    case Op::alias:
    case Op::detach:
    case Op::lift_fresh:
    case Op::view:
    case Op::_unsafe_view:
    case Op::reshape:
    case Op::expand:
    case Op::squeeze:
    case Op::squeeze_dim:
    case Op::squeeze_dims:
    case Op::slice_Tensor: return true;  // equal sizes leave no room for an offset
    default: return false;
  }
}

/// The first operand's values bit for bit, if the types agree. x + 0.0 is not: -0.0 becomes 0.0.
bool is_identity(const Node& node) {
  switch (node.op) {
    case Op::clone:
    case Op::_to_copy:
    case Op::lift_fresh_copy:
    case Op::positive: return true;
    case Op::mul_Tensor:
    case Op::mul_Scalar:
    case Op::div_Tensor:
    case Op::div_Scalar: return is_number(node.args[1], 1);
    case Op::sub_Tensor:
    case Op::sub_Scalar: {
      const auto* zero = std::get_if<double>(&node.args[1]);
      return is_number(node.args[1], 0) && is_number(node.args[2], 1) && !(zero && std::signbit(*zero));
    }
    default: return false;
  }
}

}  // namespace

void fold_noops(Graph& g) {
  OutputStorage storage(g);
  std::vector<bool> is_output(g.values.size());
  for (ValueId v : g.outputs)
    if (!v.is_none()) is_output[v.index] = true;
  std::vector<ValueId> replacement(g.values.size());
  for (const Node& node : g.nodes) {
    if (node.op == Op::kOther || node.args.empty() || node.results.size() != 1 || node.results[0].is_none()) continue;
    const auto* operand = std::get_if<ValueId>(&node.args[0]);
    const ValueId result = node.results[0];
    if (!operand || operand->is_none() || is_output[result.index] || !(g.type(*operand) == g.type(result))) continue;
    if (is_plain_view(node.op) || (is_identity(node) && !storage.is_seen(result))) replacement[result.index] = *operand;
  }
  replace_uses(g, replacement);
  eliminate_dead_code(g);
}

}  // namespace braze::graph
