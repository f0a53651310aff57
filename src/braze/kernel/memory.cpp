// Half types by hand: no compiler is asked to know them.
#include "braze/kernel/memory.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "braze/support/check.h"

namespace braze::kernel {
namespace {

using loop::Number;
using op::DType;

double from_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double x = std::ldexp(mantissa, -24);
  if (exponent == 31) x = mantissa ? std::nan("") : INFINITY;
  else if (exponent > 0) x = std::ldexp(1024 + mantissa, exponent - 25);
  return bits & 0x8000 ? -x : x;
}

std::uint16_t to_half(double x) {
  const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return 0x7e00;
  if (std::isinf(x)) return sign | 0x7c00;
  int exponent = 0;
  const double part = std::frexp(std::fabs(x), &exponent);  // 0.5 to 1
  if (exponent < -13) return static_cast<std::uint16_t>(sign + std::lrint(std::ldexp(std::fabs(x), 24)));
  const auto mantissa = static_cast<int>(std::lrint(std::ldexp(part, 11)));  // 1024 to 2047
  return static_cast<std::uint16_t>(sign + ((exponent + 13) << 10) + mantissa);
}

template <class T>
T get(const void* memory, std::int64_t at) {
  T x;
  std::memcpy(&x, static_cast<const char*>(memory) + at * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return x;
}
template <class T, class X>
void put(void* memory, std::int64_t at, X value) {
  const auto x = static_cast<T>(value);
  std::memcpy(static_cast<char*>(memory) + at * static_cast<std::int64_t>(sizeof(T)), &x, sizeof(T));
}

}  // namespace

Number read_number(const void* memory, DType type, std::int64_t at) {
  switch (type) {
    case DType::kFloat32: return {get<float>(memory, at), 0};
    case DType::kFloat64: return {get<double>(memory, at), 0};
    case DType::kFloat16: return {from_half(get<std::uint16_t>(memory, at)), 0};
    case DType::kBFloat16:
      return {std::bit_cast<float>(static_cast<std::uint32_t>(get<std::uint16_t>(memory, at)) << 16), 0};
    case DType::kInt64: return {0, get<std::int64_t>(memory, at)};
    case DType::kInt32: return {0, get<std::int32_t>(memory, at)};
    case DType::kInt16: return {0, get<std::int16_t>(memory, at)};
    case DType::kInt8: return {0, get<std::int8_t>(memory, at)};
    case DType::kUInt8: return {0, get<std::uint8_t>(memory, at)};
    case DType::kBool: return {0, get<std::uint8_t>(memory, at) != 0};
    default: break;
  }
  BRAZE_CHECK(false, "kernels do not know {}", op::to_text(type));
  return {};
}

void write_number(void* memory, DType type, std::int64_t at, Number x) {
  switch (type) {
    case DType::kFloat32: return put<float>(memory, at, x.number);
    case DType::kFloat64: return put<double>(memory, at, x.number);
    case DType::kFloat16: return put<std::uint16_t>(memory, at, to_half(x.number));
    case DType::kBFloat16:
      return put<std::uint16_t>(memory, at, std::bit_cast<std::uint32_t>(static_cast<float>(x.number)) >> 16);
    case DType::kInt64: return put<std::int64_t>(memory, at, x.integer);
    case DType::kInt32: return put<std::int32_t>(memory, at, x.integer);
    case DType::kInt16: return put<std::int16_t>(memory, at, x.integer);
    case DType::kInt8:
    case DType::kUInt8: return put<std::uint8_t>(memory, at, x.integer);
    case DType::kBool: return put<std::uint8_t>(memory, at, x.integer != 0);
    default: break;
  }
  BRAZE_CHECK(false, "kernels do not know {}", op::to_text(type));
}

}  // namespace braze::kernel
