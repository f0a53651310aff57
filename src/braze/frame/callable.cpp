// The process-wide list exists for stats() and reset(): callables enter and leave it, the dead leave their sums.
#include "braze/frame/callable.h"

#include <utility>
#include <vector>

namespace braze::frame {

namespace {

struct Registry {
  std::set<Callable*> living;
  Totals dead;
};

Registry& registry() {
  static auto* instance = new Registry;  // callables may die after static destruction
  return *instance;
}

void add(Totals& sums, const Callable& callable) {
  sums.graphs += callable.statistics.graphs;
  sums.compiles += callable.statistics.compiles;
  sums.fallbacks += callable.statistics.fallback_count();
  sums.internal_errors += callable.statistics.internal_errors;
  callable.cache.for_each_entry([&](const Entry& entry) {
    if (!entry.executable) return;
    for (const auto& kernel : entry.executable->kernels()) sums.kernels.insert(kernel.name);
  });
}

}  // namespace

Callable::Callable(CompileOptions options_, std::string name_)
    : options(options_), name(std::move(name_)), plan_maker(std::make_shared<PlanMaker>()) {
  registry().living.insert(this);
}

Callable::~Callable() {
  registry().living.erase(this);
  add(registry().dead, *this);
}

void Callable::reset() {
  cache.clear();
  statistics = {};
  plan_maker = std::make_shared<PlanMaker>();
}

Totals totals() {
  Totals sums = registry().dead;
  for (const Callable* callable : registry().living) add(sums, *callable);
  return sums;
}

void reset_all() {
  registry().dead = {};
  const std::vector<Callable*> living(registry().living.begin(), registry().living.end());
  for (Callable* callable : living)
    if (registry().living.contains(callable)) callable->reset();
}

}  // namespace braze::frame
