// One scalar operator on numbers: the reference meaning of every row of scalar_ops.def.
#include <cmath>
#include <limits>

#include "braze/loop/build.h"
#include "braze/loop/interpret.h"
#include "braze/support/check.h"

namespace braze::loop {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class T>
T python_mod(T a, T b) {
  T m = std::fmod(a, b);
  return m != 0 && (b < 0) != (m < 0) ? m + b : m;
}

/// PyTorch's div_floor_floating.
template <class T>
T floor_divide(T a, T b) {
  if (b == 0) return a / b;
  const T m = std::fmod(a, b);
  T d = (a - m) / b;
  if (m != 0 && (b < 0) != (m < 0)) d -= 1;
  if (d == 0) return std::copysign(T(0), a / b);
  const T floored = std::floor(d);
  return d - floored > T(0.5) ? floored + 1 : floored;
}

template <class T>
T digamma(T x) {
  if (x == 0) return std::copysign(std::numeric_limits<T>::infinity(), -x);
  double value = x, shift = 0;
  if (value < 0) {
    if (value == std::floor(value)) return static_cast<T>(kNan);
    constexpr double kPi = 3.14159265358979323846;
    shift = -kPi / std::tan(kPi * value);
    value = 1 - value;
  }
  for (; value < 10; value += 1) shift -= 1 / value;
  const double z = 1 / (value * value);
  const double tail = z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132)))));
  return static_cast<T>(shift + std::log(value) - 0.5 / value - tail);
}

double erfinv(double x) {
  if (!(std::fabs(x) < 1)) return std::fabs(x) == 1 ? std::copysign(INFINITY, x) : kNan;
  const double w = std::log((1 - x) * (1 + x)), c = 2 / (3.14159265358979323846 * 0.147) + w / 2;
  double y = std::copysign(std::sqrt(std::sqrt(c * c - w / 0.147) - c), x);
  for (int step = 0; step < 4; ++step)  // Newton on erf
    y -= (std::erf(y) - x) / (1.1283791670955126 * std::exp(-y * y));
  return y;
}

template <class T>
T unary(ScalarOp op, T x) {
  switch (op) {
    case ScalarOp::neg: return -x;
    case ScalarOp::abs: return std::fabs(x);
    case ScalarOp::sign: return static_cast<T>((x > 0) - (x < 0));
    case ScalarOp::floor: return std::floor(x);
    case ScalarOp::ceil: return std::ceil(x);
    case ScalarOp::round: return std::nearbyint(x);
    case ScalarOp::trunc: return std::trunc(x);
    case ScalarOp::relu: return x > 0 || std::isnan(x) ? x : T(0);
    case ScalarOp::exp: return std::exp(x);
    case ScalarOp::exp2: return std::exp2(x);
    case ScalarOp::expm1: return std::expm1(x);
    case ScalarOp::log: return std::log(x);
    case ScalarOp::log2: return std::log2(x);
    case ScalarOp::log10: return std::log10(x);
    case ScalarOp::log1p: return std::log1p(x);
    case ScalarOp::sqrt: return std::sqrt(x);
    case ScalarOp::rsqrt: return 1 / std::sqrt(x);
    case ScalarOp::reciprocal: return 1 / x;
    case ScalarOp::sin: return std::sin(x);
    case ScalarOp::cos: return std::cos(x);
    case ScalarOp::tan: return std::tan(x);
    case ScalarOp::asin: return std::asin(x);
    case ScalarOp::acos: return std::acos(x);
    case ScalarOp::atan: return std::atan(x);
    case ScalarOp::sinh: return std::sinh(x);
    case ScalarOp::cosh: return std::cosh(x);
    case ScalarOp::tanh: return std::tanh(x);
    case ScalarOp::asinh: return std::asinh(x);
    case ScalarOp::acosh: return std::acosh(x);
    case ScalarOp::atanh: return std::atanh(x);
    case ScalarOp::sigmoid: return 1 / (1 + std::exp(-x));
    case ScalarOp::erf: return std::erf(x);
    case ScalarOp::erfc: return std::erfc(x);
    case ScalarOp::erfinv: return static_cast<T>(erfinv(x));
    case ScalarOp::lgamma: return std::lgamma(x);
    case ScalarOp::digamma: return digamma(x);
    case ScalarOp::gelu: return T(0.5) * x * (1 + std::erf(x * T(0.70710678118654752440)));
    default: break;
  }
  BRAZE_CHECK(false, "{} of one floating operand", to_text(op));
  return x;
}

template <class T>
T binary(ScalarOp op, T a, T b) {
  const bool any_nan = std::isnan(a) || std::isnan(b);
  switch (op) {
    case ScalarOp::add: return a + b;
    case ScalarOp::sub: return a - b;
    case ScalarOp::mul: return a * b;
    case ScalarOp::div: return a / b;
    case ScalarOp::trunc_div: return std::trunc(a / b);
    case ScalarOp::floor_div: return floor_divide(a, b);
    case ScalarOp::mod: return python_mod(a, b);
    case ScalarOp::fmod: return std::fmod(a, b);
    case ScalarOp::maximum: return any_nan ? static_cast<T>(kNan) : a > b ? a : b;
    case ScalarOp::minimum: return any_nan ? static_cast<T>(kNan) : a < b ? a : b;
    case ScalarOp::fmax: return std::fmax(a, b);
    case ScalarOp::fmin: return std::fmin(a, b);
    case ScalarOp::pow: return std::pow(a, b);
    case ScalarOp::atan2: return std::atan2(a, b);
    case ScalarOp::hypot: return std::hypot(a, b);
    case ScalarOp::copysign: return std::copysign(a, b);
    default: break;
  }
  BRAZE_CHECK(false, "{} of two floating operands", to_text(op));
  return a;
}

