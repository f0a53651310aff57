// A tensor without memory: the real device, element type and geometry, and a storage that throws when its data is
// asked for. One per value of the graph under construction.
#pragma once

#include <ATen/core/TensorBody.h>
#include <c10/core/Storage.h>

#include "braze/graph/graph.h"

namespace braze::trace {

class FakeTensorImpl final : public c10::TensorImpl {
 public:
  FakeTensorImpl(c10::Storage storage, c10::DispatchKeySet keys, caffe2::TypeMeta dtype, graph::ValueId value)
      : TensorImpl(std::move(storage), keys, dtype), value_(value) {}

  graph::ValueId value() const { return value_; }
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& version,
                                                         bool allow_metadata_change) const override;
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version,
                                                         bool allow_metadata_change) const override;

 private:
  template <class Version>
  c10::intrusive_ptr<TensorImpl> copy(Version&& version, bool allow_metadata_change) const;

  graph::ValueId value_;
};

/// Sizes, strides, element type, device and place in a storage.
struct Geometry {
  std::vector<std::int64_t> sizes, strides;
  std::int64_t offset = 0;
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
};

/// A storage of that many bytes that has none: every access to its data throws.
c10::Storage empty_storage(std::size_t bytes, at::Device device);
void forbid_data_access(const c10::Storage& storage);

at::Tensor make_fake(const Geometry& g, c10::Storage storage, graph::ValueId value);
at::Tensor make_fake(const Geometry& g, graph::ValueId value);  ///< with a storage of its own
std::size_t bytes_spanned(const Geometry& g);

/// The value that a fake (without PyTorch's functionalization around it) stands for; null for any other tensor.
const FakeTensorImpl* as_fake(const at::Tensor& t) noexcept;

/// A meta tensor of the same geometry, for PyTorch's meta kernels.
at::Tensor meta_twin(const at::Tensor& t);

}  // namespace braze::trace
