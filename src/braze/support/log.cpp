#include "braze/support/log.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "braze/support/options.h"
#include "braze/support/text.h"

namespace braze::support {

bool logs(std::string_view topic) {
  const std::string& topics = options().logs;
  return !topics.empty() && list_has(topics, topic);
}

void log(std::string_view topic, std::string_view text) {
  const std::string line = format("[braze {}] {}\n", topic, text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void warn_once(std::string_view text) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> printed;
  const std::scoped_lock lock(mutex);
  if (printed.emplace(text).second) log("warning", text);
}

}  // namespace braze::support
