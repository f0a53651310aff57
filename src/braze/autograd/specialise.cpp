// Backwards for tangents of which some are undefined.
//
// A backward is linear in its tangents: what depends on undefined ones alone is undefined too, and an undefined operand
// beside a defined one counts as zero.
#include <algorithm>

#include "braze/autograd/joint_graph.h"
#include "braze/graph/edit.h"
#include "braze/support/check.h"

namespace braze::autograd {
namespace {

using graph::Arg;
using graph::Node;
using graph::None;
using graph::Op;
using graph::SymExpr;
using graph::TensorType;

class Specialiser {
 public:
  Specialiser(const Backward& backward, const std::vector<bool>& defined)
      : from_(backward.graph),
        depends_(from_.values.size()),
        undefined_(from_.values.size()),
        moved_(from_.values.size()) {
    result_.name = from_.name;
    result_.symbols = from_.symbols;
    result_.opaques = from_.opaques;
    for (std::size_t i = 0; i < from_.inputs.size(); ++i) {
      const ValueId v = from_.inputs[i];
      moved_[v.index] = graph::add_input(result_, from_.values[v.index].name, from_.type(v));
      if (i < backward.saved.size()) continue;
      depends_[v.index] = true;
      undefined_[v.index] = !defined[i - backward.saved.size()];
    }
  }

  Graph run(const std::vector<bool>& needed) {
    for (const Node& node : from_.nodes) visit(node);
    for (std::size_t j = 0; j < from_.outputs.size(); ++j) {
      const ValueId v = from_.outputs[j];
      const bool is_none = v.is_none() || !needed[j] || undefined_[v.index];
      result_.outputs.push_back(is_none ? ValueId{} : moved_[v.index]);
    }
    eliminate_dead_code(result_);
    return std::move(result_);
  }

 private:
  void visit(const Node& node) {
    bool some_undefined = false, some_defined = false;
    graph::for_each_operand(node, [&](ValueId v) {
      if (!depends_[v.index]) return;
      (undefined_[v.index] ? some_undefined : some_defined) = true;
    });
    for (ValueId v : node.results) {
      if (v.is_none()) continue;
      depends_[v.index] = some_undefined || some_defined;
      undefined_[v.index] = some_undefined && !some_defined;
    }
    if (some_undefined && !some_defined) return;
    if (some_undefined && take_other_side(node)) return;
    copy(node);
  }

  /// add(a, undefined) is a, where types agree.
  bool take_other_side(const Node& node) {
    if (node.op != Op::add_Tensor || !(node.args[2] == Arg(SymExpr(1)))) return false;
    const auto *a = std::get_if<ValueId>(&node.args[0]), *b = std::get_if<ValueId>(&node.args[1]);
    if (!a || !b) return false;
    const ValueId other = undefined_[a->index] ? *b : *a, result = node.results[0];
    if (undefined_[other.index] || !(from_.type(other) == from_.type(result))) return false;
    moved_[result.index] = moved_[other.index];
    return true;
  }

  /// Zeros of a type; strides that are not row-major are put on dense memory.
  ValueId zeros(const TensorType& t) {
    const Arg device = t.device == graph::Device{} ? Arg(None{}) : Arg(t.device);
    const auto make = [&](std::vector<SymExpr> sizes) {
      const TensorType type = op::contiguous(t.dtype, sizes, t.device);
      return named(
          graph::add_node(result_, "aten::zeros", {std::move(sizes), t.dtype, None{}, device, None{}}, {type})[0]);
    };
    if (t.strides == op::contiguous_strides(t.sizes)) return make(t.sizes);
    SymExpr extent = 1;
    for (std::size_t d = 0; d < t.dim(); ++d) extent = extent + max(t.sizes[d] - 1, 0) * t.strides[d];
    return named(graph::add_node(result_, "aten::as_strided", {make({extent}), t.sizes, t.strides, None{}}, {t})[0]);
  }

  /// Other values keep their names, so zeros get names of their own.
  ValueId named(ValueId v) {
    result_.values[v.index].name = support::format("zero.{}", zeros_++);
    return v;
  }

  void copy(Node node) {
    graph::for_each_operand(node, [&](ValueId& v) {
      const bool has_zeros = !moved_[v.index].is_none() && !is_input(v);
      if (undefined_[v.index] && !has_zeros) moved_[v.index] = zeros(from_.type(v));
      v = moved_[v.index];
    });
    const graph::NodeId producer(result_.nodes.size());
    for (ValueId& v : node.results) {
      if (v.is_none()) continue;
      const ValueId fresh(result_.values.size());
      result_.values.push_back({.name = from_.values[v.index].name, .type = from_.type(v), .producer = producer});
      moved_[v.index] = fresh;
      v = fresh;
    }
    result_.nodes.push_back(std::move(node));
  }

  bool is_input(ValueId v) const { return result_.values[moved_[v.index].index].producer.is_none(); }

  const Graph& from_;
  Graph result_;
  std::vector<bool> depends_, undefined_;  ///< on tangents; on undefined tangents alone
  std::vector<ValueId> moved_;
  int zeros_ = 0;
};

}  // namespace

Graph specialise(const Backward& backward, const std::vector<bool>& defined, const std::vector<bool>& needed) {
  BRAZE_CHECK(defined.size() == backward.outputs.size(), "{} flags for {} tangents", defined.size(),
              backward.outputs.size());
  BRAZE_CHECK(needed.size() == backward.edges.size(), "{} flags for {} gradients", needed.size(),
              backward.edges.size());
  return Specialiser(backward, defined).run(needed);
}

}  // namespace braze::autograd
