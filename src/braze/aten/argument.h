// Arguments of operators: PyTorch's boxed IValue by the schema's type on one side, graph::Arg on the other.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type_base.h>

#include <optional>
#include <span>

#include "braze/graph/graph.h"

namespace braze::aten {

/// What a schema's parameter holds, optional or not.
enum class ArgKind : std::uint8_t {
  kTensor,
  kTensorList,          ///< Tensor[]
  kOptionalTensorList,  ///< Tensor?[]
  kInt,                 ///< int, SymInt
  kIntList,
  kDouble,
  kDoubleList,
  kBool,
  kBoolList,
  kScalar,
  kString,
  kDType,
  kLayout,
  kMemoryFormat,
  kDevice,
  kOther,  ///< Generator, Storage, Scalar[], ...: only None can be converted
};

/// `type` is the parameter's real type (c10::Argument::real_type), in which ScalarType is not an int.
ArgKind kind_of(const c10::Type& type);

/// A value without tensors in it. Nothing if it cannot be expressed (symbolic, a generator, an unknown dtype ...).
std::optional<graph::Arg> to_arg(const c10::IValue& value, ArgKind kind);
graph::Arg to_arg(const c10::Scalar& value);

/// The boxed value; ValueIds are looked up in `tensors`. A scalar where a tensor belongs becomes a wrapped number.
c10::IValue to_ivalue(const graph::Arg& arg, ArgKind kind, std::span<const at::Tensor> tensors);
c10::Scalar to_scalar(const graph::Arg& arg);
at::Tensor wrapped_number(const c10::Scalar& value);

}  // namespace braze::aten
