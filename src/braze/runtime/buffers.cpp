#include "braze/runtime/buffers.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/TensorImpl.h>

#include "braze/support/check.h"

namespace braze::runtime {

namespace {

constexpr std::size_t kKeptArena = 64u << 20;  // more is given back to the allocator between runs

bool strides_agree(const at::Tensor& t, const Layout& layout) {
  const auto strides = t.strides();
  for (std::size_t d = 0; d < strides.size(); d++)
    if (strides[d] != layout.strides[d] && layout.sizes[d] > 1) return false;
  return true;
}

}  // namespace

bool has_layout(const at::Tensor& t, const Layout& layout) {
  return t.scalar_type() == layout.dtype && t.sizes() == at::IntArrayRef(layout.sizes) &&
         (t.strides() == at::IntArrayRef(layout.strides) || t.numel() == 0 || strides_agree(t, layout));
}

at::Tensor empty(const Layout& layout) {
  return at::Tensor(at::detail::empty_strided_cpu(layout.sizes, layout.strides, layout.dtype));
}

at::Tensor in_layout(const at::Tensor& t, const Layout& layout) {
  if (has_layout(t, layout)) return t;
  BRAZE_CHECK(t.scalar_type() == layout.dtype && t.sizes() == at::IntArrayRef(layout.sizes),
              "a tensor has {} dimensions, {} elements and type {} where the plan has {} dimensions and type {}",
              t.dim(), t.numel(), c10::toString(t.scalar_type()), layout.sizes.size(), c10::toString(layout.dtype));
  at::Tensor fitting = empty(layout);
  fitting.copy_(t);
  return fitting;
}

Buffers::Buffers(std::span<const Layout> layouts, std::span<const std::uint32_t> used, std::size_t arena_bytes)
    : layouts_(layouts), used_(used), arena_bytes_(arena_bytes), data_(layouts.size()), tensors_(layouts.size()) {}

void Buffers::begin() {
  if (arena_bytes_ == 0 || arena_.defined()) return;
  arena_ = at::Tensor(at::detail::empty_cpu({static_cast<std::int64_t>(arena_bytes_)}, at::kByte));
  auto* start = static_cast<char*>(arena_.data_ptr());
  for (const std::uint32_t b : used_)
    if (layouts_[b].arena_offset >= 0) data_[b] = start + layouts_[b].arena_offset;
}

void Buffers::end() {
  const bool keep = arena_bytes_ <= kKeptArena;
  for (const std::uint32_t b : used_) {
    if (keep && layouts_[layouts_[b].root].arena_offset >= 0) continue;  // tensors in the arena stay right
    tensors_[b].reset();
    data_[b] = nullptr;
  }
  if (!keep) arena_.reset();
}

void Buffers::bind(std::uint32_t b, at::Tensor t) {
  data_[b] = t.defined() ? const_cast<void*>(t.const_data_ptr()) : nullptr;
  tensors_[b] = std::move(t);
}

at::Tensor Buffers::view(std::uint32_t b, const at::Tensor& of, std::int64_t bytes_from_storage) const {
  const Layout& layout = layouts_[b];
  const auto item = static_cast<std::int64_t>(c10::elementSize(layout.dtype));
  BRAZE_CHECK(bytes_from_storage % item == 0,
              "buffer {} starts {} bytes into its storage: not a multiple of its elements", b, bytes_from_storage);
  at::Tensor v = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(of.storage()),
                                                          of.key_set(), c10::scalarTypeToTypeMeta(layout.dtype));
  v.unsafeGetTensorImpl()->set_sizes_and_strides(layout.sizes, layout.strides, bytes_from_storage / item);
  return v;
}

const at::Tensor& Buffers::tensor(std::uint32_t b) {
  if (tensors_[b].defined()) return tensors_[b];
  const Layout& layout = layouts_[b];
  const Layout& root = layouts_[layout.root];
  if (root.arena_offset >= 0) {
    tensors_[b] = view(b, arena_, root.arena_offset + layout.byte_offset);
  } else if (layout.root != b && tensors_[layout.root].defined()) {
    const at::Tensor& base = tensors_[layout.root];
    tensors_[b] =
        view(b, base, base.storage_offset() * static_cast<std::int64_t>(base.itemsize()) + layout.byte_offset);
  }
  return tensors_[b];  // undefined: an input that was
}

bool Buffers::in_arena(const at::Tensor& t) const {
  return arena_.defined() && t.defined() &&
         t.storage().unsafeGetStorageImpl() == arena_.storage().unsafeGetStorageImpl();
}

}  // namespace braze::runtime
