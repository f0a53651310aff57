// What formulas of pointwise operators are written in: operands by position, in PyTorch's common type.
//
//   Term silu(Pointwise& p) { Term x = p[0]; return x * sigmoid(x); }
#pragma once

#include "braze/loop/lower/args.h"
#include "braze/loop/lower/lowering.h"

namespace braze::loop {

class Pointwise {
 public:
  /// `common`: the type to which PyTorch converts the operands.
  Pointwise(Lowering& l, const Node& node, DType common);

  /// An operand (tensor or Scalar) in the common type; for half types rounded to it, then float.
  Term operator[](std::size_t position);
  /// The same, but 0-dim and Scalar operands keep float precision, as PyTorch's arithmetic does.
  Term wide(std::size_t position);
  /// A tensor operand in its own compute type.
  Term raw(std::size_t position);
  Term truth(std::size_t position);           ///< operand != 0
  double number(std::size_t position) const;  ///< a known Scalar
  Term constant(double value) { return loop.body.constant(value, op::compute_type(common)); }

  Lowering& l;
  const Node& node;
  DType common;
  Loop loop;

 private:
  Term convert(std::size_t position, bool keep_scalars);
};

/// torch.result_type of the operands at these positions; 0-dim tensors and Scalars yield to others.
DType common_type(const Lowering& l, const Node& node, std::span<const std::size_t> positions);
/// False if a Scalar is symbolic, so that `number` would fail.
bool has_known_scalars(const Node& node);

using Formula = Term (*)(Pointwise&);

/// A map whose operands are converted to the result's type.
template <Formula kFormula>
bool pointwise(Lowering& l, const Node& node) {
  if (!has_known_scalars(node)) return false;
  Pointwise p(l, node, l.type(node.results[0]).dtype);
  p.loop.yield(kFormula(p), node.results[0]);
  p.loop.map();
  return true;
}

// Functions of terms that formulas share.
inline Term exp(Term x) { return apply(ScalarOp::exp, x); }
inline Term expm1(Term x) { return apply(ScalarOp::expm1, x); }
inline Term log(Term x) { return apply(ScalarOp::log, x); }
inline Term log1p(Term x) { return apply(ScalarOp::log1p, x); }
inline Term tanh(Term x) { return apply(ScalarOp::tanh, x); }
inline Term sigmoid(Term x) { return apply(ScalarOp::sigmoid, x); }
inline Term sqrt(Term x) { return apply(ScalarOp::sqrt, x); }
inline Term rsqrt(Term x) { return apply(ScalarOp::rsqrt, x); }
inline Term abs(Term x) { return apply(ScalarOp::abs, x); }
inline Term maximum(Term a, Term b) { return apply(ScalarOp::maximum, a, b); }
inline Term minimum(Term a, Term b) { return apply(ScalarOp::minimum, a, b); }

}  // namespace braze::loop
