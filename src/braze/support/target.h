// What code is generated for.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace braze::support {

/// `features` are resolved names as the compiler spells them ("avx512f", ...), never "native".
struct Target {
  std::vector<std::string> features;
  int threads = 1;
  bool strict = false;  ///< bitwise equal to eager: no kernels that reorder sums or keep wider values
  bool checks = false;  ///< whoever runs the plan honours Plan::flag: data-dependent indices may become kernels

  bool has(std::string_view feature) const { return std::ranges::find(features, feature) != features.end(); }
};

}  // namespace braze::support