template <class T>
double floating(ScalarOp op, std::span<const Number> x) {
  const auto at = [&](std::size_t k) { return static_cast<T>(x[k].number); };
  if (op == ScalarOp::fma) return std::fma(at(0), at(1), at(2));
  return x.size() == 1 ? unary<T>(op, at(0)) : binary<T>(op, at(0), at(1));
}

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  auto square = static_cast<std::uint64_t>(base), result = std::uint64_t{1};
  for (auto e = static_cast<std::uint64_t>(exponent); e; e >>= 1, square *= square)
    if (e & 1) result *= square;
  return static_cast<std::int64_t>(result);
}

std::int64_t integral(ScalarOp op, DType type, std::int64_t a, std::int64_t b) {
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  const bool overflows = b == -1;  // the one quotient that does not fit wraps
  switch (op) {
    case ScalarOp::add: return static_cast<std::int64_t>(x + y);
    case ScalarOp::sub: return static_cast<std::int64_t>(x - y);
    case ScalarOp::mul: return static_cast<std::int64_t>(x * y);
    case ScalarOp::trunc_div: return overflows ? static_cast<std::int64_t>(0 - x) : a / b;
    case ScalarOp::floor_div:
      return overflows ? static_cast<std::int64_t>(0 - x) : a / b - (a % b != 0 && (a < 0) != (b < 0));
    case ScalarOp::mod: return overflows ? 0 : a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
    case ScalarOp::fmod: return overflows ? 0 : a % b;
    case ScalarOp::maximum:
    case ScalarOp::fmax: return std::max(a, b);
    case ScalarOp::minimum:
    case ScalarOp::fmin: return std::min(a, b);
    case ScalarOp::ipow: return integer_power(a, b);
    case ScalarOp::neg: return static_cast<std::int64_t>(0 - x);
    case ScalarOp::abs: return a < 0 ? static_cast<std::int64_t>(0 - x) : a;
    case ScalarOp::sign: return (a > 0) - (a < 0);
    case ScalarOp::relu: return std::max<std::int64_t>(a, 0);
    case ScalarOp::bit_and: return a & b;
    case ScalarOp::bit_or: return a | b;
    case ScalarOp::bit_xor: return a ^ b;
    case ScalarOp::bit_not: return type == DType::kBool ? !a : ~a;
    case ScalarOp::shift_left: return b < 0 || b > 63 ? 0 : static_cast<std::int64_t>(x << b);
    case ScalarOp::shift_right: return a >> (b < 0 || b > 63 ? 63 : b);
    default: break;
  }
  BRAZE_CHECK(false, "{} of integers", to_text(op));
  return 0;
}

template <class T>
bool compare(ScalarOp op, T a, T b) {
  switch (op) {
    case ScalarOp::eq: return a == b;
    case ScalarOp::ne: return a != b;
    case ScalarOp::lt: return a < b;
    case ScalarOp::le: return a <= b;
    case ScalarOp::gt: return a > b;
    case ScalarOp::ge: return a >= b;
    default: break;
  }
  BRAZE_CHECK(false, "{} is no comparison", to_text(op));
  return false;
}

bool boolean(ScalarOp op, DType type, std::span<const Number> x) {
  switch (op) {
    case ScalarOp::isnan: return std::isnan(x[0].number);
    case ScalarOp::isinf: return std::isinf(x[0].number);
    case ScalarOp::signbit: return std::signbit(x[0].number);
    default: break;
  }
  return op::is_floating(type) ? compare(op, x[0].number, x[1].number) : compare(op, x[0].integer, x[1].integer);
}

}  // namespace

Number convert(Number x, DType from, DType to) {
  if (op::is_floating(to)) return {round_to(op::is_floating(from) ? x.number : static_cast<double>(x.integer), to), 0};
  if (!op::is_floating(from)) return {0, wrap_to(x.integer, to)};
  if (to == DType::kBool) return {0, x.number != 0};
  const bool fits = x.number >= -0x1p63 && x.number < 0x1p63;
  return {0, wrap_to(fits ? static_cast<std::int64_t>(x.number) : INT64_MIN, to)};
}

Number evaluate(ScalarOp op, DType type, std::span<const Number> x, std::span<const DType> types) {
  if (op == ScalarOp::cast) return convert(x[0], types[0], type);
  if (op == ScalarOp::select) return x[0].integer ? x[1] : x[2];
  if (type_rule(op) == TypeRule::boolean) return {0, boolean(op, types[0], x)};
  if (type == DType::kFloat32) return {floating<float>(op, x), 0};
  if (type == DType::kFloat64) return {floating<double>(op, x), 0};
  return {0, wrap_to(integral(op, type, x[0].integer, x.size() > 1 ? x[1].integer : 0), type)};
}

}  // namespace braze::loop
