// Nothing is committed before the guards have held once more after compiling: other threads ran meanwhile.
#include "braze/frame/miss.h"

#include <utility>
#include <variant>
#include <vector>

#include "braze/frame/callable.h"
#include "braze/frame/failure.h"
#include "braze/support/log.h"
#include "braze/support/text.h"

namespace braze::frame {

namespace {

constexpr int kFailureLimit = 3;

/// Marks the callable for the time of a capture; who finds the mark set runs in eager.
class Capturing {
 public:
  explicit Capturing(Callable& callable) : callable_(callable) { callable_.is_capturing = true; }
  ~Capturing() { callable_.is_capturing = false; }
  Capturing(const Capturing&) = delete;
  Capturing& operator=(const Capturing&) = delete;

 private:
  Callable& callable_;
};

capture::FrameState frame_state_of(const PointState& point) {
  capture::FrameState state;
  state.function = Owned<PyFunctionObject>::share(point.function);
  state.code = Owned<PyCodeObject>::share(point.code);
  state.pc = point.pc;
  state.slots.reserve(static_cast<std::size_t>(point.top));
  for (int i = 0; i < point.top; ++i) state.slots.push_back(Owned<>::share(point.slots[i]));
  return state;
}

const capture::Break* break_of(const capture::End& end) {
  if (const auto* stopped = std::get_if<capture::Stopped>(&end)) return &stopped->reason;
  if (const auto* left = std::get_if<capture::LeaveToPython>(&end)) return &left->reason;
  return nullptr;
}

std::string name_of(const PointState& state) {
  const char* name = PyUnicode_AsUTF8(state.code->co_qualname);
  if (name == nullptr) PyErr_Clear();
  return support::format("{} (unit {})", name != nullptr ? name : "?", state.pc);
}

/// The first entry is the one that served last: what it misses is what changed.
void note_recompile(Callable& callable, const ProgramPoint& point, const PointState& state,
                    const guard::TorchState& now) {
  if (point.entries.empty()) return;
  Entry& last = *point.entries.front();
  std::string reason =
      last.state == now ? last.guards->explain_failure(state.slots, state.function.get()) : now.difference(last.state);
  if (support::logs("recompiles")) support::log("recompiles", support::format("{}: {}", name_of(state), reason));
  callable.statistics.recompiles.push_back({name_of(state), std::move(reason)});
}

void warn_of_limit(const Callable& callable, const PointState& state) {
  const auto& all = callable.statistics.recompiles;
  support::warn_once(support::format(
      "{}: {} was compiled {} times (recompile_limit); from now on what does not match runs in Python. Last miss: {}",
      callable.name, name_of(state), callable.options.recompile_limit, all.empty() ? "?" : all.back().reason));
}

Step refuse(Callable& callable, ProgramPoint& point, const capture::Break& reason) {
  callable.statistics.add_break(reason);
  if (++point.failures >= kFailureLimit) point.is_left = true;
  if (callable.options.fullgraph) return refuse_break(callable, reason);
  if (support::logs("graph_breaks"))
    support::log("graph_breaks", support::format("not captured: {}: {}", place_of(reason), reason.reason));
  return not_run(callable, Fallback::kRefused);
}

void note_capture(Callable& callable, const capture::Capture& capture) {
  for (const capture::Break& note : capture.notes) callable.statistics.add_note(note);
  if (support::logs("graph") && !capture.text.empty()) support::log("graph", capture.text);
  const capture::Break* found = break_of(capture.end);
  if (found == nullptr || found->raises) return;
  callable.statistics.add_break(*found);
  if (support::logs("graph_breaks"))
    support::log("graph_breaks", support::format("{}: {}", place_of(*found), found->reason));
}

bool has_tensors(const autograd::Segment& segment) {
  return segment.joint.forward_nodes > 0 || !segment.outputs.empty() || !segment.mutations.empty();
}

std::shared_ptr<Entry> make_entry(Callable& callable, capture::Capture capture, const guard::TorchState& now) {
  auto entry = std::make_shared<Entry>();
  entry->state = now;
  entry->guards = std::move(capture.guards);
  entry->recipe = std::move(capture.recipe);
  entry->end = std::move(capture.end);
  entry->operators = capture.operators;
  entry->primals = capture.segment.joint.primals;
  if (!has_tensors(capture.segment)) return entry;
  if (capture.segment.joint.forward_nodes > 0) ++callable.statistics.graphs;
  entry->executable =
      runtime::make_executable(std::move(capture.segment), callable.options.backend, callable.plan_maker);
  entry->compiled_operators = entry->executable->compiled_ops();
  return entry;
}

std::variant<capture::Capture, capture::Refused> capture_point(Callable& callable, const PointState& state) {
  ++callable.statistics.compiles;
  auto& phases = callable.statistics.phases;
  auto result = [&] {
    const PhaseTimer timer(callable.statistics, "capture");
    return capture::capture(frame_state_of(state), {});
  }();
  if (const auto* capture = std::get_if<capture::Capture>(&result)) {
    phases["trace"] += capture->trace_seconds;
    phases["joint"] += capture->joint_seconds;
    phases["capture"] -= capture->trace_seconds + capture->joint_seconds;
  }
  return result;
}

/// At once after the capture: the guards note versions and addresses.
bool holds(guard::GuardSet& guards, const PointState& state) {
  std::vector<PyObject*> values(guards.fetched());
  return guards.check(state.slots, state.function.get(), values.data());
}

Step changed_meanwhile(Callable& callable, guard::GuardSet& guards, const PointState& state) {
  if (support::logs("guards"))
    support::log("guards", support::format("{}: does not hold right after the capture: {}", name_of(state),
                                           guards.explain_failure(state.slots, state.function.get())));
  return not_run(callable, Fallback::kGuardsChanged);
}

Step capture_and_run(Callable& callable, ProgramPoint& point, const PointState& state, const guard::TorchState& now) {
  const Capturing capturing(callable);
  auto result = capture_point(callable, state);
  if (const auto* refused = std::get_if<capture::Refused>(&result)) return refuse(callable, point, refused->reason);
  auto& capture = std::get<capture::Capture>(result);
  note_capture(callable, capture);
  const capture::Break* found = break_of(capture.end);
  if (callable.options.fullgraph && found != nullptr && !found->raises) return refuse_break(callable, *found);
  if (!holds(*capture.guards, state)) return changed_meanwhile(callable, *capture.guards, state);
  const std::shared_ptr<Entry> entry = make_entry(callable, std::move(capture), now);
  point.entries.insert(point.entries.begin(), entry);
  if (auto step = run_if_guarded(callable, *entry, state)) return *std::move(step);
  return changed_meanwhile(callable, *entry->guards, state);
}

}  // namespace

Step run_miss(Callable& callable, ProgramPoint& point, const PointState& state, const guard::TorchState& now) {
  if (now.has_foreign_modes()) return not_run(callable, Fallback::kForeignMode);
  if (callable.is_capturing) return not_run(callable, Fallback::kContention);
  if (point.is_left) return not_run(callable, Fallback::kLeft);
  point.drop_dead();
  note_recompile(callable, point, state, now);
  if (static_cast<int>(point.entries.size()) >= callable.options.recompile_limit) {
    point.is_left = true;
    warn_of_limit(callable, state);
    return not_run(callable, Fallback::kRecompileLimit);
  }
  try {
    return capture_and_run(callable, point, state, now);
  } catch (...) {
    if (++point.failures >= kFailureLimit) point.is_left = true;
    throw;
  }
}

}  // namespace braze::frame
