#include "braze/runtime/toolchain/settings.h"

#include <cstdlib>

namespace braze::runtime {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string default_cache_dir() {
  if (const std::string dir = variable("BRAZE_CACHE_DIR"); !dir.empty()) return dir;
  if (const std::string dir = variable("XDG_CACHE_HOME"); dir.starts_with('/')) return dir + "/braze";
  if (const std::string home = variable("HOME"); home.starts_with('/')) return home + "/.cache/braze";
  return "";
}

}  // namespace

Settings settings_from_environment() {
  Settings s;
  if (const std::string cxx = variable("CXX"); !cxx.empty()) s.compilers.push_back(cxx);
  for (const char* name : {"c++", "g++", "clang++"}) s.compilers.emplace_back(name);
  if (const double limit = std::atof(variable("BRAZE_COMPILE_TIME_LIMIT").c_str()); limit > 0) s.time_limit = limit;
  s.cache_dir = default_cache_dir();
  return s;
}

}  // namespace braze::runtime
