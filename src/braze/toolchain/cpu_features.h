// What this CPU can do, as resolved names: part of every kernel's key, never "native".
#pragma once

#include <string>
#include <vector>

namespace braze::toolchain {

/// Names as in compile::Target::features and as g++ and clang++ spell them after -m; sorted as listed, CPU and OS
/// agree.
const std::vector<std::string>& cpu_features();

}  // namespace braze::toolchain
