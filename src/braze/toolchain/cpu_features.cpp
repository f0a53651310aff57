#include "braze/toolchain/cpu_features.h"

namespace braze::toolchain {

namespace {

std::vector<std::string> detect() {
  std::vector<std::string> found;
#if defined(__x86_64__)
  __builtin_cpu_init();
#define BRAZE_FEATURE(name) \
  if (__builtin_cpu_supports(name)) found.emplace_back(name)
  BRAZE_FEATURE("sse4.2");
  BRAZE_FEATURE("popcnt");
  BRAZE_FEATURE("avx");
  BRAZE_FEATURE("avx2");
  BRAZE_FEATURE("fma");
  BRAZE_FEATURE("bmi");
  BRAZE_FEATURE("bmi2");
  BRAZE_FEATURE("f16c");
  BRAZE_FEATURE("avx512f");
  BRAZE_FEATURE("avx512cd");
  BRAZE_FEATURE("avx512bw");
  BRAZE_FEATURE("avx512dq");
  BRAZE_FEATURE("avx512vl");
  BRAZE_FEATURE("avx512bf16");
#undef BRAZE_FEATURE
#endif
  return found;
}

}  // namespace

const std::vector<std::string>& cpu_features() {
  static const std::vector<std::string> features = detect();
  return features;
}

}  // namespace braze::toolchain
