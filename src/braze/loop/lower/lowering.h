// The state of one lowering: where every graph value lives, and how rules read values and emit loops.
//
// A rule turns one graph node into loop operators: it makes Loops, reads operands at logical indices, yields results.
//   Loop loop(l, node, type.sizes);  loop.yield(loop.value(x, loop.i) * 2.0, node.results[0]);  loop.map();
// A rule that cannot do a case (complex numbers, an index that needs a check) returns false; the node becomes external.
#pragma once

#include <unordered_set>

#include "braze/loop/build.h"
#include "braze/loop/lower/index_map.h"

namespace braze::loop {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using op::Op;

/// Where a graph value lives.
struct Bound {
  enum class Form : std::uint8_t {
    none,
    tensor,   ///< the element at i... is tensor[map(i...)]
    number,   ///< every element is `number` (floating) or `integer`
    content,  ///< the element at i... is the integer `index` over i...
  };
  Form form = Form::none;
  TensorId tensor;
  IndexMap map;
  TensorId base;   ///< the memory whose elements, from `offset` on and with the graph type's strides, are the value;
  SymExpr offset;  ///< none: it lies nowhere in that form yet
  ValueId root;    ///< without base: a value in whose memory it lies at `offset` once that one is materialised
  double number = 0;
  std::int64_t integer = 0;
  SymExpr index;
  TensorId real;  ///< the tensor that externals and outputs name, once there is one
};

class Lowering {
 public:
  Lowering(const Graph& graph, const LowerOptions& options);
  LoopProgram run();

  const TensorType& type(ValueId v) const { return graph.type(v); }
  const Bound& bound(ValueId v) const { return bounds_[v.index]; }
  /// True if the value or a view of it is an output: its memory must be its own.
  bool escapes(ValueId v) const { return escapes_[v.index]; }

  /// A fresh tensor; `name` is made unique.
  TensorId add_tensor(TensorType type, std::string name);
  void bind(ValueId v, Bound b) { bounds_[v.index] = std::move(b); }
  void bind_tensor(ValueId v, TensorId tensor);  ///< lies in this tensor as the graph says
  void bind_number(ValueId v, double number, std::int64_t integer);
  void bind_content(ValueId v, SymExpr index);
  /// v's element i... is source's element map(i...). memory: v lies in source's memory, offset elements further.
  void bind_view(ValueId v, ValueId source, IndexMap map, std::optional<SymExpr> memory);
  /// A tensor with the value's elements and the graph type's strides.
  TensorId materialise(ValueId v);
  /// The same with any strides, and a tensor of its own, no view: what `LoopOp::init` names.
  TensorId materialise_plain(ValueId v);
  /// The type that a computed value gets in memory: the graph's strides if they are dense, else contiguous.
  TensorType stored_type(ValueId v) const;
  void external(const Node& node);
  void emit(LoopOp op) { program.ops.push_back(std::move(op)); }
  /// What is known of size symbols and of loop variables over these extents.
  sym::Ranges ranges(std::span<const SymExpr> space, std::span<const SymExpr> reduced = {}) const;

  const Graph& graph;
  const LowerOptions options;
  LoopProgram program;

 private:
  void lower_node(const Node& node);
  TensorId copy(ValueId v);
  TensorId find_real(ValueId v);
  void mark_escapes();

  std::vector<Bound> bounds_;
  std::vector<bool> escapes_;
  std::unordered_set<std::string> names_;
};

/// A loop operator under construction.
class Loop {
 public:
  Loop(Lowering& l, const Node& node, std::span<const SymExpr> space, std::span<const SymExpr> reduced = {});

  /// A graph value at indices over i and r (or @n), in the value's compute type; sizes of 1 read index 0.
  Term value(ValueId v, std::span<const SymExpr> at);
  Term value_if(Term mask, ValueId v, std::span<const SymExpr> at);
  /// A graph value, broadcast to a space whose indices are `at`.
  Term broadcast(ValueId v, std::span<const SymExpr> at);
  /// An intermediate tensor.
  Term tensor(TensorId t, std::span<const SymExpr> at);

  /// The next result: a graph value (none: dropped together with its yield).
  void yield(Term x, ValueId result);
  /// The next result: an intermediate over the space. `suffix` goes into its name.
  TensorId yield(Term x, DType type, std::string_view suffix);
  /// The next result: a graph value that later loops of the rule read too, at no less than `type`'s precision: the
  /// value's own tensor if it has this type, else an intermediate beside it.
  TensorId yield_both(Term x, ValueId result, DType type, std::string_view suffix);
  /// The next result: an existing tensor.
  TensorId yield_into(Term x, TensorId tensor);
  /// For argmax and argmin: the value compared, in its own type.
  void yield_key(Term x, ValueId result);

  void map() { finish(Kind::map); }
  void reduce(Fold fold);
  void scatter(TensorId init, std::vector<SymExpr> targets, bool accumulate);

  const sym::Ranges& ranges();  ///< of the loop variables and size symbols; made when first needed

  BodyBuilder body;
  std::vector<SymExpr> i, r;  ///< the loop variables; 0 where the extent is 1

 private:
  Term read(std::optional<Term> mask, ValueId v, std::span<const SymExpr> at);
  void finish(Kind kind);

  Lowering& l_;
  const Node& node_;
  LoopOp op_;
  sym::Ranges ranges_;
};

using Rule = bool (*)(Lowering&, const Node&);
struct RuleRow {
  Op op;
  Rule rule;
};
/// The rules by family, one file each.
std::span<const RuleRow> pointwise_rules();
std::span<const RuleRow> activation_rules();
std::span<const RuleRow> reduction_rules();
std::span<const RuleRow> view_rules();
std::span<const RuleRow> index_rules();
std::span<const RuleRow> gather_rules();
std::span<const RuleRow> factory_rules();
std::span<const RuleRow> softmax_rules();
std::span<const RuleRow> norm_rules();
std::span<const RuleRow> batch_norm_rules();
std::span<const RuleRow> loss_rules();
/// Null: always external.
Rule find_rule(Op op);

}  // namespace braze::loop
