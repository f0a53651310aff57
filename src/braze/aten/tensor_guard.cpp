// The hot loop over live tensors reads THPVariable and TensorImpl directly: a call per field would cost more than the
// comparison.
#include "braze/aten/tensor_guard.h"

#include <c10/core/Allocator.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <vector>

#include "braze/aten/storage_relations.h"
#include "braze/support/check.h"

namespace braze::aten {
namespace {

using c10::TensorImpl;
using torch::autograd::AutogradMeta;

struct Expected {
  PyTypeObject* type = nullptr;
  std::uint64_t keys = 0;
  std::uint64_t bytes = 0;  ///< of the storage, at least
  std::int64_t offset = 0;
  std::uint32_t shape = 0;  ///< index of the sizes, followed by the strides
  std::uint32_t dims = 0;
  std::uint32_t value = 0;
  caffe2::TypeMeta dtype;
  c10::Device device{c10::kCPU};
  bool requires_grad = false, is_leaf = true;
  int view = 0;
  TensorGuard::Notes notes;
};

bool is_tensor_class(PyTypeObject* type) noexcept { return THPVariable_CheckTypeExact(type); }

TensorImpl* impl_of(PyObject* tensor) noexcept { return THPVariable_Unpack(tensor).unsafeGetTensorImpl(); }

/// Backend bits, and the functionality of plain dense tensors.
std::uint64_t plain_keys() {
  using c10::DispatchKey;
  const auto keys =
      c10::DispatchKeySet({DispatchKey::Dense, DispatchKey::ADInplaceOrView, DispatchKey::AutogradOther,
                           DispatchKey::AutogradFunctionality, DispatchKey::Conjugate, DispatchKey::Negative}) |
      c10::autocast_dispatch_keyset;
  return keys.raw_repr() | c10::full_backend_mask;
}

bool is_plain_impl(const TensorImpl* impl) {
  static const std::uint64_t plain = plain_keys();
  return impl != nullptr && (impl->key_set().raw_repr() & ~plain) == 0 && impl->has_storage() &&
         impl->layout() == c10::kStrided && !impl->has_symbolic_sizes_strides();
}

struct AutogradFacts {
  bool requires_grad = false, is_leaf = true;
};

AutogradFacts autograd_facts(const TensorImpl* impl) noexcept {
  const auto* meta = static_cast<const AutogradMeta*>(impl->autograd_meta());
  if (meta == nullptr) return {};
  const bool has_function = static_cast<bool>(meta->grad_fn_);
  return {has_function || meta->requires_grad_, !has_function};
}

/// 0: no differentiable view, 1: a view, 2: a view of a base that requires a gradient.
int view_kind(PyObject* tensor) noexcept {
  const at::Tensor& t = THPVariable_Unpack(tensor);
  if (!t.is_view()) return 0;
  return t._base().requires_grad() ? 2 : 1;
}

const c10::StorageImpl* storage_of(const TensorImpl* impl) noexcept {
  return impl->unsafe_storage().unsafeGetStorageImpl();
}

/// Bytes from the storage's start to the end of the last element.
std::uint64_t bytes_needed(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::int64_t offset, std::size_t item) {
  std::int64_t last = offset;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    last += (sizes[i] - 1) * strides[i];
  }
  return static_cast<std::uint64_t>(last + 1) * item;
}

std::string shape_text(const std::int64_t* values, std::size_t count) {
  std::string text = "[";
  for (std::size_t i = 0; i < count; ++i) text += support::format("{}{}", i == 0 ? "" : ", ", values[i]);
  return text + "]";
}

std::string shape_text(c10::IntArrayRef values) { return shape_text(values.data(), values.size()); }

std::string dtype_text(caffe2::TypeMeta dtype) { return std::string(dtype.name()); }

}  // namespace

bool is_plain_tensor(py::Borrowed<> object) noexcept {
  return object && is_tensor_class(Py_TYPE(object.get())) && is_plain_impl(impl_of(object.get()));
}

