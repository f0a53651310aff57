// Constants instead of loads: a map that yields one known number needs no memory in its consumers.
#include <unordered_map>

#include "braze/loop/passes.h"
#include "braze/loop/passes/rewrite.h"

namespace braze::loop {
namespace {

/// The number that every element of the map's only result is, as it is stored.
std::optional<Scalar> constant_of(const LoopProgram& p, const LoopOp& op) {
  if (op.kind != Kind::map || op.results.size() != 1 || !op.body.checks.empty()) return std::nullopt;
  const Scalar& yielded = op.body.nodes[op.body.yields[0].index];
  if (yielded.op != ScalarOp::constant) return std::nullopt;
  const DType dtype = p.tensors[op.results[0].index].type.dtype;
  BodyBuilder b;
  const Term stored = b.cast(keep(b, yielded), dtype);
  return b.at(b.cast(stored, op::compute_type(dtype)).id);
}

}  // namespace

void inline_constants(LoopProgram& p) {
  std::unordered_map<TensorId, Scalar> constants;  // looked up only
  for (LoopOp& op : p.ops) {
    if (op.kind == Kind::external) continue;
    bool reads = false;
    for (const Scalar& s : op.body.nodes) reads = reads || (!s.tensor.is_none() && constants.contains(s.tensor));
    if (reads) {
      rewrite_body(op, [&](BodyBuilder& b, Scalar s) {
        const auto found = s.tensor.is_none() ? constants.end() : constants.find(s.tensor);
        if (found == constants.end()) return keep(b, std::move(s));
        const Term value = keep(b, found->second);
        if (s.operands.empty()) return value;
        return choose({&b, s.operands[0]}, value, b.integer(0, s.type));
      });
    }
    if (const auto constant = constant_of(p, op)) constants.emplace(op.results[0], *constant);
  }
}

}  // namespace braze::loop
