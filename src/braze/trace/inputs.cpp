// Fakes of inputs: geometry, Python class and autograd look of the real tensor.
#include "braze/trace/inputs.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/function.h>

#include "braze/aten/python_tensor.h"
#include "braze/aten/types.h"
#include "braze/py/py_error.h"
#include "braze/support/text.h"
#include "braze/trace/call.h"
#include "braze/trace/fake_tensor.h"
#include "braze/trace/input_node.h"

namespace braze::trace {

namespace {

constexpr c10::DispatchKeySet kForeignKeys({c10::DispatchKey::Python, c10::DispatchKey::FuncTorchBatched,
                                            c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::Functionalize,
                                            c10::DispatchKey::Conjugate, c10::DispatchKey::Negative,
                                            c10::DispatchKey::ZeroTensor});

/// The fake's storage is as large as the real one's, so that as_strided within bounds stays so.
at::Tensor make_wrapper(const at::Tensor& real, graph::ValueId value) {
  const c10::InferenceMode mode(real.is_inference());
  const Geometry g = geometry_of(real);
  c10::Storage storage = empty_storage(real.storage().nbytes(), g.device);
  const at::Tensor wrapper = at::functionalization::impl::to_functional_tensor(make_fake(g, std::move(storage), value));
  // functionalization itself asks this storage for its device, so only writing access can be forbidden: its data is
  // null
  wrapper.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()->set_throw_on_mutable_data_ptr();
  return wrapper;
}

void set_class(Borrowed<> fake, Borrowed<> real, aten::TensorClass cls) {
  if (cls == aten::TensorClass::kParameter)
    py::check(PyObject_SetAttrString(fake.get(), "__class__", reinterpret_cast<PyObject*>(Py_TYPE(real.get()))));
  if (cls != aten::TensorClass::kBuffer) return;
  for (const char* name : {"_is_buffer", "persistent"}) {
    const auto mark = Owned<>::steal(py::check(PyObject_GetAttrString(real.get(), name)));
    py::check(PyObject_SetAttrString(fake.get(), name, mark.get()));
  }
}

void set_autograd(Input& input) {
  if (!input.real_tensor.requires_grad()) return;
  if (input.real_tensor.is_leaf()) input.wrapper.set_requires_grad(true);
  else torch::autograd::impl::set_gradient_edge(input.wrapper, {make_input_node(input.wrapper), 0});
  input.edge = torch::autograd::impl::gradient_edge(input.wrapper);
}

struct Range {
  std::uintptr_t begin = 0, end = 0;
};

Range memory_of(const at::Tensor& t) {
  const auto begin = reinterpret_cast<std::uintptr_t>(t.const_data_ptr());
  Geometry g = geometry_of(t);
  g.offset = 0;
  return {begin, begin + bytes_spanned(g)};
}

bool overlap(const at::Tensor& a, const at::Tensor& b) {
  const Range x = memory_of(a), y = memory_of(b);
  return x.begin < y.end && y.begin < x.end;
}

/// PyTorch 2.13 has no named tensors any more.
template <class Tensor>
bool is_named(const Tensor& t) {
  if constexpr (requires { t.has_names(); }) return t.has_names();
  else return false;
}

/// Strides of dimensions of one element say nothing.
bool have_same_strides(const at::Tensor& a, const at::Tensor& b) {
  for (std::int64_t d = 0; d < a.dim(); ++d)
    if (a.size(d) > 1 && a.stride(d) != b.stride(d)) return false;
  return true;
}

bool repeats_itself(const at::Tensor& t) {
  for (std::int64_t d = 0; d < t.dim(); ++d)
    if (t.stride(d) == 0 && t.size(d) > 1) return true;
  return false;
}

}  // namespace

std::optional<std::string> Inputs::refusal(Borrowed<> object) {
  if (aten::class_of(object) == aten::TensorClass::kOther)
    return support::format("a tensor of class {}", Py_TYPE(object.get())->tp_name);
  const at::Tensor& t = aten::unwrap(object);
  if (t.layout() != at::kStrided) return support::format("a {} tensor", c10::str(t.layout()));
  if (t.is_quantized()) return "a quantized tensor";
  if (t.is_nested()) return "a nested tensor";
  if (!t.key_set().has_any(c10::DispatchKeySet({c10::BackendComponent::CPUBit, c10::BackendComponent::CUDABit})))
    return support::format("a tensor on device {}", t.device().str());
  if (is_named(t) || t.key_set().has_any(kForeignKeys))
    return "a tensor of a foreign transform, or conjugated, negated or named";
  if (!aten::to_dtype(t.scalar_type())) return support::format("element type {}", c10::toString(t.scalar_type()));
  if (t.numel() > 0 && !t.storage()) return "a tensor without memory";
  return std::nullopt;
}

Input& Inputs::add(Recorder& r, Borrowed<> real) {
  Input input;
  input.primal = static_cast<std::uint32_t>(r.inputs.size());
  input.real = Owned<>::share(real);
  input.real_tensor = aten::unwrap(real);
  input.value = graph::add_input(r.graph, support::format("p{}", input.primal), aten::type_of(input.real_tensor));
  input.wrapper = make_wrapper(input.real_tensor, input.value);
  set_autograd(input);
  input.fake = aten::wrap(input.wrapper);
  set_class(input.fake.borrow(), real, aten::class_of(real));
  input.storage = input.wrapper.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  input.inner_storage = at::functionalization::impl::from_functional_tensor(input.wrapper)
                            .unsafeGetTensorImpl()
                            ->unsafe_storage()
                            .unsafeGetStorageImpl();
  r.inputs.push_back(input.real_tensor);
  r.is_constant.push_back(false);
  r.input_storages.insert(input.inner_storage);
  const std::size_t index = inputs_.size();
  by_real_[real.get()] = by_fake_[input.wrapper.unsafeGetTensorImpl()] = by_storage_[input.storage] = index;
  inputs_.push_back(std::move(input));
  return inputs_.back();
}

Input* Inputs::find_real(Borrowed<> real) {
  const auto it = by_real_.find(real.get());
  return it == by_real_.end() ? nullptr : &inputs_[it->second];
}

Input* Inputs::find_fake(const at::Tensor& fake) {
  const auto it = by_fake_.find(fake.unsafeGetTensorImpl());
  return it == by_fake_.end() ? nullptr : &inputs_[it->second];
}

Input* Inputs::find_storage(const void* wrapper_storage) {
  const auto it = by_storage_.find(wrapper_storage);
  return it == by_storage_.end() ? nullptr : &inputs_[it->second];
}

std::optional<std::string> Inputs::check_written(const Input& input) const {
  if (repeats_itself(input.real_tensor)) return "an expanded input is written";
  if (input.real_tensor.is_view() && input.real_tensor._base().requires_grad())
    return "a view of a tensor that requires grad is written";
  for (const Input& other : inputs_)
    if (&other != &input && overlap(input.real_tensor, other.real_tensor))
      return "an input is written that shares memory with another one";
  return std::nullopt;
}

std::optional<std::string> Inputs::check_input(Input& input) const {
  auto* wrapper = at::functionalization::impl::unsafeGetFunctionalWrapper(input.wrapper);
  if (wrapper->has_metadata_mutation() || wrapper->was_storage_changed() ||
      wrapper->unsafe_storage().unsafeGetStorageImpl() != input.storage)
    return "sizes or storage of an input are changed";
  if (input.wrapper.requires_grad() != input.edge.is_valid()) return "requires_grad of an input is changed";
  if (wrapper->mutation_counter() == 0) return std::nullopt;
  if (!have_same_strides(input.wrapper, input.real_tensor)) return "an input is written and its strides are lost";
  input.written = true;
  if (input.edge.is_valid() && torch::autograd::impl::gradient_edge(input.wrapper) != input.edge)
    return "an input that requires grad is written under grad mode";
  return check_written(input);
}

std::optional<std::string> Inputs::check() {
  for (Input& input : inputs_)
    if (auto fault = check_input(input)) return fault;
  return std::nullopt;
}

}  // namespace braze::trace