PyObject* grad_of(PyObject* object) noexcept {
  if (!is_tensor_class(Py_TYPE(object)) &&
      PyType_IsSubtype(Py_TYPE(object), reinterpret_cast<PyTypeObject*>(THPVariableClass)) == 0) {
    return nullptr;
  }
  const auto* meta = static_cast<const AutogradMeta*>(impl_of(object)->autograd_meta());
  if (meta == nullptr || !meta->grad_.defined()) return Py_None;
  PyObject* grad = THPVariable_Wrap(meta->grad_);  // the C++ tensor keeps its wrapper alive
  if (grad == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  Py_DECREF(grad);
  return grad;
}

struct TensorGuard::State {
  std::vector<Expected> tensors;
  std::vector<std::int64_t> shapes;
  std::vector<const void*> storages, impls;
  std::vector<Memory> memory;          ///< as of the last check that got as far
  std::vector<std::uint32_t> changed;  ///< tensors whose memory is another one; never grows beyond its capacity
  bool has_foreign = false;
  std::vector<StorageRelations::Example> examples;
  StorageRelations relations;

  bool is_like(const Expected& e, PyObject* object, const TensorImpl*& impl,
               const c10::StorageImpl*& storage) const noexcept;
  bool has_shape(const Expected& e, const TensorImpl* impl) const noexcept;
  void note_memory(std::uint32_t i, const c10::StorageImpl* storage) noexcept;
  bool memory_is_apart() noexcept;
  void forget() noexcept;
  std::string difference(const Expected& e, PyObject* object) const;
};

TensorGuard::TensorGuard() : state_(std::make_unique<State>()) {}
TensorGuard::~TensorGuard() = default;
TensorGuard::TensorGuard(TensorGuard&&) noexcept = default;
TensorGuard& TensorGuard::operator=(TensorGuard&&) noexcept = default;

std::size_t TensorGuard::size() const { return state_->tensors.size(); }

std::size_t TensorGuard::add(py::Borrowed<> example, std::uint32_t value_index, Notes notes) {
  BRAZE_CHECK(is_plain_tensor(example), "a {} cannot be guarded as a tensor; check is_plain_tensor first",
              Py_TYPE(example.get())->tp_name);
  const TensorImpl* impl = impl_of(example.get());
  const AutogradFacts facts = autograd_facts(impl);
  Expected e;
  e.type = Py_TYPE(example.get());
  e.keys = impl->key_set().raw_repr();
  e.offset = impl->storage_offset();
  e.bytes = bytes_needed(impl->sizes(), impl->strides(), e.offset, impl->dtype().itemsize());
  e.shape = static_cast<std::uint32_t>(state_->shapes.size());
  e.dims = static_cast<std::uint32_t>(impl->dim());
  e.value = value_index;
  e.dtype = impl->dtype();
  e.device = impl->device();
  e.requires_grad = facts.requires_grad;
  e.is_leaf = facts.is_leaf;
  e.view = notes.is_view ? view_kind(example.get()) : 0;
  e.notes = notes;
  for (const auto values : {impl->sizes(), impl->strides()}) {
    state_->shapes.insert(state_->shapes.end(), values.begin(), values.end());
  }
  state_->examples.push_back({storage_of(impl), impl, notes.is_argument});
  state_->tensors.push_back(e);
  return state_->tensors.size() - 1;
}

void TensorGuard::seal() {
  state_->relations.learn(state_->examples);
  for (std::size_t i = 0; i < size(); ++i) {
    if (state_->relations.is_shared(i)) state_->tensors[i].notes.has_storage_offset = true;
  }
  state_->examples = {};
  state_->storages.assign(size(), nullptr);
  state_->impls.assign(size(), nullptr);
  state_->memory.assign(size(), {});
  state_->changed.reserve(size());
}

bool TensorGuard::State::has_shape(const Expected& e, const TensorImpl* impl) const noexcept {
  const c10::IntArrayRef sizes = impl->sizes();
  if (sizes.size() != e.dims) return false;
  const std::int64_t* expected = shapes.data() + e.shape;
  const std::int64_t* strides = impl->strides().data();
  for (std::size_t i = 0; i < e.dims; ++i) {
    if (sizes[i] != expected[i] || strides[i] != expected[e.dims + i]) return false;
  }
  return true;
}

bool TensorGuard::State::is_like(const Expected& e, PyObject* object, const TensorImpl*& impl,
                                 const c10::StorageImpl*& storage) const noexcept {
  if (object == nullptr || Py_TYPE(object) != e.type) return false;
  impl = impl_of(object);
  if (impl == nullptr || impl->key_set().raw_repr() != e.keys || impl->dtype() != e.dtype || !has_shape(e, impl)) {
    return false;
  }
  if (impl->device() != e.device) return false;
  const AutogradFacts facts = autograd_facts(impl);
  if (facts.requires_grad != e.requires_grad || facts.is_leaf != e.is_leaf) return false;
  if (e.notes.is_view && view_kind(object) != e.view) return false;
  const std::int64_t offset = impl->storage_offset();
  if (e.notes.has_storage_offset && offset != e.offset) return false;
  storage = storage_of(impl);
  if (storage == nullptr) return false;
  const std::uint64_t needed =
      e.bytes == 0 ? 0 : e.bytes + static_cast<std::uint64_t>(offset - e.offset) * e.dtype.itemsize();
  return storage->nbytes() >= needed;
}

void TensorGuard::State::note_memory(std::uint32_t i, const c10::StorageImpl* storage) noexcept {
  static const c10::DeleterFnPtr own = c10::GetAllocator(c10::kCPU)->raw_deleter();
  const c10::DataPtr& data = storage->data_ptr();
  const auto begin = reinterpret_cast<std::uintptr_t>(data.get());
  const bool is_foreign = data.get_deleter() != own && storage->device_type() == c10::kCPU && storage->nbytes() != 0;
  const Memory now{storage, begin, begin + storage->nbytes(), is_foreign};
  if (memory[i] == now) return;
  memory[i] = now;
  changed.push_back(i);
  has_foreign |= is_foreign;
}

bool TensorGuard::State::memory_is_apart() noexcept {
  if (has_foreign && !are_apart(memory, changed)) return false;
  changed.clear();
  return true;
}

/// The check stopped half-way: compare all memory and all relations again next time.
void TensorGuard::State::forget() noexcept {
  std::fill(storages.begin(), storages.end(), nullptr);
  std::fill(memory.begin(), memory.end(), Memory{});
  changed.clear();
  has_foreign = false;
}

bool TensorGuard::check(PyObject* const* values) noexcept {
  State& s = *state_;
  bool stable_changed = false;
  const auto count = static_cast<std::uint32_t>(s.tensors.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const Expected& e = s.tensors[i];
    const TensorImpl* impl = nullptr;
    const c10::StorageImpl* storage = nullptr;
    if (!s.is_like(e, values[e.value], impl, storage)) {
      if (!s.changed.empty()) s.forget();
      return false;
    }
    if (s.storages[i] != storage) {
      s.storages[i] = storage;
      stable_changed |= !e.notes.is_argument;
    }
    s.impls[i] = impl;
    s.note_memory(i, storage);
  }
  const bool all_hold = s.memory_is_apart() && s.relations.holds(s.storages.data(), s.impls.data(), stable_changed);
  if (!all_hold) s.forget();
  return all_hold;
}

std::string TensorGuard::State::difference(const Expected& e, PyObject* object) const {
  using support::format;
  const TensorImpl* impl = nullptr;
  const c10::StorageImpl* storage = nullptr;
  if (is_like(e, object, impl, storage)) return "";
  if (object == nullptr) return "expected a tensor, is unbound";
  if (Py_TYPE(object) != e.type) return format("expected a {}, is a {}", e.type->tp_name, Py_TYPE(object)->tp_name);
  if (!is_plain_impl(impl)) return "expected a plain dense tensor, is another kind";
  if (impl->dtype() != e.dtype) {
    return format("expected dtype {}, has {}", dtype_text(e.dtype), dtype_text(impl->dtype()));
  }
  if (impl->device() != e.device) return format("expected device {}, is on {}", e.device.str(), impl->device().str());
  const std::int64_t* shape = shapes.data() + e.shape;
  if (!impl->sizes().equals({shape, e.dims})) {
    return format("expected sizes {}, has {}", shape_text(shape, e.dims), shape_text(impl->sizes()));
  }
  if (!impl->strides().equals({shape + e.dims, e.dims})) {
    return format("expected strides {}, has {}", shape_text(shape + e.dims, e.dims), shape_text(impl->strides()));
  }
  const AutogradFacts facts = autograd_facts(impl);
  if (facts.requires_grad != e.requires_grad) {
    return format("expected requires_grad={}, has {}", e.requires_grad, facts.requires_grad);
  }
  if (facts.is_leaf != e.is_leaf) return format("expected is_leaf={}, has {}", e.is_leaf, facts.is_leaf);
  if (impl->key_set().raw_repr() != e.keys) return "expected other dispatch keys (inference, conjugate, negative)";
  if (e.notes.is_view && view_kind(object) != e.view)
    return "expected another kind of view (none, plain, of a base with gradient)";
  if (e.notes.has_storage_offset && impl->storage_offset() != e.offset) {
    return format("expected storage offset {}, has {}", e.offset, impl->storage_offset());
  }
  return "its storage was freed or is too small";
}

std::string TensorGuard::explain(PyObject* const* values, std::size_t& number) {
  for (number = 0; number < size(); ++number) {
    const Expected& e = state_->tensors[number];
    std::string text = state_->difference(e, values[e.value]);
    if (!text.empty()) return text;
  }
  return check(values) ? "" : "other tensors share memory than when it was captured";
}

std::string TensorGuard::text(std::size_t number) const {
  const Expected& e = state_->tensors[number];
  const std::int64_t* shape = state_->shapes.data() + e.shape;
  return support::format("{} {}{} strides {} on {}{}{}", e.type->tp_name, dtype_text(e.dtype),
                         shape_text(shape, e.dims), shape_text(shape + e.dims, e.dims), e.device.str(),
                         e.requires_grad ? " requires_grad" : "", e.is_leaf ? "" : " non-leaf");
}

}  // namespace braze::aten
