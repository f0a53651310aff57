// What is known of a tensor at compile time. Text: `f32[s0, 1024]`, strides only if not contiguous: `f32[4, 8]{1, 4}`,
// device only if not cpu: `f32[4] cuda:0`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braze/op/dtype.h"
#include "braze/sym/sym_expr.h"

namespace braze::op {

using sym::SymExpr;

struct Device {
  enum class Kind : std::uint8_t { kCpu, kCuda, kMeta };
  Kind kind = Kind::kCpu;
  int index = -1;  ///< -1: the current one
  bool operator==(const Device&) const = default;
};

struct TensorType {
  DType dtype = DType::kFloat32;
  std::vector<SymExpr> sizes;
  std::vector<SymExpr> strides;  ///< in elements, one per size
  Device device;
  bool operator==(const TensorType&) const = default;

  std::size_t dim() const { return sizes.size(); }
  SymExpr numel() const { return sym::product(sizes); }
};

/// Row-major strides as PyTorch computes them (a size of 0 counts as 1).
std::vector<SymExpr> contiguous_strides(const std::vector<SymExpr>& sizes);
/// True if the strides are row-major, dimensions of size 1 aside (PyTorch's is_contiguous).
bool is_contiguous(const TensorType& t);
TensorType contiguous(DType dtype, std::vector<SymExpr> sizes, Device device = {});

std::string to_text(const TensorType& t);
std::string to_text(Device d);
TensorType parse_type(std::string_view text);  ///< ParseError
TensorType parse_type(support::Scanner& in);   ///< as much as is a type
Device parse_device(support::Scanner& in);

}  // namespace braze::op
