// Binding graph values to tensors, and making real tensors where a library call or an output needs one.
#include "braze/loop/lower/lowering.h"

#include <algorithm>

#include "braze/loop/lower/args.h"
#include "braze/loop/passes.h"

namespace braze::loop {
namespace {

/// True if the strides are those of a permuted contiguous tensor.
bool is_dense(const TensorType& t) {
  if (op::is_contiguous(t)) return true;
  std::vector<bool> used(t.dim());
  SymExpr expected = 1;
  for (std::size_t step = 0; step < t.dim(); ++step) {
    std::size_t next = t.dim();
    for (std::size_t k = 0; k < t.dim(); ++k) {
      if (!used[k] && (t.sizes[k].is_value(1) || t.strides[k] == expected)) next = k;
      if (next == k && !t.sizes[k].is_value(1)) break;
    }
    if (next == t.dim()) return false;
    used[next] = true;
    if (!t.sizes[next].is_value(1)) expected = expected * t.sizes[next];
  }
  return true;
}

bool has_complex(const Graph& g, const Node& node) {
  bool found = false;
  graph::for_each_operand(node, [&](ValueId v) { found = found || op::is_complex(g.type(v).dtype); });
  for (const ValueId v : node.results) found = found || (!v.is_none() && op::is_complex(g.type(v).dtype));
  for (const graph::Arg& a : node.args) found = found || std::holds_alternative<graph::Complex>(a);
  return found;
}

bool has_one_device(const Graph& g, const Node& node) {
  const op::Device* device = nullptr;
  bool one = true;
  const auto visit = [&](ValueId v) {
    if (device) one = one && g.type(v).device == *device;
    device = &g.type(v).device;
  };
  graph::for_each_operand(node, visit);
  for (const ValueId v : node.results)
    if (!v.is_none()) visit(v);
  return one;
}

/// Dimensions that repeat their elements in memory shrink to 1.
TensorType without_repeats(TensorType t) {
  for (std::size_t k = 0; k < t.dim(); ++k) {
    if (t.strides[k].is_value(0)) t.sizes[k] = 1;
  }
  return t;
}

}  // namespace

Lowering::Lowering(const Graph& g, const LowerOptions& o)
    : graph(g), options(o), bounds_(g.values.size()), escapes_(g.values.size()) {
  program.name = g.name;
  program.symbols = g.symbols;
  program.opaques = g.opaques;
  program.tensors.reserve(g.values.size());
  program.ops.reserve(g.nodes.size());
  mark_escapes();
}

void Lowering::mark_escapes() {
  for (const ValueId v : graph.outputs)
    if (!v.is_none()) escapes_[v.index] = true;
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    if (node.op == Op::kOther || op::info(node.op).effect != op::Effect::view) continue;
    const bool escapes = std::any_of(node.results.begin(), node.results.end(),
                                     [&](ValueId v) { return !v.is_none() && escapes_[v.index]; });
    if (escapes) graph::for_each_operand(node, [&](ValueId v) { escapes_[v.index] = true; });
  }
}

TensorId Lowering::add_tensor(TensorType type, std::string name) {
  if (!names_.insert(name).second) {
    std::size_t count = 1;
    while (!names_.insert(name + "_" + std::to_string(count)).second) ++count;
    name += "_" + std::to_string(count);
  }
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = std::move(type);
  program.tensors.push_back(std::move(tensor));
  return TensorId(program.tensors.size() - 1);
}

void Lowering::bind_tensor(ValueId v, TensorId tensor) {
  Bound b;
  b.form = Bound::Form::tensor;
  b.tensor = tensor;
  b.map = identity_map(type(v).sizes);
  if (program.tensors[tensor.index].type == type(v)) b.base = b.real = tensor;
  bind(v, std::move(b));
}

void Lowering::bind_number(ValueId v, double number, std::int64_t integer) {
  Bound b;
  b.form = Bound::Form::number;
  b.number = number;
  b.integer = integer;
  bind(v, std::move(b));
}

void Lowering::bind_content(ValueId v, SymExpr index) {
  Bound b;
  b.form = Bound::Form::content;
  b.index = std::move(index);
  bind(v, std::move(b));
}

void Lowering::bind_view(ValueId v, ValueId source, IndexMap map, std::optional<SymExpr> memory) {
  const Bound& from = bound(source);
  Bound b;
  b.form = from.form;
  b.tensor = from.tensor;
  b.number = from.number;
  b.integer = from.integer;
  if (from.form == Bound::Form::content) {
    std::vector<SymExpr> at;
    for (const Index& index : map) at.push_back(index.to_expr());
    b.index = apply(from.index, at, ranges(type(v).sizes));
  }
  if (from.form == Bound::Form::tensor)
    b.map = has_arithmetic(from.map) ? compose(from.map, map, ranges(type(v).sizes)) : compose(from.map, map, {});
  if (memory) {
    const bool is_root = from.base.is_none() && from.root.is_none();
    b.base = from.base;
    b.root = is_root ? source : from.root;
    b.offset = from.offset + *memory;
  }
  bind(v, std::move(b));
}

