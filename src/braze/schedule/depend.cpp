// Dependencies are read off loads and the operands of externals.
#include "braze/schedule/depend.h"

#include <algorithm>

namespace braze::schedule {

TensorId base_of(const LoopProgram& program, TensorId t) {
  while (!program.tensors[t.index].base.is_none()) t = program.tensors[t.index].base;
  return t;
}

std::vector<TensorId> reads_of(const LoopProgram& program, const loop::LoopOp& op) {
  std::vector<TensorId> reads;
  const auto add = [&](TensorId t) {
    if (t.is_none()) return;
    t = base_of(program, t);
    if (std::ranges::find(reads, t) == reads.end()) reads.push_back(t);
  };
  for (const loop::Scalar& s : op.body.nodes)
    if (s.op == loop::ScalarOp::load) add(s.tensor);
  if (op.kind == loop::Kind::scatter) add(op.init);
  if (op.kind == loop::Kind::external) graph::for_each_operand(op.node, add);
  return reads;
}

Uses find_uses(const LoopProgram& program) {
  const std::size_t n = program.tensors.size();
  Uses u{std::vector<std::uint32_t>(n, kNone), std::vector<std::vector<std::uint32_t>>(n), std::vector<bool>(n)};
  for (std::uint32_t k = 0; k < program.ops.size(); ++k) {
    const loop::LoopOp& op = program.ops[k];
    const bool opaque = op.kind == loop::Kind::external || op.kind == loop::Kind::scatter;
    for (TensorId t : reads_of(program, op)) {
      u.consumers[t.index].push_back(k);
      if (op.kind == loop::Kind::external || t == op.init) u.needs_memory[t.index] = true;
    }
    for (TensorId t : op.results) {
      if (t.is_none()) continue;
      u.producer[base_of(program, t).index] = k;
      if (opaque) u.needs_memory[t.index] = true;
    }
  }
  for (TensorId t : program.inputs) u.needs_memory[t.index] = true;
  for (TensorId t : program.outputs)
    if (!t.is_none()) u.needs_memory[base_of(program, t).index] = u.needs_memory[t.index] = true;
  for (std::size_t t = 0; t < n; ++t)
    if (!program.tensors[t].base.is_none())
      u.needs_memory[t] = u.needs_memory[base_of(program, TensorId(t)).index] = true;
  for (std::size_t t = 0; t < n; ++t)
    if (!program.tensors[t].base.is_none()) u.producer[t] = u.producer[base_of(program, TensorId(t)).index];
  return u;
}

std::size_t Reach::add() {
  const std::size_t words = bits_.size() / 64 + 1;
  if (!bits_.empty() && bits_.front().size() < words)
    for (auto& row : bits_) row.resize(words);
  bits_.emplace_back(words);
  return bits_.size() - 1;
}

void Reach::depend(std::size_t group, std::size_t on) {
  if (group == on || has(group, on)) return;
  std::vector<std::uint64_t> all = bits_[on];
  all[on / 64] |= std::uint64_t{1} << (on % 64);
  for (std::size_t g = 0; g < bits_.size(); ++g)
    if (g == group || has(g, group))
      for (std::size_t w = 0; w < all.size(); ++w) bits_[g][w] |= all[w];
}

}  // namespace braze::schedule
