// Element types. Names are PyTorch's; short text forms as in the IR texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace braze::op {

//            id        text    bytes  class (b bool, i signed, u unsigned, f float, c complex)
#define BRAZE_DTYPES(X)        \
  X(kBool, "b8", 1, 'b')       \
  X(kUInt8, "u8", 1, 'u')      \
  X(kInt8, "i8", 1, 'i')       \
  X(kInt16, "i16", 2, 'i')     \
  X(kInt32, "i32", 4, 'i')     \
  X(kInt64, "i64", 8, 'i')     \
  X(kFloat16, "f16", 2, 'f')   \
  X(kBFloat16, "bf16", 2, 'f') \
  X(kFloat32, "f32", 4, 'f')   \
  X(kFloat64, "f64", 8, 'f')   \
  X(kComplex64, "c64", 8, 'c') \
  X(kComplex128, "c128", 16, 'c')

enum class DType : std::uint8_t {
#define X(id, text, bytes, cls) id,
  BRAZE_DTYPES(X)
#undef X
};

struct DTypeInfo {
  std::string_view text;
  int bytes;
  char cls;
};
inline constexpr DTypeInfo kDTypes[] = {
#define X(id, text, bytes, cls) {text, bytes, cls},
    BRAZE_DTYPES(X)
#undef X
};

constexpr const DTypeInfo& info(DType t) { return kDTypes[static_cast<int>(t)]; }
constexpr std::string_view to_text(DType t) { return info(t).text; }
constexpr int bytes(DType t) { return info(t).bytes; }
constexpr bool is_floating(DType t) { return info(t).cls == 'f'; }
constexpr bool is_complex(DType t) { return info(t).cls == 'c'; }
constexpr bool is_integral(DType t) { return info(t).cls == 'i' || info(t).cls == 'u'; }  ///< bool is not
constexpr bool is_half(DType t) { return t == DType::kFloat16 || t == DType::kBFloat16; }
std::optional<DType> parse_dtype(std::string_view text);

/// The type in which arithmetic on t is done: float for the half types, else t.
constexpr DType compute_type(DType t) { return is_half(t) ? DType::kFloat32 : t; }

/// PyTorch's promotion of two tensor dtypes of equal category weight (torch.promote_types).
DType promote(DType a, DType b);

}  // namespace braze::op
