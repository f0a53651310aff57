// First fit between the live blocks.
#include "braze/plan/arena.h"

#include <algorithm>

namespace braze::plan {

std::int64_t Arena::place(std::int64_t bytes, std::size_t now, std::size_t last_use) {
  bytes = (std::max<std::int64_t>(bytes, 1) + 63) / 64 * 64;
  std::erase_if(live_, [&](const Block& b) { return b.last_use < now; });
  std::int64_t offset = 0;
  auto at = live_.begin();
  for (; at != live_.end() && at->offset - offset < bytes; ++at) offset = at->offset + at->bytes;
  live_.insert(at, {offset, bytes, last_use});
  size_ = std::max(size_, static_cast<std::size_t>(offset + bytes));
  return offset;
}

}  // namespace braze::plan
