// The only file that sees THPVariable.
#include "braze/aten/python_tensor.h"

#include <torch/csrc/autograd/python_variable.h>

#include "braze/py/py_error.h"

namespace braze::aten {

namespace {

/// torch.nn.Buffer shares torch.Tensor's type object through a metaclass: instances are plain tensors with a mark.
bool is_type(Borrowed<> object, PyObject* type) { return reinterpret_cast<PyObject*>(Py_TYPE(object.get())) == type; }

}  // namespace

bool is_tensor(Borrowed<> object) noexcept { return object && THPVariable_Check(object.get()); }

TensorClass class_of(Borrowed<> tensor) noexcept {
  if (is_type(tensor, THPVariableClass)) {
    PyObject** dict = _PyObject_GetDictPtr(tensor.get());
    const bool marked = dict && *dict && PyDict_GetItemString(*dict, "_is_buffer");
    return marked ? TensorClass::kBuffer : TensorClass::kTensor;
  }
  return is_type(tensor, ParameterClass) ? TensorClass::kParameter : TensorClass::kOther;
}

const at::Tensor& unwrap(Borrowed<> tensor) noexcept { return THPVariable_Unpack(tensor.get()); }

Owned<> wrap(const at::Tensor& tensor) { return Owned<>::steal(py::check(THPVariable_Wrap(tensor))); }

bool has_python_object(const at::Tensor& tensor) noexcept {
  return tensor.defined() && tensor.unsafeGetTensorImpl()->pyobj_slot()->load_pyobj() != nullptr;
}

}  // namespace braze::aten
