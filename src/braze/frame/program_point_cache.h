// The compiled entries of one callable, by program point.
//
//   (code, unit, slots in use) -> entries, the one that hit last first. An entry: torch state, guards, executable,
//   recipe.
//
// Entries are shared while they run, so that a reset or a nested call may drop them. Everything is visible to the
// garbage collector; entries whose weakly held objects are gone are dropped when they are met.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "braze/capture/capture.h"
#include "braze/frame/step.h"
#include "braze/guard/guard.h"
#include "braze/runtime/executable.h"

namespace braze::frame {

struct Entry {
  guard::TorchState state;  ///< compared before the guards
  std::unique_ptr<guard::GuardSet> guards;
  std::unique_ptr<runtime::Executable> executable;  ///< null: the segment has no tensors
  std::unique_ptr<capture::Recipe> recipe;
  capture::End end;
  std::size_t primals = 0;    ///< the first of the fetched values are the executable's inputs
  std::size_t operators = 0;  ///< aten calls of eager, per run
  std::size_t compiled_operators = 0;
  std::uint64_t runs = 0;
};

/// What is known about one place in the code.
struct ProgramPoint {
  std::vector<std::shared_ptr<Entry>> entries;
  int failures = 0;      ///< captures refused or failed; at the limit the point is CPython's for good
  bool is_left = false;  ///< misses run in CPython without another capture

  /// The entry that served a call moves to the front.
  void move_to_front(std::size_t index) noexcept;
  void drop_dead() noexcept;
};

struct PointKey {
  PyCodeObject* code = nullptr;
  int pc = 0;
  int top = 0;
  bool operator==(const PointKey&) const = default;
};

class ProgramPointCache {
 public:
  /// Made on first use; holds the code object. Valid until clear().
  std::shared_ptr<ProgramPoint> at(const PointState& state);
  void clear() noexcept;
  int traverse(visitproc visit, void* arg) const;
  /// Calls f(const Entry&) for every entry, in the order of the points' first use.
  template <class F>
  void for_each_entry(F&& f) const {
    for (const auto& point : order_)
      for (const auto& entry : point->entries) f(*entry);
  }
  /// The same for the entry of each point that served last.
  template <class F>
  void for_each_last_served(F&& f) const {
    for (const auto& point : order_)
      if (!point->entries.empty()) f(*point->entries.front());
  }

 private:
  struct Hash {
    std::size_t operator()(const PointKey& key) const noexcept {
      return (reinterpret_cast<std::uintptr_t>(key.code) >> 4) * 31 + static_cast<std::size_t>(key.pc);
    }
  };
  struct Slot {
    Owned<PyCodeObject> code;
    std::shared_ptr<ProgramPoint> point;
  };
  std::unordered_map<PointKey, Slot, Hash> points_;
  std::vector<std::shared_ptr<ProgramPoint>> order_;
  PointKey last_key_;  ///< most callables are asked for one point only
  std::shared_ptr<ProgramPoint> last_;
};

}  // namespace braze::frame
