// Turns graphs into plans for the run time: compile::compile with this process's target, timed.
// Called with the GIL for forwards, and by threads of the autograd engine without it for backwards.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "braze/runtime/executable.h"
#include "braze/support/passes.h"

namespace braze::frame {

class PlanMaker final : public runtime::PlanCompiler {
 public:
  plan::Plan compile(const graph::Graph& graph) override;
  void took(std::string_view phase, double seconds) override;

  /// Seconds per phase and pass, summed over all compiles, in the order of first use.
  std::vector<support::Observer::Time> times() const;
  /// What was considered for fusion and not done, in words, each once.
  std::vector<std::string> refusals() const;

 private:
  void add(std::string_view phase, double seconds);
  void record(const support::Observer& observer, double seconds);

  mutable std::mutex mutex_;
  std::vector<support::Observer::Time> times_;
  std::vector<std::string> refusals_;
};

}  // namespace braze::frame
