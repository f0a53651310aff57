// Lists stay short: a place with the same reason is kept once.
#include "braze/frame/statistics.h"

#include <algorithm>

#include "braze/support/text.h"

namespace braze::frame {

namespace {

void add_once(std::vector<capture::Break>& list, const capture::Break& found) {
  const bool known = std::ranges::any_of(list, [&](const capture::Break& b) {
    return b.line == found.line && b.reason == found.reason && b.file == found.file && b.function == found.function;
  });
  if (!known) list.push_back(found);
}

constexpr std::array<const char*, kFallbacks> kNames = {
    "chaos",          "run failed",      "foreign mode", "not a plain Python function",       "contention",
    "left to Python", "recompile limit", "refused",      "guards changed during the capture", "internal error",
    "compile error"};

}  // namespace

const char* fallback_name(Fallback reason) noexcept { return kNames[static_cast<std::size_t>(reason)]; }

std::int64_t Statistics::fallback_count() const {
  std::int64_t sum = 0;
  for (const std::int64_t count : fallbacks) sum += count;
  return sum;
}

void Statistics::add_break(const capture::Break& found) { add_once(breaks, found); }
void Statistics::add_note(const capture::Break& found) { add_once(notes, found); }

std::string place_of(const capture::Break& found) {
  return support::format("{}:{} in {}", found.file, found.line, found.function);
}

}  // namespace braze::frame
