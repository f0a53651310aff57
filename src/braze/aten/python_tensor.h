// Python's tensor objects: what class they have, and the way to and from at::Tensor. Free of ATen.
#pragma once

#include "braze/py/ref.h"

namespace at {
class Tensor;
}

namespace braze::aten {

using py::Borrowed;
using py::Owned;

bool is_tensor(Borrowed<> object) noexcept;  ///< torch.Tensor or a subclass

/// The classes that a fake can have. Anything else (a user's subclass, DTensor, FakeTensor ...) is kOther.
enum class TensorClass : std::uint8_t { kTensor, kParameter, kBuffer, kOther };
TensorClass class_of(Borrowed<> tensor) noexcept;

const at::Tensor& unwrap(Borrowed<> tensor) noexcept;  ///< of an object for which is_tensor holds
Owned<> wrap(const at::Tensor& tensor);                ///< the tensor's one Python object; None if undefined
bool has_python_object(const at::Tensor& tensor) noexcept;

}  // namespace braze::aten
