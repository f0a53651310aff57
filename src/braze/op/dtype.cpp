// Text of element types, and PyTorch's promotion table.
#include "braze/op/dtype.h"

#include <array>

namespace braze::op {
namespace {

/// Order within one class of numbers; the classes themselves are ordered b, u/i, f, c.
constexpr int category(DType t) {
  switch (info(t).cls) {
    case 'b': return 0;
    case 'u':
    case 'i': return 1;
    case 'f': return 2;
    default: return 3;
  }
}

constexpr DType to_complex(DType t) { return t == DType::kFloat64 ? DType::kComplex128 : DType::kComplex64; }

constexpr DType promote_integers(DType a, DType b) {
  if (a == DType::kUInt8 && b == DType::kInt8) return DType::kInt16;
  if (a == DType::kInt8 && b == DType::kUInt8) return DType::kInt16;
  if (bytes(a) != bytes(b)) return bytes(a) > bytes(b) ? a : b;
  return a;
}

constexpr DType promote_equal(DType a, DType b) {
  if (category(a) == 1) return promote_integers(a, b);
  if (is_half(a) && is_half(b)) return DType::kFloat32;  // float16 with bfloat16
  return bytes(a) > bytes(b) ? a : b;
}

constexpr DType promote_pair(DType a, DType b) {
  if (a == b) return a;
  if (category(a) < category(b)) return promote_pair(b, a);
  if (category(a) == category(b)) return promote_equal(a, b);
  // Half types become complex64 here; PyTorch's complex32 has no row and its tensors are left to eager.
  if (is_complex(a) && is_floating(b)) return promote_equal(a, to_complex(b));
  return a;
}

constexpr std::size_t kCount = std::size(kDTypes);
constexpr auto kPromoted = [] {
  std::array<std::array<DType, kCount>, kCount> table{};
  for (std::size_t a = 0; a < kCount; ++a)
    for (std::size_t b = 0; b < kCount; ++b) table[a][b] = promote_pair(static_cast<DType>(a), static_cast<DType>(b));
  return table;
}();
static_assert(kPromoted[1][2] == DType::kInt16 && kPromoted[6][7] == DType::kFloat32);

}  // namespace

std::optional<DType> parse_dtype(std::string_view text) {
  for (std::size_t i = 0; i < kCount; ++i)
    if (kDTypes[i].text == text) return static_cast<DType>(i);
  return std::nullopt;
}

DType promote(DType a, DType b) { return kPromoted[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]; }

}  // namespace braze::op
