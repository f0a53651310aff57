// The hit path allocates nothing of its own; everything that is not a hit is in miss.cpp.
#include "braze/frame/run.h"

#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "braze/aten/operator_counter.h"
#include "braze/frame/callable.h"
#include "braze/frame/failure.h"
#include "braze/frame/miss.h"
#include "braze/py/py_error.h"
#include "braze/support/chaos.h"
#include "braze/support/check.h"
#include "braze/support/error.h"

namespace braze::frame {

namespace {

/// Room for what the guards fetch. hold() keeps the values alive while other threads may run.
class Fetched {
 public:
  explicit Fetched(std::size_t count) : count_(count) {
    if (count > inline_.size()) heap_.resize(count);
    data_ = count > inline_.size() ? heap_.data() : inline_.data();
  }
  ~Fetched() {
    if (is_held_) std::for_each_n(data_, count_, [](PyObject* p) { Py_XDECREF(p); });
  }
  Fetched(const Fetched&) = delete;
  Fetched& operator=(const Fetched&) = delete;

  PyObject** data() { return data_; }
  void hold() {
    std::for_each_n(data_, count_, [](PyObject* p) { Py_XINCREF(p); });
    is_held_ = true;
  }
  std::span<PyObject* const> values() const { return {data_, count_}; }

 private:
  std::array<PyObject*, 64> inline_;
  std::vector<PyObject*> heap_;
  PyObject** data_ = nullptr;
  std::size_t count_;
  bool is_held_ = false;
};

Step stepped(Entry& entry, Owned<> value, FrameChain chain) {
  Step step;
  if (const auto* returned = std::get_if<capture::Returned>(&entry.end)) {
    step.kind = Step::Kind::kReturned;
    step.return_pc = returned->pc;
    step.value = std::move(value);
    return step;
  }
  step.kind = Step::Kind::kChain;
  step.first = std::holds_alternative<capture::Stopped>(entry.end) ? First::kPerform : First::kLeave;
  step.chain = std::move(chain);
  return step;
}

void count_run(Callable& callable, Entry& entry) {
  ++entry.runs;
  callable.statistics.eager_operators += static_cast<double>(entry.operators);
  callable.statistics.compiled_operators += static_cast<double>(entry.compiled_operators);
}

/// Rebuilding and committing: the tensors are written already, so an error (no memory) is the frame's own.
Step finish(Callable& callable, Entry& entry, std::span<PyObject* const> fetched, std::span<const Owned<>> tensors) {
  try {
    FrameChain chain;
    Owned<> value = entry.recipe->finish(fetched, tensors, chain);
    count_run(callable, entry);
    return stepped(entry, std::move(value), std::move(chain));
  } catch (const py::PyError&) {
    return Step::of(Step::Kind::kRaised);
  }
}

}  // namespace

std::optional<Step> run_if_guarded(Callable& callable, Entry& entry, const PointState& point) {
  Fetched fetched(entry.guards->fetched());
  if (!entry.guards->check(point.slots, point.function.get(), fetched.data())) return std::nullopt;
  if (support::chaos_strikes("run")) return not_run(callable, Fallback::kChaos);
  fetched.hold();
  std::vector<Owned<>> tensors;
  try {
    const aten::OperatorCounter::Pause pause;
    if (entry.executable) tensors = entry.executable->run(fetched.values().first(entry.primals));
  } catch (const py::PyError&) {
    return run_failed(callable);
  }
  return finish(callable, entry, fetched.values(), tensors);
}

namespace {

std::optional<Step> serve(Callable& callable, ProgramPoint& point, const PointState& state,
                          const guard::TorchState& now) {
  for (std::size_t i = 0; i < point.entries.size(); ++i) {
    const std::shared_ptr<Entry> entry = point.entries[i];
    if (!(entry->state == now)) continue;
    if (auto step = run_if_guarded(callable, *entry, state)) {
      if (i < point.entries.size() && point.entries[i] == entry) point.move_to_front(i);
      return step;
    }
  }
  return std::nullopt;
}

}  // namespace

Step run_point(Callable& callable, const PointState& state, const guard::TorchState& now) noexcept {
  try {
    const std::shared_ptr<ProgramPoint> point = callable.cache.at(state);
    if (auto step = serve(callable, *point, state, now)) return *std::move(step);
    return run_miss(callable, *point, state, now);
  } catch (...) {
    return failed(callable, state, std::current_exception());
  }
}

Step CallDriver::advance(const PointState& point) noexcept {
  return run_point(callable_, point, guard::TorchState::current());
}

void CallDriver::ran_in_eager(std::int64_t operators) noexcept {
  callable_.statistics.eager_operators += static_cast<double>(operators);
}

}  // namespace braze::frame