TensorType Lowering::stored_type(ValueId v) const {
  const TensorType& t = type(v);
  return is_dense(t) || escapes(v) ? t : op::contiguous(t.dtype, t.sizes, t.device);
}

TensorId Lowering::find_real(ValueId v) {
  if (bound(v).base.is_none() && bound(v).root.is_none()) return copy(v);
  if (bound(v).base.is_none()) {
    const TensorId root = materialise(bound(v).root);
    const Tensor& memory = program.tensors[root.index];
    bounds_[v.index].base = memory.base.is_none() ? root : memory.base;
    bounds_[v.index].offset = bounds_[v.index].offset + memory.offset;
  }
  const Bound& b = bound(v);
  if (b.offset.is_value(0) && program.tensors[b.base.index].type == type(v)) return b.base;
  const TensorId view = add_tensor(type(v), graph.values[v.index].name);
  program.tensors[view.index].base = b.base;
  program.tensors[view.index].offset = b.offset;
  return view;
}

TensorId Lowering::materialise(ValueId v) {
  BRAZE_CHECK(bound(v).form != Bound::Form::none, "%{} is used before it is lowered", graph.values[v.index].name);
  if (bounds_[v.index].real.is_none()) {
    const TensorId real = find_real(v);
    bounds_[v.index].real = real;
  }
  return bounds_[v.index].real;
}

TensorId Lowering::materialise_plain(ValueId v) {
  const Bound& b = bound(v);
  if (b.form == Bound::Form::tensor && b.base == b.tensor && b.offset.is_value(0) &&
      program.tensors[b.tensor.index].type == type(v))
    return b.tensor;
  return copy(v);
}

TensorId Lowering::copy(ValueId v) {
  const TensorType stored = without_repeats(type(v));
  const bool repeats = stored.sizes != type(v).sizes;
  Node node;
  node.name = "copy";
  const graph::NodeId producer = graph.values[v.index].producer;
  if (!producer.is_none()) node = graph.nodes[producer.index];
  Loop loop(*this, node, stored.sizes);
  const TensorId copied = loop.yield_into(loop.value(v, loop.i), add_tensor(stored, graph.values[v.index].name));
  loop.map();
  if (!repeats) {
    if (bound(v).form == Bound::Form::tensor) bind_tensor(v, copied);
    return copied;
  }
  const TensorId view = add_tensor(type(v), graph.values[v.index].name);
  program.tensors[view.index].base = copied;
  return view;
}

sym::Ranges Lowering::ranges(std::span<const SymExpr> space, std::span<const SymExpr> reduced) const {
  sym::Ranges all;
  all.reserve(graph.symbols.size() + space.size() + reduced.size());
  for (const graph::Symbol& s : graph.symbols) all.push_back({s.name, s.low, s.high, std::nullopt});
  add_ranges(all, space, reduced);
  return all;
}

void Lowering::external(const Node& node) {
  LoopOp op;
  op.kind = Kind::external;
  op.node = node;
  op.at = node.at;
  op.origin = node.name;
  graph::for_each_operand(op.node, [&](ValueId& v) { v = materialise(v); });
  for (ValueId& v : op.node.results) {
    if (!v.is_none()) {
      const TensorId tensor = add_tensor(type(v), graph.values[v.index].name);
      bind_tensor(v, tensor);
      v = tensor;
    }
    op.results.push_back(v);
  }
  emit(std::move(op));
}

void Lowering::lower_node(const Node& node) {
  const Rule rule = find_rule(node.op);
  if (!rule || has_complex(graph, node) || !has_one_device(graph, node) || !rule(*this, node)) external(node);
}

LoopProgram Lowering::run() {
  for (const ValueId v : graph.inputs) {
    bind_tensor(v, add_tensor(type(v), graph.values[v.index].name));
    program.inputs.push_back(bound(v).tensor);
  }
  for (const Node& node : graph.nodes) lower_node(node);
  for (const ValueId v : graph.outputs) program.outputs.push_back(v.is_none() ? TensorId() : materialise(v));
  eliminate_dead_ops(program);
  return std::move(program);
}

LoopProgram lower(const Graph& g, const LowerOptions& options) { return Lowering(g, options).run(); }

}  // namespace braze::loop
