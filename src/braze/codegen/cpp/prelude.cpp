// The text that stands in front of generated kernels: header-free, for g++ and clang, AVX-512 or anything else.
//
// 16 lanes of f32 (8 where a value has 8 bytes) as GCC vectors; `All` and `Part` masks; math functions whose
// coefficients were fitted for f32 (errors of 1 to 3 ulp); everything else lane by lane through libm.
#include "braze/codegen/cpp/prelude.h"

namespace braze::codegen {
namespace {

constexpr const char* kPrelude =
    R"__(typedef long i64; typedef int i32; typedef unsigned u32; typedef unsigned long u64; typedef unsigned short u16; typedef short i16; typedef unsigned char u8; typedef signed char i8;
#define VEC(T, n) typedef T __attribute__((vector_size(n)))
VEC(float, 64) vf; VEC(i32, 64) vi; VEC(u32, 64) vu; VEC(float, 32) hf; VEC(i32, 32) hi; VEC(u32, 32) hu; VEC(double, 64) vd; VEC(i64, 64) vl; VEC(u64, 64) vul;
VEC(u16, 32) vh; VEC(short, 32) vs; VEC(u16, 64) vh2; VEC(u16, 16) hh; VEC(u8, 16) vb; VEC(i8, 16) vc8; VEC(u8, 8) hb; VEC(i8, 8) hc8; VEC(short, 16) hs; VEC(char, 16) vch;
#define IN static inline __attribute__((always_inline))
#define R __restrict
#define BODY __attribute__((always_inline))
struct bf16 { u16 v; }; struct f16 { u16 v; }; struct b8 { u8 v; };
template <class F> struct tr;
template <> struct tr<float> { using I = i32; using U = u32; using S = float; using M = bool; static constexpr int N = 1; };
template <> struct tr<double> { using I = i64; using U = u64; using S = double; using M = bool; static constexpr int N = 1; };
template <> struct tr<i64> { using I = i64; using U = u64; using S = i64; using M = bool; static constexpr int N = 1; };
template <> struct tr<i32> { using I = i32; using U = u32; using S = i32; using M = bool; static constexpr int N = 1; };
template <> struct tr<bool> { using I = bool; using U = bool; using S = bool; using M = bool; static constexpr int N = 1; };
template <> struct tr<vf> { using I = vi; using U = vu; using S = float; using M = vi; static constexpr int N = 16; };
template <> struct tr<vi> { using I = vi; using U = vu; using S = i32; using M = vi; static constexpr int N = 16; };
template <> struct tr<hf> { using I = hi; using U = hu; using S = float; using M = hi; static constexpr int N = 8; };
template <> struct tr<hi> { using I = hi; using U = hu; using S = i32; using M = hi; static constexpr int N = 8; };
template <> struct tr<vd> { using I = vl; using U = vul; using S = double; using M = hi; static constexpr int N = 8; };
template <> struct tr<vl> { using I = vl; using U = vul; using S = i64; using M = hi; static constexpr int N = 8; };
template <class T, int N> struct vec;  // the register type of N values kept as T
template <> struct vec<float, 16> { using V = vf; }; template <> struct vec<float, 8> { using V = hf; }; template <> struct vec<double, 8> { using V = vd; };
template <> struct vec<i64, 8> { using V = vl; }; template <> struct vec<i32, 16> { using V = vi; }; template <> struct vec<i32, 8> { using V = hi; };
template <class T> struct mem { using S = i32; };  // what a value in memory becomes in a register; bool: masks
template <> struct mem<float> { using S = float; }; template <> struct mem<double> { using S = double; }; template <> struct mem<bf16> { using S = float; };
template <> struct mem<f16> { using S = float; }; template <> struct mem<i64> { using S = i64; };
template <class A, class B> IN A bits(B b) { return __builtin_bit_cast(A, b); }
template <class V, class S> IN V splat(S c) { if constexpr (tr<V>::N == 1) return (V)c; else return (typename tr<V>::S)c - V{}; }
template <class V> IN V msplat(bool c) { return (i32)(c ? -1 : 0) - V{}; }  // a mask of one truth value
template <class V, class F> IN V lanes(F f) { V r; for (int l = 0; l < tr<V>::N; l++) r[l] = f(l); return r; }
template <class V, class A, class F> IN V each(A a, F f) { if constexpr (tr<A>::N == 1) return f(a); else { V r; for (int l = 0; l < tr<V>::N; l++) r[l] = f(a[l]); return r; } }
template <class V, class A, class F> IN V each(A a, A b, F f) { if constexpr (tr<A>::N == 1) return f(a, b); else { V r; for (int l = 0; l < tr<V>::N; l++) r[l] = f(a[l], b[l]); return r; } }
// ---- masks: lanes of i32, all ones or zero; one truth value is a bool
IN bool msk(bool a) { return a; } IN vi msk(vi a) { return a; } IN hi msk(hi a) { return a; } IN hi msk(vl a) { return __builtin_convertvector(a, hi); }
IN bool not_(bool a) { return !a; } template <class V> IN V not_(V a) { return ~a; }
template <class V> IN V select_(bool c, V a, V b) { return c ? a : b; }
IN vf select_(vi c, vf a, vf b) { return c ? a : b; } IN vi select_(vi c, vi a, vi b) { return c ? a : b; }
IN hf select_(hi c, hf a, hf b) { return c ? a : b; } IN hi select_(hi c, hi a, hi b) { return c ? a : b; }
IN vd select_(hi c, vd a, vd b) { return __builtin_convertvector(c, vl) ? a : b; } IN vl select_(hi c, vl a, vl b) { return __builtin_convertvector(c, vl) ? a : b; }
// ---- arithmetic that is one instruction
IN float fma_(float a, float b, float c) { return __builtin_fmaf(a, b, c); } IN double fma_(double a, double b, double c) { return __builtin_fma(a, b, c); }
template <class V> IN V fma_(V a, V b, V c) { V r; for (int l = 0; l < tr<V>::N; l++) r[l] = fma_(a[l], b[l], c[l]); return r; }
IN float max_(float a, float b) { return a > b ? a : b; } IN float min_(float a, float b) { return a < b ? a : b; }  // b if either is nan
IN double max_(double a, double b) { return a > b ? a : b; } IN double min_(double a, double b) { return a < b ? a : b; }
template <class V> IN V max_(V a, V b) { return a > b ? a : b; } template <class V> IN V min_(V a, V b) { return a < b ? a : b; }
IN float sqrt_(float a) { return __builtin_sqrtf(a); } IN double sqrt_(double a) { return __builtin_sqrt(a); }
template <class V> IN V sqrt_(V a) { return each<V>(a, [](auto x) BODY { return sqrt_(x); }); }
IN float scale_(float q, float, i32 e) { i32 h = e >> 1; return q * bits<float>((h + 127) << 23) * bits<float>((e - h + 127) << 23); }  // two steps: denormals rounded once
template <class V> IN V scale_(V q, V, typename tr<V>::I e) { auto h = e >> 1; return q * bits<V>((h + 127) << 23) * bits<V>((e - h + 127) << 23); }
#if AVX512 && defined(__clang__)
IN vf fma_(vf a, vf b, vf c) { return __builtin_elementwise_fma(a, b, c); }
IN vf max_(vf a, vf b) { return (vf)__builtin_ia32_maxps512(a, b, 4); }
IN vf min_(vf a, vf b) { return (vf)__builtin_ia32_minps512(a, b, 4); }
IN vf sqrt_(vf a) { return __builtin_elementwise_sqrt(a); }
IN vf scale_(vf q, vf n, vi) { return __builtin_ia32_scalefps512_mask(q, n, vf{}, (u16)-1, 4); }
#elif AVX512
IN vf fma_(vf a, vf b, vf c) { return __builtin_ia32_vfmaddps512_mask(a, b, c, (u16)-1, 4); }
IN vd fma_(vd a, vd b, vd c) { return __builtin_ia32_vfmaddpd512_mask(a, b, c, (u8)-1, 4); }
IN vf max_(vf a, vf b) { return __builtin_ia32_maxps512_mask(a, b, vf{}, (u16)-1, 4); }
IN vf min_(vf a, vf b) { return __builtin_ia32_minps512_mask(a, b, vf{}, (u16)-1, 4); }
IN vd max_(vd a, vd b) { return __builtin_ia32_maxpd512_mask(a, b, vd{}, (u8)-1, 4); }
IN vd min_(vd a, vd b) { return __builtin_ia32_minpd512_mask(a, b, vd{}, (u8)-1, 4); }
IN vf sqrt_(vf a) { return __builtin_ia32_sqrtps512_mask(a, vf{}, (u16)-1, 4); }
IN vd sqrt_(vd a) { return __builtin_ia32_sqrtpd512_mask(a, vd{}, (u8)-1, 4); }
IN vf scale_(vf q, vf n, vi) { return __builtin_ia32_scalefps512_mask(q, n, vf{}, (u16)-1, 4); }
#endif
template <class F> IN F fma_(F a, F b, float c) { return fma_(a, b, splat<F>(c)); }
template <class F> IN F fma_(F a, float b, F c) { return fma_(a, splat<F>(b), c); }
template <class F> IN F fma_(F a, float b, float c) { return fma_(a, splat<F>(b), splat<F>(c)); }
template <class F> IN F clamp_(F x, float lo, float hi) { return min_(splat<F>(hi), max_(splat<F>(lo), x)); }  // nan stays nan
template <class F> constexpr bool is_int = __is_same(F, i32) || __is_same(F, i64) || __is_same(F, vi) || __is_same(F, hi) || __is_same(F, vl);
template <class F> constexpr bool is_f32 = __is_same(F, float) || __is_same(F, vf) || __is_same(F, hf);
template <class F> IN F abs_(F x) { if constexpr (is_int<F>) return x < 0 ? -x : x; else { using I = typename tr<F>::I; return bits<F>(bits<I>(x) & (((I{} + 1) << (sizeof(typename tr<F>::S) * 8 - 1)) - 1)); } }
template <class F> IN F copysign_(F m, F s) { using I = typename tr<F>::I; I top = (I{} + 1) << (sizeof(typename tr<F>::S) * 8 - 1); return bits<F>((bits<I>(m) & ~top) | (bits<I>(s) & top)); }
template <class F> IN F sel_(decltype(F{} < F{}) c, F a, F b) { return c ? a : b; }  // by a comparison of the same width
template <class F> IN F maximum_(F a, F b) { F r = max_(a, b); if constexpr (is_int<F>) return r; else return sel_(a != a, a, r); }
template <class F> IN F minimum_(F a, F b) { F r = min_(a, b); if constexpr (is_int<F>) return r; else return sel_(a != a, a, r); }
template <class F> IN F fmax_(F a, F b) { if constexpr (is_int<F>) return max_(a, b); else return sel_(a != a, b, max_(b, a)); }
template <class F> IN F fmin_(F a, F b) { if constexpr (is_int<F>) return min_(a, b); else return sel_(a != a, b, min_(b, a)); }
template <class F> IN F relu_(F v) { return max_(F{}, v); }  // nan stays nan
template <class F> IN F sign_(F x) { F one = splat<F>(1), z{}; return sel_(x > z, one, z) - sel_(x < z, one, z); }
template <class F> IN F rsqrt_(F x) { return 1 / sqrt_(x); }
template <class F> IN F reciprocal_(F x) { return 1 / x; }
template <class F> IN auto isnan_(F x) { return msk(x != x); }
template <class F> IN auto isinf_(F x) { return msk(abs_(x) == splat<F>(__builtin_inff())); }
template <class F> IN auto signbit_(F x) { if constexpr (is_int<F>) return msk(x < 0); else return msk(bits<typename tr<F>::I>(x) < 0); }
// ---- functions lane by lane
#define LANE(name, f, d) IN float name(float x) { return f(x); } IN double name(double x) { return d(x); } template <class V> IN V name(V a) { V r; for (int l = 0; l < tr<V>::N; l++) r[l] = name(a[l]); return r; }
#define LANE2(name, f, d) IN float name(float x, float y) { return f(x, y); } IN double name(double x, double y) { return d(x, y); } template <class V> IN V name(V a, V b) { V r; for (int l = 0; l < tr<V>::N; l++) r[l] = name(a[l], b[l]); return r; }
LANE(floor_, __builtin_floorf, __builtin_floor) LANE(ceil_, __builtin_ceilf, __builtin_ceil) LANE(round_, __builtin_rintf, __builtin_rint) LANE(trunc_, __builtin_truncf, __builtin_trunc)
LANE(exp2_, __builtin_exp2f, __builtin_exp2) LANE(expm1_, __builtin_expm1f, __builtin_expm1) LANE(log2_, __builtin_log2f, __builtin_log2) LANE(log10_, __builtin_log10f, __builtin_log10) LANE(log1p_, __builtin_log1pf, __builtin_log1p)
LANE(sin_, __builtin_sinf, __builtin_sin) LANE(cos_, __builtin_cosf, __builtin_cos) LANE(tan_, __builtin_tanf, __builtin_tan) LANE(asin_, __builtin_asinf, __builtin_asin) LANE(acos_, __builtin_acosf, __builtin_acos) LANE(atan_, __builtin_atanf, __builtin_atan)
LANE(sinh_, __builtin_sinhf, __builtin_sinh) LANE(cosh_, __builtin_coshf, __builtin_cosh) LANE(asinh_, __builtin_asinhf, __builtin_asinh) LANE(acosh_, __builtin_acoshf, __builtin_acosh) LANE(atanh_, __builtin_atanhf, __builtin_atanh)
LANE(erfc_, __builtin_erfcf, __builtin_erfc)
extern "C" double lgamma_r(double, int*) noexcept; extern "C" float lgammaf_r(float, int*) noexcept;
IN float lgamma_1(float x) { int s; return lgammaf_r(x, &s); } IN double lgamma_1(double x) { int s; return lgamma_r(x, &s); }
LANE(lgamma_, lgamma_1, lgamma_1)
IN float powf_(float a, float b) { return __builtin_powf(a, b); }
LANE2(pow_, powf_, __builtin_pow) LANE2(atan2_, __builtin_atan2f, __builtin_atan2) LANE2(hypot_, __builtin_hypotf, __builtin_hypot)
template <class T> IN T erfinv_1(T y) {
  const T a[4] = {T(0.886226899), T(-1.645349621), T(0.914624893), T(-0.140543331)}, b[4] = {T(-2.118377725), T(1.442710462), T(-0.329097515), T(0.012229801)};
  const T c[4] = {T(-1.970840454), T(-1.624906493), T(3.429567803), T(1.641345311)}, d[2] = {T(3.543889200), T(1.637067800)};
  T m = y < 0 ? -y : y, x; if (!(m <= 1)) return T(__builtin_nan("")); if (m == 1) return __builtin_copysign(__builtin_inf(), y);
  if (m <= T(0.7)) { T z = y * y; x = y * (((a[3] * z + a[2]) * z + a[1]) * z + a[0]) / ((((b[3] * z + b[2]) * z + b[1]) * z + b[0]) * z + 1); }
  else { T z = __builtin_sqrt(-__builtin_log((1 - m) / 2)); x = T(__builtin_copysign(1.0, y)) * (((c[3] * z + c[2]) * z + c[1]) * z + c[0]) / ((d[1] * z + d[0]) * z + 1); }
  for (int k = 0; k < 2; k++) x = x - (T(__builtin_erf(x)) - y) / (T(1.1283791670955126) * T(__builtin_exp(-x * x)));
  return x;
}
IN float erfinv_f(float y) { return (float)erfinv_1<double>(y); }
LANE(erfinv_, erfinv_f, erfinv_1<double>)
IN double digamma_1(double x) {
  if (x == 0) return __builtin_copysign(__builtin_inf(), -x);
  double r = 0; if (x < 0) { if (x == __builtin_trunc(x)) return __builtin_nan(""); double q; double f = __builtin_modf(x, &q); r = -3.14159265358979323846 / __builtin_tan(3.14159265358979323846 * f); x = 1 - x; }
  while (x < 10) { r -= 1 / x; x += 1; }
  if (x == 10) return r + 2.25175258906672110764;
  double y = 0; if (x < 1e17) { double z = 1 / (x * x); y = z * ((((((8.33333333333333333333e-2 * z - 2.10927960927960927961e-2) * z + 7.57575757575757575758e-3) * z - 4.16666666666666666667e-3) * z + 3.96825396825396825397e-3) * z - 8.33333333333333333333e-3) * z + 8.33333333333333333333e-2); }
  return r + __builtin_log(x) - 0.5 / x - y;
}
IN float digamma_f(float x) { return (float)digamma_1(x); }
LANE(digamma_, digamma_f, digamma_1)
// ---- integers: division by zero gives zero (the caller checks), the smallest number by -1 wraps
template <class T> IN T tdiv_1(T a, T b) { return b == 0 ? 0 : b == -1 ? -a : a / b; }
template <class T> IN T tmod_1(T a, T b) { return b == 0 || b == -1 ? 0 : a % b; }
template <class T> IN T fdiv_1(T a, T b) { T q = tdiv_1(a, b), r = tmod_1(a, b); return q - (r != 0 && (r ^ b) < 0); }
template <class T> IN T fmod_1(T a, T b) { T r = tmod_1(a, b); return r != 0 && (r ^ b) < 0 ? r + b : r; }
IN float fmod_1(float a, float b) { return __builtin_fmodf(a, b); } IN double fmod_1(double a, double b) { return __builtin_fmod(a, b); }
template <class T> IN T pymod_1(T a, T b) { T m = fmod_1(a, b); return m != 0 && (b < 0) != (m < 0) ? m + b : m; }
template <class T> IN T pydiv_1(T a, T b) { if (b == 0) return a / b; T m = fmod_1(a, b), d = (a - m) / b; if (m != 0 && (b < 0) != (m < 0)) d -= 1; if (d == 0) return copysign_(T(0), a / b); T f = floor_(d); return d - f > T(0.5) ? f + 1 : f; }
template <class F> IN F trunc_div_(F a, F b) { if constexpr (is_int<F>) return each<F>(a, b, [](auto x, auto y) BODY { return tdiv_1(x, y); }); else return trunc_(a / b); }
template <class F> IN F floor_div_(F a, F b) { return each<F>(a, b, [](auto x, auto y) BODY { if constexpr (is_int<F>) return fdiv_1(x, y); else return pydiv_1(x, y); }); }
template <class F> IN F mod_(F a, F b) { return each<F>(a, b, [](auto x, auto y) BODY { if constexpr (is_int<F>) return fmod_1(x, y); else return pymod_1(x, y); }); }
template <class F> IN F fmod_(F a, F b) { return each<F>(a, b, [](auto x, auto y) BODY { if constexpr (is_int<F>) return tmod_1(x, y); else return fmod_1(x, y); }); }
template <class T> IN T ipow_1(T a, T b) { if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0; T r = 1; while (b) { if (b & 1) r *= a; b >>= 1; a *= a; } return r; }
template <class F> IN F ipow_(F a, F b) { return each<F>(a, b, [](auto x, auto y) BODY { return ipow_1(x, y); }); }
template <class T> constexpr int bit_count = sizeof(T) * 8;
template <class T, class F> IN F shift_left_(F a, F b) { using I = typename tr<F>::I; auto bad = (b < 0) | (b >= bit_count<T>); F s = bad ? F{} : b; return bad ? F{} : bits<F>(bits<I>(a) << bits<I>(s)); }
template <class T, class F> IN F shift_right_(F a, F b) { constexpr bool sg = T(-1) < 0; F top = splat<F>(sg ? bit_count<T> - 1 : bit_count<T>); auto bad = (b < 0) | (b > top); return a >> (bad ? top : b); }
// a value of a small integer type is kept in i32 lanes; after arithmetic it wraps to its width
template <class T, class F> IN F wrap_(F a) { if constexpr (sizeof(T) >= 4) return a; else { constexpr int s = 32 - bit_count<T>; if constexpr (T(-1) < 0) return (a << s) >> s; else return a & ((1 << bit_count<T>) - 1); } }
// ---- exp family. n = round(x log2 e) by the 1.5*2^23 trick; r = x - n ln2, two-part ln2
#define EXPQ(r) fma_(fma_(fma_(fma_(fma_(r, 0x1.6a215ap-10f, 0x1.123b9ap-7f), r, 0x1.5558fcp-5f), r, 0x1.555490p-3f), r, 0x1.fffffcp-2f), (r) * (r), r)
template <class F> IN F exp_(F x) {  // full range: denormal results, inf, nan
  if constexpr (!is_f32<F>) return each<F>(x, [](auto v) BODY { return __builtin_exp(v); }); else {
  using I = typename tr<F>::I; x = clamp_(x, -104.f, 89.f);
  F t = fma_(x, 0x1.715476p+0f, 12582912.f), n = t - 12582912.f;
  F r = fma_(n, -0x1.62e4p-1f, x); r = fma_(n, -0x1.7f7d1cp-20f, r);
  return scale_(EXPQ(r) + 1.f, n, bits<I>(t) - 0x4b400000); }
}
template <class F> IN F expm1_mod(F x) {  // -88 <= x <= 88 or nan
  using I = typename tr<F>::I;
  F t = fma_(x, 0x1.715476p+0f, 12582912.f), n = t - 12582912.f;
  F r = fma_(n, -0x1.62e4p-1f, x); r = fma_(n, -0x1.7f7d1cp-20f, r);
  F s = scale_(splat<F>(1.f), n, bits<I>(t) - 0x4b400000);
  return fma_(s, EXPQ(r), s - 1.f);
}
template <class F> IN F tanh_(F x) {
  if constexpr (!is_f32<F>) return each<F>(x, [](auto v) BODY { return __builtin_tanh(v); }); else {
  F a = abs_(x); a = min_(splat<F>(9.1f), a); F m = expm1_mod(a + a); return copysign_(m / (m + 2.f), x); }
}
template <class F> IN F sigmoid_(F x) { return 1 / (1 + exp_(-x)); }
template <class F> IN F erf_(F x) {  // erf(a) = -expm1(-P(a)), P(a) = -log erfc(a) = a R(a)
  if constexpr (!is_f32<F>) return each<F>(x, [](auto v) BODY { return __builtin_erf(v); }); else {
  F a = abs_(x); a = min_(splat<F>(3.95f), a);
  F p = fma_(a, 0x1.95d45cp-21f, -0x1.00e0d8p-16f); p = fma_(p, a, 0x1.1853d6p-13f); p = fma_(p, a, -0x1.50776ep-11f); p = fma_(p, a, 0x1.ad0bd6p-10f);
  p = fma_(p, a, -0x1.b163b6p-14f); p = fma_(p, a, -0x1.3a6788p-6f); p = fma_(p, a, 0x1.a50388p-4f); p = fma_(p, a, 0x1.45f2eap-1f); p = fma_(p, a, 0x1.20dd76p+0f);
  return copysign_(-expm1_mod(-(p * a)), x); }
}
template <class F> IN F gelu_(F x) {  // max(x, 0) - |x| t, t = erfc(|x| / sqrt 2) / 2 = 2^-Q(|x|)
  if constexpr (!is_f32<F>) return 0.5 * x * (1 + erf_(x * 0.70710678118654752440)); else {
  using I = typename tr<F>::I; F a = min_(splat<F>(14.2f), abs_(x));
  F q = fma_(a, -0x1.2c5db8p-25f, 0x1.61381cp-20f); q = fma_(q, a, -0x1.1fa7b2p-16f); q = fma_(q, a, 0x1.2bef16p-14f); q = fma_(q, a, 0x1.c194e4p-12f);
  q = fma_(q, a, -0x1.e8d8eep-8f); q = fma_(q, a, 0x1.b05aeep-5f); q = fma_(q, a, 0x1.d621ccp-2f); q = fma_(q, a, 0x1.26af98p+0f); q = fma_(q, a, 0x1.fffff8p-1f);
  F t = 12582912.f - q, n = t - 12582912.f, r = -q - n;
  F p = fma_(r, 0x1.446deap-13f, 0x1.5f8b0ep-10f); p = fma_(p, r, 0x1.3b29e2p-7f); p = fma_(p, r, 0x1.c6ae26p-5f); p = fma_(p, r, 0x1.ebfbe0p-3f); p = fma_(p, r, 0x1.62e432p-1f); p = fma_(p, r, 1.f);
  F g = fma_(-a, scale_(p, n, bits<I>(t) - 0x4b400000), max_(splat<F>(0.f), x));
  return sel_(abs_(x) == splat<F>(__builtin_inff()), splat<F>(__builtin_nanf("")), g); }  // as eager: inf * 0
}
template <class F> IN F log_(F x) {
  if constexpr (!is_f32<F>) return each<F>(x, [](auto v) BODY { return __builtin_log(v); }); else {
  using I = typename tr<F>::I;
  auto sub = x < 0x1p-126f; F y = sub ? x * 0x1p23f : x;
  I b = bits<I>(y) - 0x3f3504f3, e = b >> 23;  // m in [sqrt(1/2), sqrt(2))
  F f = bits<F>((b & 0x7fffff) + 0x3f3504f3) - 1.f; e = sub ? e - 23 : e;
  F n = bits<F>(e + 0x4b400000) - 12582912.f;
  F p = fma_(f, -0x1.392f4ap-4f, 0x1.05b760p-3f); p = fma_(p, f, -0x1.0d9a3cp-3f); p = fma_(p, f, 0x1.22cf4cp-3f); p = fma_(p, f, -0x1.546f2ap-3f);
  p = fma_(p, f, 0x1.99a060p-3f); p = fma_(p, f, -0x1.000232p-2f); p = fma_(p, f, 0x1.555554p-2f);
  F z = f * f, c = fma_(n, 0x1.7f7d1cp-20f, z * f * p); c = fma_(z, splat<F>(-0.5f), c);
  F r = fma_(n, splat<F>(0x1.62e4p-1f), f + c), inf = splat<F>(__builtin_inff()), nan = splat<F>(__builtin_nanf(""));
  r = x < 0.f ? nan : r; r = x == 0.f ? -inf : r;
  return x < inf ? r : x > 0.f ? x : x == x ? r : x; }
}
#if AVX512
// vgetmant/vgetexp take denormals, 0, inf, nan and negative numbers as the result needs them: no selects
IN vf log_(vf x) {
  vf m = __builtin_ia32_getmantps512_mask(x, 11, vf{}, (u16)-1, 4);  // [0.75, 1.5), nan if x < 0
  vf n = __builtin_ia32_getexpps512_mask(x, vf{}, (u16)-1, 4) - __builtin_ia32_getexpps512_mask(m, vf{}, (u16)-1, 4), f = m - 1.f;
  vf p = fma_(f, -0x1.7140c2p-5f, 0x1.ac90c0p-4f); p = fma_(p, f, -0x1.0d8a8cp-3f); p = fma_(p, f, 0x1.28847cp-3f); p = fma_(p, f, -0x1.54efdcp-3f);
  p = fma_(p, f, 0x1.9969b0p-3f); p = fma_(p, f, -0x1.000040p-2f); p = fma_(p, f, 0x1.5555a4p-2f);
  vf z = f * f, c = fma_(n, 0x1.7f7d1cp-20f, z * f * p); c = fma_(z, -0.5f, c);
  return fma_(n, 0x1.62e4p-1f, f + c);
}
#endif
// ---- conversions. narrow: round to nearest even, nan kept quiet, denormals exact
IN float half_1(u16 h) { u32 s = (u32)(h & 0x8000) << 16, e = (h >> 10) & 31, m = h & 1023; if (e == 31) return bits<float>(s | 0x7f800000 | (m << 13) | (m ? 0x400000 : 0)); if (e) return bits<float>(s | ((e + 112) << 23) | (m << 13)); float f = (float)m * 0x1p-24f; return bits<float>(bits<u32>(f) | s); }
IN u16 half_of(float f) {
  u32 u = bits<u32>(f), s = (u >> 16) & 0x8000, a = u & 0x7fffffff; if (a > 0x7f800000) return s | 0x7e00 | ((a >> 13) & 0x3ff); if (a >= 0x477ff000) return s | 0x7c00;
  if (a < 0x38800000) { float d = bits<float>(a) + 0.5f; return s | (u16)(bits<u32>(d) - 0x3f000000); }
  return s | (u16)((a - 0x38000000 + 0xfff + ((a >> 13) & 1)) >> 13);
}
IN u16 bf16_of(float v) { u32 u = bits<u32>(v), r = (u + 0x7fff + ((u >> 16) & 1)) >> 16; return v != v ? (u16)((u >> 16) | 0x40) : (u16)r; }
#if AVX512 && !defined(__clang__)
// g++ 12 expands these convertvectors as two halves plus an insertion (u8 -> i32 even lane by lane)
IN vu widen(vh h) { return bits<vu>(__builtin_ia32_pmovzxwd512_mask(bits<vs>(h), vi{}, (u16)-1)); }
IN vi widen(vs h) { return __builtin_ia32_pmovsxwd512_mask(h, vi{}, (u16)-1); }
IN vi widen(vb b) { return __builtin_ia32_pmovzxbd512_mask(bits<vch>(b), vi{}, (u16)-1); }
IN vi widen(vc8 b) { return __builtin_ia32_pmovsxbd512_mask(bits<vch>(b), vi{}, (u16)-1); }
#else
IN vu widen(vh h) { return __builtin_convertvector(h, vu); } IN vi widen(vs h) { return __builtin_convertvector(h, vi); }
IN vi widen(vb b) { return __builtin_convertvector(__builtin_convertvector(b, vh), vi); } IN vi widen(vc8 b) { return __builtin_convertvector(__builtin_convertvector(b, vs), vi); }
#endif
IN hu widen(hh h) { return __builtin_convertvector(h, hu); } IN hi widen(hs h) { return __builtin_convertvector(h, hi); }
IN hi widen(hb b) { return __builtin_convertvector(__builtin_convertvector(b, hh), hi); } IN hi widen(hc8 b) { return __builtin_convertvector(__builtin_convertvector(b, hs), hi); }
IN vf wide(vh h) { return bits<vf>(widen(h) << 16); }
IN vh narrow(vf v) {
  vu u = bits<vu>(v), r = u + 0x7fff + ((u >> 16) & 1); r = v != v ? u | 0x400000 : r; vh2 w = bits<vh2>(r);
  return __builtin_shufflevector(w, w, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}
#if AVX512 && defined(__AVX512BF16__)
// the instruction rounds the same but flushes denormals (ATen keeps them): a rarely taken branch restores those
IN vh narrow_hw(vf v) {
#ifdef __clang__
  typedef __bf16 vbf __attribute__((vector_size(32))); vh h = bits<vh>(__builtin_convertvector(v, vbf));
#else
  vh h = bits<vh>(__builtin_ia32_cvtneps2bf16_v16sf(v));
#endif
  if (__builtin_expect(__builtin_ia32_fpclassps512_mask(v, 0x20, (u16)-1), 0)) h = narrow(v);
  return h;
}
#else
IN vh narrow_hw(vf v) { return narrow(v); }
#endif
#if AVX512 && !defined(__clang__)
IN vf half_wide(vh h) { return __builtin_ia32_vcvtph2ps512_mask(bits<vs>(h), vf{}, (u16)-1, 4); }
IN vh half_narrow(vf v) { return bits<vh>(__builtin_ia32_vcvtps2ph512_mask(v, 0, vs{}, (u16)-1)); }
#else
IN vf half_wide(vh h) { vf r; for (int l = 0; l < 16; l++) r[l] = half_1(h[l]); return r; }
IN vh half_narrow(vf v) { vh r; for (int l = 0; l < 16; l++) r[l] = half_of(v[l]); return r; }
#endif
template <class T> IN float round1_(float v) { if constexpr (__is_same(T, bf16)) return bits<float>((u32)bf16_of(v) << 16); else return half_1(half_of(v)); }
template <class T> IN float round_to(float v) { return round1_<T>(v); }
template <class T> IN vf round_to(vf v) { if constexpr (__is_same(T, bf16)) return wide(narrow_hw(v)); else return half_wide(half_narrow(v)); }
template <class T> IN hf round_to(hf v) { return each<hf>(v, [](float x) BODY { return round1_<T>(x); }); }
template <class V, class A> IN V cast_(A a) {  // numbers to numbers of the same lane count, not masks
  if constexpr (__is_same(V, A)) return a; else if constexpr (tr<V>::N == 1) { if constexpr (!is_int<A> && is_int<V>) { if constexpr (sizeof(V) == 4) return (i32)(i64)(double)a; else return (V)a; } else return (V)a; }
  else if constexpr (is_int<V> && sizeof(typename tr<V>::S) == 4 && __is_same(A, vd)) return __builtin_convertvector(__builtin_convertvector(a, vl), V);
  else return __builtin_convertvector(a, V);
}
template <class V, class M> IN V from_mask(M m) { if constexpr (tr<V>::N == 1) return (V)m; else return cast_<V>(m & 1); }
template <class A> IN auto to_mask(A a) { return msk(a != A{}); }
// ---- loads and stores of N lanes: all of them, or the first n (the others are zero)
template <int N> struct All { static constexpr int n = N; };
template <int N> struct Part { int n; u16 m; };
template <int N> IN Part<N> part(i64 n) { return Part<N>{(int)n, (u16)((1u << n) - 1)}; }
template <class T, int N> struct raw { typedef T V __attribute__((vector_size(sizeof(T) * N))); };
template <class V, class P> IN V get(const P* p) { V r; __builtin_memcpy(&r, p, sizeof(V)); return r; }
template <class V, class P> IN V get(const P* p, int n) { V r{}; P* q = (P*)&r; for (int l = 0; l < n; l++) q[l] = p[l]; return r; }
template <class V, class P> IN void put(P* p, V v) { __builtin_memcpy(p, &v, sizeof(V)); }
template <class V, class P> IN void put(P* p, V v, int n) { const P* q = (const P*)&v; for (int l = 0; l < n; l++) p[l] = q[l]; }
#define LOADS(T, N, RAW, EXPAND) IN auto ld(const T* p, All<N>) { RAW r = get<RAW>(p); return EXPAND; } IN auto ld(const T* p, Part<N> m) { RAW r = get<RAW>(p, m.n); return EXPAND; }
#define STORES(T, N, V, RAW, NARROW) IN void st(T* p, V v, All<N>) { RAW r = NARROW; put(p, r); } IN void st(T* p, V v, Part<N> m) { RAW r = NARROW; put(p, r, m.n); }
LOADS(bf16, 8, hh, bits<hf>(widen(r) << 16)) LOADS(f16, 16, vh, half_wide(r)) LOADS(f16, 8, hh, lanes<hf>([&](int l) BODY { return half_1(r[l]); }))
LOADS(b8, 16, vb, widen(r) != 0) LOADS(b8, 8, hb, widen(r) != 0) LOADS(u8, 16, vb, widen(r)) LOADS(u8, 8, hb, widen(r)) LOADS(i8, 16, vc8, widen(r)) LOADS(i8, 8, hc8, widen(r))
LOADS(i16, 16, vs, widen(r)) LOADS(i16, 8, hs, widen(r))
IN hh lanes_hh(hf v) { hh r; for (int l = 0; l < 8; l++) r[l] = bf16_of(v[l]); return r; }
IN hh lanes_f16(hf v) { hh r; for (int l = 0; l < 8; l++) r[l] = half_of(v[l]); return r; }
STORES(bf16, 8, hf, hh, (lanes_hh(v))) STORES(f16, 16, vf, vh, half_narrow(v)) STORES(f16, 8, hf, hh, (lanes_f16(v)))
STORES(b8, 16, vi, vb, (__builtin_convertvector(v & 1, vb))) STORES(b8, 8, hi, hb, (__builtin_convertvector(v & 1, hb))) STORES(u8, 16, vi, vb, (__builtin_convertvector(v, vb))) STORES(u8, 8, hi, hb, (__builtin_convertvector(v, hb)))
STORES(i8, 16, vi, vc8, (__builtin_convertvector(v, vc8))) STORES(i8, 8, hi, hc8, (__builtin_convertvector(v, hc8))) STORES(i16, 16, vi, vs, (__builtin_convertvector(v, vs))) STORES(i16, 8, hi, hs, (__builtin_convertvector(v, hs)))
#define PLAIN(T, N, V) IN V ld(const T* p, All<N>) { return get<V>(p); } IN void st(T* p, V v, All<N>) { put(p, v); }
PLAIN(float, 16, vf) PLAIN(float, 8, hf) PLAIN(double, 8, vd) PLAIN(i32, 16, vi) PLAIN(i32, 8, hi) PLAIN(i64, 8, vl)
IN vf ld(const bf16* p, All<16>) { return wide(get<vh>(p)); } IN void st(bf16* p, vf v, All<16>) { put(p, narrow_hw(v)); }
#if AVX512
#ifdef __clang__
typedef vs hp;
#else
typedef short hp;
#endif
VEC(long long, 64) vll;
IN vf ld(const float* p, Part<16> m) { return __builtin_ia32_loadups512_mask(p, vf{}, m.m); } IN void st(float* p, vf v, Part<16> m) { __builtin_ia32_storeups512_mask(p, v, m.m); }
IN vi ld(const i32* p, Part<16> m) { return bits<vi>(ld((const float*)p, m)); } IN void st(i32* p, vi v, Part<16> m) { st((float*)p, bits<vf>(v), m); }
IN vd ld(const double* p, Part<8> m) { return __builtin_ia32_loadupd512_mask(p, vd{}, (u8)m.m); } IN void st(double* p, vd v, Part<8> m) { __builtin_ia32_storeupd512_mask(p, v, (u8)m.m); }
IN vl ld(const i64* p, Part<8> m) { return bits<vl>(ld((const double*)p, m)); } IN void st(i64* p, vl v, Part<8> m) { st((double*)p, bits<vd>(v), m); }
IN vf ld(const bf16* p, Part<16> m) { return wide(bits<vh>(__builtin_ia32_loaddquhi256_mask((const hp*)p, vs{}, m.m))); } IN void st(bf16* p, vf v, Part<16> m) { __builtin_ia32_storedquhi256_mask((hp*)p, bits<vs>(narrow_hw(v)), m.m); }
#else
#define TAIL(T, N, V) IN V ld(const T* p, Part<N> m) { return get<V>(p, m.n); } IN void st(T* p, V v, Part<N> m) { put(p, v, m.n); }
TAIL(float, 16, vf) TAIL(double, 8, vd) TAIL(i32, 16, vi) TAIL(i64, 8, vl)
IN vf ld(const bf16* p, Part<16> m) { return wide(get<vh>(p, m.n)); } IN void st(bf16* p, vf v, Part<16> m) { put(p, narrow_hw(v), m.n); }
#endif
IN hf ld(const float* p, Part<8> m) { return get<hf>(p, m.n); } IN void st(float* p, hf v, Part<8> m) { put(p, v, m.n); }
IN hi ld(const i32* p, Part<8> m) { return get<hi>(p, m.n); } IN void st(i32* p, hi v, Part<8> m) { put(p, v, m.n); }
// one value
IN float ld1(const float* p) { return *p; } IN double ld1(const double* p) { return *p; } IN i64 ld1(const i64* p) { return *p; } IN i32 ld1(const i32* p) { return *p; }
IN i32 ld1(const i16* p) { return *p; } IN i32 ld1(const i8* p) { return *p; } IN i32 ld1(const u8* p) { return *p; } IN bool ld1(const b8* p) { return p->v != 0; }
IN float ld1(const bf16* p) { return bits<float>((u32)p->v << 16); } IN float ld1(const f16* p) { return half_1(p->v); }
template <class T, class S> IN void st1(T* p, S v) { *p = (T)v; }
IN void st1(b8* p, bool v) { p->v = v; } IN void st1(bf16* p, float v) { p->v = bf16_of(v); } IN void st1(f16* p, float v) { p->v = half_of(v); }
template <class T> IN auto ld1m(const T* p, bool m) { return m ? ld1(p) : decltype(ld1(p)){}; }
// lanes at p[at(l)]; an inactive lane is not touched
template <class V, class T, class M, class A> IN V ldx(const T* p, M m, A at) {
  V r{}; for (int l = 0; l < (int)m.n; l++) { auto v = ld1(p + at(l)); if constexpr (__is_same(T, b8)) r[l] = v ? -1 : 0; else r[l] = v; } return r;
}
template <class V, class T, class M, class A, class C> IN V ldxm(const T* p, M m, A at, C c) {
  V r{}; for (int l = 0; l < (int)m.n; l++) if (c[l]) { auto v = ld1(p + at(l)); if constexpr (__is_same(T, b8)) r[l] = v ? -1 : 0; else r[l] = v; } return r;
}
template <class V, class T, class M, class A> IN void stx(T* p, V v, M m, A at) { for (int l = 0; l < (int)m.n; l++) st1(p + at(l), v[l]); }
// contiguous lanes where c holds
template <class V, class T, class M, class C> IN V ldm(const T* p, M m, C c) {
#if AVX512 && !defined(__clang__)
  if constexpr (__is_same(V, vf) && __is_same(T, float)) { u16 k = __builtin_ia32_ptestmd512(c, c, (u16)-1); if constexpr (!__is_same(M, All<16>)) k &= m.m; return __builtin_ia32_loadups512_mask(p, vf{}, k); } else
#endif
  return ldxm<V>(p, m, [](int l) BODY { return l; }, c);
}
template <class V> IN V iota() { return lanes<V>([](int l) BODY { return l; }); }
// lanes j < n of v, others c
template <class V, int N> IN V keep(V v, All<N>, V) { return v; }
template <class V, int N> IN V keep(V v, Part<N> m, V c) { return select_(msk(iota<typename tr<V>::I>() < splat<typename tr<V>::I>(m.n)), v, c); }
template <class V, class M> IN bool holds(V v, M m) { V w = keep(v, m, not_(V{})); bool r = true; for (int l = 0; l < tr<V>::N; l++) r &= w[l] != 0; return r; }
// ---- loops
template <int N, class B> IN void loop(i64 b, i64 n, B body) { i64 j = b; for (; j + N <= n; j += N) body(j, All<N>{}); if (j < n) body(j, part<N>(n - j)); }
template <int N, class B> IN void loopf(i64 b, i64 n, B body) { for (i64 j = b; j < n; j += N) body(j, All<N>{}); }  // n - b is a multiple of N
template <int N, class B> IN void loopp(i64 b, i64 n, B body) { for (i64 j = b; j < n; j += N) body(j, part<N>(n - j < N ? n - j : N)); }  // large bodies: printed once
// four independent accumulators: body(j, mask, slot)
template <int N, class B> IN void loop4(i64 b, i64 n, B body) {
  i64 j = b;
  for (; j + 4 * N <= n; j += 4 * N) { body(j, All<N>{}, 0); body(j + N, All<N>{}, 1); body(j + 2 * N, All<N>{}, 2); body(j + 3 * N, All<N>{}, 3); }
  for (; j + N <= n; j += N) body(j, All<N>{}, 0);
  if (j < n) body(j, part<N>(n - j), 1);
}
template <int N, class B> IN void loop4f(i64 b, i64 n, B body) { for (i64 j = b; j < n; j += 4 * N) { body(j, All<N>{}, 0); body(j + N, All<N>{}, 1); body(j + 2 * N, All<N>{}, 2); body(j + 3 * N, All<N>{}, 3); } }
// ---- accumulators over vectors of V: a neutral start, update of slot k, the folded value
IN float hsum(vf v) {
  v = v + __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7); v = v + __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
  return (v[0] + v[2]) + (v[1] + v[3]);
}
template <class V> IN auto hsum(V v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }
IN auto hsum(vi v) { i32 s = 0; for (int l = 0; l < 16; l++) s += v[l]; return s; }
struct FSum { template <class V> BODY static V zero() { return V{}; } template <class V> BODY static V f(V a, V b) { return a + b; } };
struct FProd { template <class V> BODY static V zero() { return splat<V>(1); } template <class V> BODY static V f(V a, V b) { return a * b; } };
template <class V> IN V lowest() { using S = typename tr<V>::S; if constexpr (!is_int<V>) return splat<V>(-__builtin_inff()); else return splat<V>(S(S(1) << (sizeof(S) * 8 - 1))); }
template <class V> IN V highest() { using S = typename tr<V>::S; if constexpr (!is_int<V>) return splat<V>(__builtin_inff()); else return splat<V>(S(~(S(1) << (sizeof(S) * 8 - 1)))); }
struct FMax { template <class V> BODY static V zero() { return lowest<V>(); } template <class V> BODY static V f(V a, V b) { return maximum_(a, b); } };
struct FMin { template <class V> BODY static V zero() { return highest<V>(); } template <class V> BODY static V f(V a, V b) { return minimum_(a, b); } };
struct FAny { template <class V> BODY static V zero() { return V{}; } template <class V> BODY static V f(V a, V b) { return a | b; } };
struct FAll { template <class V> BODY static V zero() { return not_(V{}); } template <class V> BODY static V f(V a, V b) { return a & b; } };
template <class V, class Fo> struct Acc {
  V a[4]; V t; BODY Acc() { for (auto& v : a) v = Fo::template zero<V>(); t = Fo::template zero<V>(); }
  template <class M> BODY void up(int k, V v, M m) { a[k] = Fo::f(a[k], keep(v, m, Fo::template zero<V>())); }
  BODY void flush() { t = Fo::f(t, vec4()); for (auto& v : a) v = Fo::template zero<V>(); }
  BODY V vec4() const { return Fo::f(Fo::f(a[0], a[1]), Fo::f(a[2], a[3])); }
  BODY V all() const { return Fo::f(t, vec4()); }
  BODY auto get() const {
    V v = all(); if constexpr (__is_same(Fo, FSum)) return hsum(v);
    else { using S = typename tr<V>::S; S r = v[0]; for (int l = 1; l < tr<V>::N; l++) r = Fo::template f<S>(r, v[l]); return r; }
  }
};
template <class V, class Fo> struct MaskAcc {  // any, all
  V a; BODY MaskAcc() { a = Fo::template zero<V>(); } template <class M> BODY void up(int, V v, M m) { a = Fo::f(a, keep(v, m, Fo::template zero<V>())); } BODY void flush() {}
  BODY bool get() const { i32 r = a[0]; for (int l = 1; l < tr<V>::N; l++) r = Fo::template f<i32>(r, a[l]); return r != 0; }
};
template <class S, class Fo> struct Acc1 { S a; BODY Acc1() { if constexpr (__is_same(S, bool)) a = __is_same(Fo, FAll); else a = Fo::template zero<S>(); } BODY void up(S v) { if constexpr (__is_same(S, bool)) a = __is_same(Fo, FAll) ? a && v : a || v; else a = Fo::f(a, v); } BODY S get() const { return a; } };
template <class V, class Fo> struct AccV { V a; BODY AccV() { a = Fo::template zero<V>(); } BODY void up(V v) { a = Fo::f(a, v); } BODY V get() const { return a; } };  // one per lane
template <bool Max, class T> IN bool beats(T v, T b, i64 i, i64 bi) { if (v != v) return b == b || i < bi; if (b != b) return false; return Max ? v > b || (v == b && i < bi) : v < b || (v == b && i < bi); }
template <class S, bool Max> struct Arg1 { S b; i64 i; BODY Arg1() { b = Max ? lowest<S>() : highest<S>(); i = 0x7fffffffffffffff; } BODY void up(S v, i64 at) { if (beats<Max>(v, b, at, i)) b = v, i = at; } BODY i64 get() const { return i; } };
template <class V, bool Max> struct ArgAcc {  // the first of equals, the first nan; indices below 2^31
  using S = typename tr<V>::S; using I = typename tr<V>::I; V b[2]; I i[2];
  BODY ArgAcc() { for (int k = 0; k < 2; k++) b[k] = Max ? lowest<V>() : highest<V>(), i[k] = splat<I>(0x7fffffff); }
  template <class M> BODY void up(int k, V v, i64 at, M m) {
    I x = iota<I>() + splat<I>(at); k &= 1; auto t = Max ? (v > b[k]) : (v < b[k]); t |= (v == b[k]) & (x < i[k]); t |= (v != v) & (b[k] == b[k]);
    if constexpr (!__is_same(M, All<tr<V>::N>)) t &= iota<I>() < splat<I>(m.n);
    b[k] = t ? v : b[k]; i[k] = t ? x : i[k];
  }
  BODY void flush() {}
  BODY i64 get() const { S r = b[0][0]; i64 at = i[0][0]; for (int k = 0; k < 2; k++) for (int l = 0; l < tr<V>::N; l++) if (beats<Max>((S)b[k][l], r, (i64)i[k][l], at)) r = b[k][l], at = i[k][l]; return at; }
};
template <class V, bool Max> struct ArgV { using I = typename tr<V>::I; V b; I i; BODY ArgV() { b = Max ? lowest<V>() : highest<V>(); i = splat<I>(0x7fffffff); }
  BODY void up(V v, i64 at) { I x = splat<I>(at); auto t = Max ? (v > b) : (v < b); t |= (v == b) & (x < i); t |= (v != v) & (b == b); b = t ? v : b; i = t ? x : i; }
  BODY auto get() const { return i; } };
// ---- Philox 4x32-10: word `at` of the stream of (seed, offset): counter (at / 4, offset), word at % 4
IN u32 philox_1(i64 seed, i64 offset, i64 at) {
  u64 c = (u64)at >> 2; u32 x = (u32)c, y = (u32)(c >> 32), z = (u32)offset, w = (u32)((u64)offset >> 32), k0 = (u32)seed, k1 = (u32)((u64)seed >> 32);
  for (int r = 0; r < 10; r++) { u64 p = (u64)x * 0xD2511F53u, q = (u64)z * 0xCD9E8D57u; x = (u32)(q >> 32) ^ y ^ k0; z = (u32)(p >> 32) ^ w ^ k1; y = (u32)q; w = (u32)p; k0 += 0x9E3779B9u; k1 += 0xBB67AE85u; }
  return (at & 3) == 0 ? x : (at & 3) == 1 ? y : (at & 3) == 2 ? z : w;
}
IN i64 philox_(i64 seed, i64 offset, i64 at) { return philox_1(seed, offset, at); }
IN vl philox_(vl seed, vl offset, vl at) {
  vul a = bits<vul>(at), c = a >> 2, lo = c - c + 0xffffffffull; vul x = c & lo, y = c >> 32, z = bits<vul>(offset) & lo, w = bits<vul>(offset) >> 32, k0 = bits<vul>(seed) & lo, k1 = bits<vul>(seed) >> 32;
  for (int r = 0; r < 10; r++) { vul p = x * 0xD2511F53ull, q = z * 0xCD9E8D57ull; x = (q >> 32) ^ y ^ k0; z = (p >> 32) ^ w ^ k1; y = q & lo; w = p & lo; k0 = (k0 + 0x9E3779B9ull) & lo; k1 = (k1 + 0xBB67AE85ull) & lo; }
  vul k = a & 3; return bits<vl>(k == 0 ? x : k == 1 ? y : k == 2 ? z : w);
}
IN i64 floordiv(i64 a, i64 b) { i64 q = a / b; return q - (a % b < 0); } IN i64 mod(i64 a, i64 b) { i64 r = a % b; return r < 0 ? r + b : r; }  // index arithmetic, b > 0
IN i64 imin(i64 a, i64 b) { return a < b ? a : b; } IN i64 imax(i64 a, i64 b) { return a > b ? a : b; }
)__";

constexpr const char* kAvx512[] = {"avx512f", "avx512bw", "avx512dq", "avx512vl"};

bool has_avx512(const support::Target& target) {
  for (const char* feature : kAvx512)
    if (!target.has(feature)) return false;
  return true;
}

}  // namespace

std::string cpp_prelude(const support::Target& target) {
  return std::string(has_avx512(target) ? "#define AVX512 1\n" : "#define AVX512 0\n") + kPrelude;
}

std::vector<std::string> cpp_flags(const support::Target& target) {
  std::vector<std::string> flags{"-std=c++20",         "-O3",     "-ffp-contract=off", "-fno-math-errno",
                                 "-fno-trapping-math", "-fwrapv", "-Wno-psabi",        "-w"};
  for (const std::string& f : target.features) flags.push_back("-m" + f);
  return flags;
}

}  // namespace braze::codegen
