#include "braze/support/chaos.h"

#include <charconv>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "braze/support/hash.h"
#include "braze/support/options.h"

namespace braze::support {
namespace {

struct Setting {
  double probability = 0;
  std::uint64_t seed = 0;
};

Setting read_setting(std::string_view text) {
  Setting result;
  const std::size_t colon = text.find(':');
  const std::string_view probability = text.substr(0, colon);
  std::from_chars(probability.data(), probability.data() + probability.size(), result.probability);
  if (colon != std::string_view::npos) std::from_chars(text.data() + colon + 1, text.data() + text.size(), result.seed);
  return result;
}

std::uint64_t next_count(std::string_view point) {
  static std::mutex mutex;
  static std::map<std::string, std::uint64_t, std::less<>> counts;
  const std::scoped_lock lock(mutex);
  const auto found = counts.find(point);
  return found == counts.end() ? (counts.emplace(point, 1), 0) : found->second++;
}

}  // namespace

bool chaos_strikes(std::string_view point) {
  const std::string& text = options().chaos;
  if (text.empty()) return false;
  const Setting setting = read_setting(text);
  const std::uint64_t draw = mix(hash_bytes(point) ^ mix(setting.seed + next_count(point)));
  return static_cast<double>(draw >> 11) * 0x1p-53 < setting.probability;
}

}  // namespace braze::support
