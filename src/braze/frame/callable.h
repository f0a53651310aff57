// One compiled callable: options, program points, statistics. And the list of all of them in the process.
//
// Guarded by the GIL. What runs without it (plan compiles of engine threads) has a lock of its own in PlanMaker.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "braze/frame/plan_maker.h"
#include "braze/frame/program_point_cache.h"
#include "braze/frame/run.h"
#include "braze/frame/statistics.h"

namespace braze::frame {

struct Callable {
  Callable(CompileOptions options, std::string name);
  ~Callable();
  Callable(const Callable&) = delete;
  Callable& operator=(const Callable&) = delete;

  CompileOptions options;
  std::string name;  ///< for messages
  ProgramPointCache cache;
  Statistics statistics;
  std::shared_ptr<PlanMaker> plan_maker;
  bool is_capturing = false;  ///< by some thread; whoever misses meanwhile runs in eager

  /// Drops entries and counters.
  void reset();
};

/// Sums over all callables of the process, dead ones included, since the last reset.
struct Totals {
  std::int64_t graphs = 0, compiles = 0, fallbacks = 0, internal_errors = 0;
  std::set<std::string> kernels;
};
Totals totals();
void reset_all();

}  // namespace braze::frame
