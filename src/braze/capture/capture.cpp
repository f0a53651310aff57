// One attempt after the other until nothing new is learnt: run, describe the live values, finish the trace.
#include "braze/capture/capture.h"

#include <algorithm>
#include <chrono>

#include "braze/capture/interpreter.h"
#include "braze/capture/outputs.h"
#include "braze/support/check.h"
#include "braze/support/text.h"

namespace braze::capture {

namespace {

constexpr int kMostAttempts = 60;

struct Restart {};
using Outcome = std::variant<Capture, Refused, Restart>;

Break reason_of(std::string text) { return Break{std::move(text), "", "", 0, ""}; }

Frame start_frame(World& world, const FrameState& start) {
  const bool is_start = start.pc == 0;
  Frame frame;
  frame.function = start.function;
  frame.code = start.code;
  frame.info = &py::CodeInfo::of(start.code.borrow());
  frame.pc = frame.current = start.pc;
  Owned<> function = Owned<>(start.function);
  SourceId source = world.sources.add(guard::SourceKind::kFunction, SourceId());
  world.adopt(source, function.borrow());
  for (std::size_t i = 0; i < start.slots.size(); ++i) {
    const Owned<>& object = start.slots[i];
    if (!object && is_start) {
      frame.slots.emplace_back();
      continue;
    }
    SourceId slot = world.sources.add(guard::SourceKind::kSlot, SourceId(), static_cast<std::uint32_t>(i));
    if (!object) world.guards.require(GuardKind::kNullSlot, slot);
    frame.slots.push_back(object ? Value{object, slot} : Value{});
  }
  return frame;
}

/// True if two elements of the tensor may be the same memory: a write-back of the whole would undo a write.
bool overlaps_itself(Borrowed<> tensor) {
  Owned<> sizes = attribute(tensor, "shape"), strides = take(PyObject_CallMethod(tensor.get(), "stride", nullptr));
  std::vector<std::pair<long long, long long>> dims;  // stride, size
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sizes.get()); ++i) {
    const long long size = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes.get(), i));
    if (size == 0) return false;
    if (size > 1) dims.emplace_back(PyLong_AsLongLong(PyTuple_GET_ITEM(strides.get(), i)), size);
  }
  std::sort(dims.begin(), dims.end());
  long long reach = 0;  // of the dimensions so far
  for (auto [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

/// True if the code that is performed next may walk the frames.
bool looks_at_frames(const Break& reason) {
  for (const char* name : {"_getframe", "warn", "currentframe", "stack()", "extract_stack", "findCaller"})
    if (reason.reason.find(name) != std::string::npos) return true;
  return false;
}

/// Everything between two restarts.
class Attempt {
 public:
  Attempt(const FrameState& start, const Options& options, Facts& facts)
      : options_(options),
        facts_(facts),
        world_(start.pc == 0),
        interpreter_(world_, facts),
        before_(NativeState::current()),
        slots_(start.slots.size()) {
    for (const Owned<>& tensor : facts.inputs) world_.wrap(world_.held(tensor.borrow()), tensor.borrow());
    start_ = start_frame(world_, start);
  }

  Outcome run();

 private:
  std::optional<Outcome> settle();
  Outcome restart_at(std::size_t ordinal, Break reason);
  Outcome finish(OutputBuilder& outputs);

  const Options& options_;
  Facts& facts_;
  World world_;
  Interpreter interpreter_;
  NativeState before_;
  std::size_t slots_;
  Frame start_;
  End end_;
};

Outcome Attempt::restart_at(std::size_t ordinal, Break reason) {
  if (ordinal == 0 || (facts_.stop_at && ordinal >= *facts_.stop_at)) return Refused{std::move(reason)};
  facts_.stop_at = ordinal;
  facts_.reason = std::move(reason);
  return Restart{};
}

/// After a stop: the end of the segment, or why there is none.
std::optional<Outcome> Attempt::settle() {
  if (interpreter_.internal_error) std::rethrow_exception(interpreter_.internal_error);
  if (!world_.pending) throw py::PyError();
  PyErr_Clear();
  Pending pending = std::move(*world_.pending);
  world_.pending.reset();
  switch (pending.kind) {
    case Pending::Kind::kRefuse: return Refused{interpreter_.place(std::move(pending.reason))};
    case Pending::Kind::kInput: facts_.inputs.push_back(std::move(pending.tensor)); return Restart{};
    case Pending::Kind::kRestart: return restart_at(pending.at, std::move(pending.reason));
    case Pending::Kind::kStop: break;
  }
  if (interpreter_.handled()) return restart_at(interpreter_.raise_ordinal(), std::move(pending.reason));
  end_ = Stopped{std::move(pending.reason)};
  return std::nullopt;
}

Outcome Attempt::run() {
  OutputBuilder outputs(interpreter_);
  Owned<> result;
  try {
    result = interpreter_.run(std::move(start_));
    end_ = Returned{interpreter_.frames().back().current};
  } catch (const py::PyError&) {
    if (auto outcome = settle()) return std::move(*outcome);
  }
  if (result) outputs.returns(result.borrow());
  else outputs.stops(looks_at_frames(std::get<Stopped>(end_).reason));
  outputs.effects();
  outputs.native_state(before_, NativeState::current());
  if (outputs.failure())
    return restart_at(outputs.failure()->birth, interpreter_.place(reason_of(outputs.failure()->reason)));
  return finish(outputs);
}

Outcome Attempt::finish(OutputBuilder& outputs) {
  Capture capture;
  capture.operators = world_.tracer.node_count();
  std::vector<Borrowed<>> tensors;
  for (const Owned<>& tensor : outputs.tensors()) tensors.push_back(tensor.borrow());
  const auto start = std::chrono::steady_clock::now();
  capture.segment = world_.tracer.finish(tensors);
  capture.joint_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  capture.trace_seconds = world_.trace_seconds;
  if (auto poison = world_.tracer.take_poison()) {
    if (!poison->tensor) return Refused{reason_of(poison->reason)};
    facts_.inputs.push_back(poison->tensor);
    return Restart{};
  }
  std::vector<SourceId> fetched;
  for (const Owned<>& primal : world_.tracer.primals()) {
    if (world_.tracer.is_constant(fetched.size())) {
      fetched.push_back(world_.held(primal.borrow()));
      continue;
    }
    Record* record = world_.record_of_real(primal.borrow());
    BRAZE_CHECK(record != nullptr, "input {} of the trace has no source", fetched.size());
    fetched.push_back(record->source);
  }
  for (const autograd::Mutation& written : capture.segment.mutations) {
    Borrowed<> real = world_.tracer.primals()[written.primal].borrow();
    if (overlaps_itself(real)) return Refused{reason_of("an input is written whose elements share memory")};
    Record* record = world_.record_of_real(real);
    if (record != nullptr)
      world_.guards.require(guard::GuardKind::kTensor, record->source, record->real.borrow(), guard::kTensorIsView);
  }
  capture.recipe = outputs.build(fetched.size());
  fetched.insert(fetched.end(), outputs.fetched().begin(), outputs.fetched().end());
  capture.guards = world_.guards.build(fetched, slots_);
  capture.end = std::move(end_);
  capture.notes = std::move(interpreter_.notes);
  if (options_.wants_text) capture.text = to_text(capture);
  return capture;
}

std::string in_words(const End& end) {
  if (std::holds_alternative<Returned>(end)) return "returned\n";
  const auto* stopped = std::get_if<Stopped>(&end);
  const Break& reason = stopped ? stopped->reason : std::get<LeaveToPython>(end).reason;
  return support::format("stopped in {}: {}\n", reason.function, reason.reason);
}

}  // namespace

std::string to_text(const Capture& capture) {
  std::string text = in_words(capture.end);
  for (const std::string& guard : capture.guards->texts()) text += "guard " + guard + "\n";
  return text + graph::to_text(capture.segment.joint.graph) + capture.recipe->text();
}

std::variant<Capture, Refused> capture(const FrameState& start, const Options& options) {
  Facts facts;
  for (int i = 0; i < kMostAttempts; ++i) {
    Outcome outcome = Attempt(start, options, facts).run();
    if (auto* done = std::get_if<Capture>(&outcome)) return std::move(*done);
    if (auto* refused = std::get_if<Refused>(&outcome)) return std::move(*refused);
  }
  return Refused{reason_of("the capture was restarted too often")};
}

}  // namespace braze::capture
