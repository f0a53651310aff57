// The memory of one run of a plan: arena, tensors, data pointers. Reused from run to run.
#pragma once

#include <ATen/core/TensorBody.h>

#include <cstdint>
#include <span>
#include <vector>

namespace braze::runtime {

/// A plan's buffer with everything constant.
struct Layout {
  std::vector<std::int64_t> sizes, strides;
  at::ScalarType dtype = at::kFloat;
  std::uint32_t root = 0;          ///< the buffer that owns the memory; itself if it is no view
  std::int64_t byte_offset = 0;    ///< from the root's first element
  std::int64_t arena_offset = -1;  ///< of a root in the arena
};

/// Sizes and element type agree, and strides wherever they matter (a size above 1).
bool has_layout(const at::Tensor& t, const Layout& layout);
/// The same values in that layout: `t` itself if it fits, else a copy. InternalError if sizes or type differ.
at::Tensor in_layout(const at::Tensor& t, const Layout& layout);
at::Tensor empty(const Layout& layout);

class Buffers {
 public:
  /// `used`: the buffers that a run touches.
  Buffers(std::span<const Layout> layouts, std::span<const std::uint32_t> used, std::size_t arena_bytes);

  void begin();  ///< the arena gets memory
  void end();    ///< tensors are dropped, a large arena too
  void bind(std::uint32_t b, at::Tensor t);
  void allocate(std::uint32_t b) { bind(b, empty(layouts_[b])); }
  void free(std::uint32_t b) { tensors_[b].reset(); }

  void* data(std::uint32_t root) const { return data_[root]; }
  /// A tensor object for any buffer with memory; made when first asked for.
  const at::Tensor& tensor(std::uint32_t b);
  std::span<const at::Tensor> tensors() const { return tensors_; }
  const Layout& layout(std::uint32_t b) const { return layouts_[b]; }
  bool in_arena(const at::Tensor& t) const;
  std::size_t bytes_held() const { return arena_.defined() ? arena_bytes_ : 0; }

 private:
  at::Tensor view(std::uint32_t b, const at::Tensor& of, std::int64_t bytes_from_storage) const;

  std::span<const Layout> layouts_;
  std::span<const std::uint32_t> used_;
  std::size_t arena_bytes_;
  at::Tensor arena_;  ///< of bytes
  std::vector<void*> data_;
  std::vector<at::Tensor> tensors_;
};

}  // namespace braze::runtime
