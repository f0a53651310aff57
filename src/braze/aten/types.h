// Element types, devices and tensor types: PyTorch's and ours.
#pragma once

#include <ATen/core/TensorBody.h>

#include <optional>

#include "braze/op/tensor_type.h"

namespace braze::aten {

/// Nothing for element types that we do not know (quantized, float8, uint16, complex32 ...).
std::optional<op::DType> to_dtype(at::ScalarType t);
at::ScalarType to_scalar_type(op::DType t);

op::Device to_device(at::Device d);  ///< InternalError for a device of another kind
at::Device to_c10_device(op::Device d);

/// The type of a strided tensor of a known element type; sizes are constants.
op::TensorType type_of(const at::Tensor& t);

std::vector<std::int64_t> to_ints(const std::vector<sym::SymExpr>& values);  ///< all constant
std::vector<sym::SymExpr> to_exprs(at::IntArrayRef values);

}  // namespace braze::aten
