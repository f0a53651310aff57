// The one place that calls the compiler proper. The target is the machine this process runs on.
#include "braze/frame/plan_maker.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "braze/compile/compile.h"
#include "braze/support/log.h"
#include "braze/support/options.h"
#include "braze/toolchain/cpu_features.h"

namespace braze::frame {

namespace {

/// Does what the process's options say: BRAZE_DISABLE, BRAZE_DUMP, BRAZE_LOGS, BRAZE_STRICT.
class OptionsObserver final : public support::Observer {
 public:
  bool disabled(std::string_view name) const override { return support::list_has(options_.disable, name); }
  bool wants(std::string_view name) const override {
    return support::list_has(options_.dump, name) || support::list_has(options_.logs, name);
  }
  bool checks() const override { return options_.strict; }
  void changed(std::string_view name, const std::string&, const std::string& after) override {
    support::log(name, after);
  }

 private:
  const support::Options& options_ = support::options();
};

const compile::Target& target() {
  static const compile::Target instance{.features = toolchain::cpu_features(),
                                        .threads = static_cast<int>(std::thread::hardware_concurrency()),
                                        .strict = false,
                                        .checks = true};
  return instance;
}

}  // namespace

plan::Plan PlanMaker::compile(const graph::Graph& graph) {
  OptionsObserver observer;
  const auto start = std::chrono::steady_clock::now();
  plan::Plan plan = compile::compile(graph, target(), observer);
  record(observer, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return plan;
}

namespace {

void log_times(const support::Observer& observer, double seconds) {
  std::string text = support::format("compiled in {:.1f} ms:", seconds * 1e3);
  for (const auto& time : observer.times) text += support::format(" {} {:.2f}", time.name, time.seconds * 1e3);
  support::log("perf", text);
}

}  // namespace

void PlanMaker::record(const support::Observer& observer, double seconds) {
  if (support::logs("perf")) log_times(observer, seconds);
  const std::lock_guard lock(mutex_);
  for (const auto& time : observer.times) add(time.name, time.seconds);
  for (const auto& refusal : observer.refusals)
    if (std::ranges::find(refusals_, refusal) == refusals_.end()) refusals_.push_back(refusal);
}

void PlanMaker::add(std::string_view phase, double seconds) {
  const auto known = std::ranges::find(times_, phase, &support::Observer::Time::name);
  if (known == times_.end()) times_.push_back({std::string(phase), seconds});
  else known->seconds += seconds;
}

void PlanMaker::took(std::string_view phase, double seconds) {
  const std::lock_guard lock(mutex_);
  add(phase, seconds);
}

std::vector<support::Observer::Time> PlanMaker::times() const {
  const std::lock_guard lock(mutex_);
  return times_;
}
std::vector<std::string> PlanMaker::refusals() const {
  const std::lock_guard lock(mutex_);
  return refusals_;
}

}  // namespace braze::frame
