// Dead operations: what no output reaches goes; tensors are renumbered in order of appearance.
#include <algorithm>

#include "braze/loop/passes.h"

namespace braze::loop {
namespace {

/// A library call that may be dropped when nothing uses its results.
bool is_pure(const LoopOp& op) {
  if (op.kind != Kind::external) return true;
  if (op.node.op == op::Op::kOther) return false;
  const op::Effect effect = op::info(op.node.op).effect;
  return effect == op::Effect::pure || effect == op::Effect::view;
}

template <class Visit>
void for_each_tensor_read(LoopOp& op, Visit visit) {
  for (Scalar& s : op.body.nodes)
    if (!s.tensor.is_none()) visit(s.tensor);
  if (!op.init.is_none()) visit(op.init);
  graph::for_each_operand(op.node, visit);
}

struct Liveness {
  explicit Liveness(LoopProgram& program) : p(program), live(p.tensors.size()) {}

  void mark(TensorId t) {
    live[t.index] = true;
    if (!p.tensors[t.index].base.is_none()) live[p.tensors[t.index].base.index] = true;
  }
  bool is_needed(const LoopOp& op) const {
    return !is_pure(op) ||
           std::any_of(op.results.begin(), op.results.end(), [&](TensorId t) { return !t.is_none() && live[t.index]; });
  }
  /// Results of maps and reductions go one by one: their yields are dropped.
  void drop_results(LoopOp& op) const {
    if (op.kind != Kind::map && op.kind != Kind::reduce) return;
    for (std::size_t k = op.results.size(); k-- > 0;) {
      if (live[op.results[k].index]) continue;
      op.results.erase(op.results.begin() + static_cast<std::ptrdiff_t>(k));
      op.body.yields.erase(op.body.yields.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }

  LoopProgram& p;
  std::vector<bool> live;
};

/// New numbers in order of appearance.
struct Renumber {
  explicit Renumber(LoopProgram& program) : p(program), number(p.tensors.size()) {}

  TensorId place(TensorId t) {
    if (!number[t.index].is_none()) return number[t.index];
    Tensor tensor = p.tensors[t.index];
    if (!tensor.base.is_none()) tensor.base = place(tensor.base);
    number[t.index] = TensorId(tensors.size());
    tensors.push_back(std::move(tensor));
    return number[t.index];
  }
  void apply(std::vector<TensorId>& list) {
    for (TensorId& t : list)
      if (!t.is_none()) t = place(t);
  }
  void run() {
    apply(p.inputs);
    for (LoopOp& op : p.ops) {
      for_each_tensor_read(op, [this](TensorId& t) { t = place(t); });
      apply(op.results);
      if (op.kind == Kind::external) op.node.results = op.results;
    }
    apply(p.outputs);
    p.tensors = std::move(tensors);
  }

  LoopProgram& p;
  std::vector<TensorId> number;
  std::vector<Tensor> tensors;
};

}  // namespace

void eliminate_dead_ops(LoopProgram& p) {
  Liveness liveness(p);
  for (const TensorId t : p.outputs)
    if (!t.is_none()) liveness.mark(t);
  std::vector<bool> keep(p.ops.size());
  for (std::size_t k = p.ops.size(); k-- > 0;) {
    LoopOp& op = p.ops[k];
    keep[k] = liveness.is_needed(op);
    if (!keep[k]) continue;
    liveness.drop_results(op);
    for_each_tensor_read(op, [&](TensorId t) { liveness.mark(t); });
  }
  std::size_t next = 0;
  for (std::size_t k = 0; k < p.ops.size(); ++k) {
    if (!keep[k]) continue;
    if (next != k) p.ops[next] = std::move(p.ops[k]);
    ++next;
  }
  p.ops.resize(next);
  Renumber(p).run();
}

}  // namespace braze::loop
