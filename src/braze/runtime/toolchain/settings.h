// What the environment decides about compilers and the kernel cache, read once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braze::runtime {

struct Settings {
  std::vector<std::string> compilers;  ///< command lines in order of preference: CXX, then the usual names
  double time_limit = 60;              ///< seconds one compiler may take: BRAZE_COMPILE_TIME_LIMIT
  std::string cache_dir;               ///< BRAZE_CACHE_DIR, else $XDG_CACHE_HOME/braze, else ~/.cache/braze; "": none
  std::uint64_t cache_bytes = 512u << 20;
};

Settings settings_from_environment();

}  // namespace braze::runtime
