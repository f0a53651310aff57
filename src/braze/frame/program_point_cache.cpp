// A hash map with a memory of the last point; the collector sees through it into every entry.
#include "braze/frame/program_point_cache.h"

#include <algorithm>
#include <utility>

namespace braze::frame {

void ProgramPoint::move_to_front(std::size_t index) noexcept {
  if (index != 0)
    std::rotate(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(index),
                entries.begin() + static_cast<std::ptrdiff_t>(index) + 1);
}

void ProgramPoint::drop_dead() noexcept {
  auto dead = std::ranges::stable_partition(entries, [](const auto& entry) { return !entry->guards->is_dead(); });
  // Destructors may run user code: it must find the list whole.
  std::vector<std::shared_ptr<Entry>> doomed(std::make_move_iterator(dead.begin()),
                                             std::make_move_iterator(dead.end()));
  entries.erase(dead.begin(), dead.end());
}

std::shared_ptr<ProgramPoint> ProgramPointCache::at(const PointState& state) {
  const PointKey key{state.code.get(), state.pc, state.top};
  if (last_ && key == last_key_) return last_;
  Slot& slot = points_[key];
  if (!slot.point) {
    slot.code = Owned<PyCodeObject>::share(state.code);
    slot.point = std::make_shared<ProgramPoint>();
    order_.push_back(slot.point);
  }
  last_key_ = key;
  last_ = slot.point;
  return last_;
}

void ProgramPointCache::clear() noexcept {
  const auto points = std::exchange(points_, {});
  const auto order = std::exchange(order_, {});
  last_key_ = {};
  last_.reset();
}

int ProgramPointCache::traverse(visitproc visit, void* arg) const {
  for (const auto& [key, slot] : points_) {
    Py_VISIT(slot.code.object());
    for (const auto& entry : slot.point->entries) {
      if (const int status = entry->guards->traverse(visit, arg); status != 0) return status;
      if (const int status = entry->recipe->traverse(visit, arg); status != 0) return status;
    }
  }
  return 0;
}

}  // namespace braze::frame
