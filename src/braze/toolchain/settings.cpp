#include "braze/toolchain/settings.h"

#include <cstdlib>

namespace braze::toolchain {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string user_cache_dir() {
  if (const std::string dir = variable("XDG_CACHE_HOME"); dir.starts_with('/')) return dir + "/braze";
  if (const std::string home = variable("HOME"); home.starts_with('/')) return home + "/.cache/braze";
  return "";
}

}  // namespace

Settings settings_from(const support::Options& options) {
  Settings s;
  s.time_limit = options.compile_timeout;
  s.parallel = static_cast<int>(options.compile_threads);
  if (options.cache_bytes > 0) s.cache_dir = options.cache_dir.empty() ? user_cache_dir() : options.cache_dir;
  s.cache_bytes = static_cast<std::uint64_t>(options.cache_bytes);
  if (!options.cxx.empty()) {
    s.compilers = {options.cxx};
    return s;
  }
  if (const std::string cxx = variable("CXX"); !cxx.empty()) s.compilers.push_back(cxx);
  for (const char* name : {"c++", "g++", "clang++"}) s.compilers.emplace_back(name);
  return s;
}

}  // namespace braze::toolchain
