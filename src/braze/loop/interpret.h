// Runs a loop program element by element: slow and obvious, the meaning that kernels are compared with.
#pragma once

#include <functional>
#include <span>

#include "braze/loop/loop.h"

namespace braze::loop {

/// A value of a scalar: `number` for floating types, `integer` for integral ones and b8.
struct Number {
  double number = 0;
  std::int64_t integer = 0;
};

/// A tensor with constant sizes; elements in row-major order of its logical indices, whatever its strides.
struct Array {
  TensorType type;
  std::vector<Number> elements;
};

/// What one operator gives; operands have types as in the node. f32 is computed in float, f64 in double.
Number evaluate(ScalarOp op, DType type, std::span<const Number> operands, std::span<const DType> operand_types);
Number convert(Number x, DType from, DType to);  ///< PyTorch's conversion; half types round

/// A reduction under way.
struct Folding {
  Number value;
  std::int64_t best = 0;  ///< where the value of argmax or argmin stood
  bool empty = true;
};
Folding neutral(Fold fold, DType type);
void fold_in(Fold fold, DType type, Folding& f, Number x, std::int64_t at);  ///< equal extremes: the smallest `at`

/// Stands in for library calls: gives one Array per result.
using External = std::function<std::vector<Array>(const LoopOp& op, const std::function<Array(TensorId)>& operand)>;

/// The outputs. Size symbols take their values from the inputs' sizes (every symbol is some input's size). A check that
/// fails is an InternalError that starts with "check". Without `external` library calls are InternalErrors.
std::vector<Array> interpret(const LoopProgram& p, std::span<const Array> inputs, const External& external = {});

}  // namespace braze::loop
