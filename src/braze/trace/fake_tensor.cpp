// Key sets and storages decide how the dispatcher and native code treat a fake.
#include "braze/trace/fake_tensor.h"

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>

namespace braze::trace {

namespace {

constexpr const char* kNoData = "a tensor under capture by braze has no data";

c10::DispatchKeySet keys_of(at::Device device) {
  const auto component = device.is_cuda() ? c10::BackendComponent::CUDABit : c10::BackendComponent::CPUBit;
  return c10::DispatchKeySet(device.is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU) |
         c10::getAutogradRelatedKeySetFromBackend(component) | c10::getAutocastRelatedKeySetFromBackend(component);
}

}  // namespace

template <class Version>
c10::intrusive_ptr<c10::TensorImpl> FakeTensorImpl::copy(Version&& version, bool allow_metadata_change) const {
  auto result = c10::make_intrusive<FakeTensorImpl>(c10::Storage(storage_), key_set_, data_type_, value_);
  copy_tensor_metadata(this, result.get(), std::forward<Version>(version), allow_metadata_change);
  return result;
}

c10::intrusive_ptr<c10::TensorImpl> FakeTensorImpl::shallow_copy_and_detach(const c10::VariableVersion& version,
                                                                            bool allow_metadata_change) const {
  return copy(version, allow_metadata_change);
}

c10::intrusive_ptr<c10::TensorImpl> FakeTensorImpl::shallow_copy_and_detach(c10::VariableVersion&& version,
                                                                            bool allow_metadata_change) const {
  return copy(std::move(version), allow_metadata_change);
}

c10::Storage empty_storage(std::size_t bytes, at::Device device) {
  c10::Storage storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                             static_cast<std::int64_t>(bytes),
                                                             c10::DataPtr(nullptr, device), nullptr, false));
  if (!device.is_meta()) forbid_data_access(storage);
  return storage;
}

void forbid_data_access(const c10::Storage& storage) {
  storage.unsafeGetStorageImpl()->release_data_and_set_meta_custom_data_ptr_error_msg_(kNoData);
}

std::size_t bytes_spanned(const Geometry& g) {
  std::int64_t last = g.offset;
  for (std::size_t i = 0; i < g.sizes.size(); ++i) {
    if (g.sizes[i] == 0) return 0;
    last += (g.sizes[i] - 1) * g.strides[i];
  }
  return static_cast<std::size_t>(last + 1) * c10::elementSize(g.dtype);
}

at::Tensor make_fake(const Geometry& g, c10::Storage storage, graph::ValueId value) {
  auto impl = c10::make_intrusive<FakeTensorImpl>(std::move(storage), keys_of(g.device),
                                                  c10::scalarTypeToTypeMeta(g.dtype), value);
  impl->set_sizes_and_strides(g.sizes, g.strides, g.offset);
  return at::Tensor(std::move(impl));
}

at::Tensor make_fake(const Geometry& g, graph::ValueId value) {
  return make_fake(g, empty_storage(bytes_spanned(g), g.device), value);
}

const FakeTensorImpl* as_fake(const at::Tensor& t) noexcept {
  return t.defined() ? dynamic_cast<const FakeTensorImpl*>(t.unsafeGetTensorImpl()) : nullptr;
}

at::Tensor meta_twin(const at::Tensor& t) {
  if (!t.defined() || t.is_meta()) return t;
  const auto& storage = t.unsafeGetTensorImpl()->unsafe_storage();
  auto impl = c10::make_intrusive<c10::TensorImpl>(empty_storage(storage.nbytes(), at::kMeta),
                                                   c10::DispatchKeySet(c10::DispatchKey::Meta), t.dtype());
  impl->set_sizes_and_strides(t.sizes(), t.strides(), t.storage_offset());
  if (t.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  return at::Tensor(std::move(impl));
}

}  // namespace braze::trace
