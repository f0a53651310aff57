// What the options and the environment decide about compilers and the kernel cache.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braze/support/options.h"

namespace braze::toolchain {

struct Settings {
  std::vector<std::string> compilers;  ///< command lines in order of preference
  double time_limit = 60;              ///< seconds one compiler may take
  std::string cache_dir;               ///< "": none
  std::uint64_t cache_bytes = 512u << 20;
  int parallel = 0;  ///< compilers at a time; 0: as many as cores
};

/// Compilers: options.cxx, else $CXX, c++, g++, clang++. Cache: options.cache_dir, else braze in the user's cache
/// folder.
Settings settings_from(const support::Options& options);

}  // namespace braze::toolchain
