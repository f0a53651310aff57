// For tests of materialisation: interpret with the performer, stop at a chosen instruction, go on in real frames.
//
// _C.testing.register(f, offset, nth): f is interpreted when called through _C.testing.call or by an interpreted
// function; at the nth visit of the byte offset everything becomes CPython's frames. -1: never.
#include <pybind11/pybind11.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "braze/capture/perform.h"
#include "braze/frame/bind.h"
#include "braze/frame/materialise.h"
#include "braze/py/code_object.h"
#include "braze/py/frame.h"
#include "braze/py/py_error.h"

namespace braze::binding {

namespace {

namespace pb = pybind11;
using capture::FrameChain;
using capture::FrameState;
using capture::Performed;
using frame::First;
using frame::PointState;
using frame::Step;
using py::Borrowed;
using py::CodeInfo;
using py::Instruction;
using py::Opcode;
using py::Owned;

struct StopAt {
  int pc = -1;
  long nth = 1;
  long hits = 0;
};

struct Modes {
  bool go_on_natively = false;     ///< behind a stop or a returned callee the interpreter takes over again
  bool materialise_calls = false;  ///< every opaque call gets real frames, then native code goes on
};

struct Counts {
  long materialised = 0, performed = 0, returned = 0;
};

struct Session {
  std::unordered_map<PyCodeObject*, StopAt> stops;
  std::vector<Owned<>> held;
  Modes modes;
  Counts counts;
};

Session& session() {
  static auto* instance = new Session;
  return *instance;
}

StopAt* stop_of(PyCodeObject* code) {
  const auto found = session().stops.find(code);
  return found != session().stops.end() ? &found->second : nullptr;
}

/// An interpreted frame that CPython does not know.
struct VirtualFrame {
  FrameState state;
  std::vector<PyObject*> slots;
  int top = 0;

  explicit VirtualFrame(const PointState& point) : slots(capacity(point.code.get()), nullptr), top(point.top) {
    state.function = Owned<PyFunctionObject>::share(point.function);
    state.code = Owned<PyCodeObject>::share(point.code);
    state.pc = point.pc;
    for (int i = 0; i < top; ++i) slots[static_cast<std::size_t>(i)] = Py_XNewRef(point.slots[i]);
  }
  VirtualFrame(VirtualFrame&& other) noexcept
      : state(std::move(other.state)), slots(std::exchange(other.slots, {})), top(std::exchange(other.top, 0)) {}
  VirtualFrame& operator=(VirtualFrame&&) = delete;
  ~VirtualFrame() { cut(0); }

  static std::size_t capacity(PyCodeObject* code) {
    return static_cast<std::size_t>(code->co_nlocalsplus + code->co_stacksize + 1);
  }
  const Instruction& instruction() const { return CodeInfo::of(state.code.borrow()).at(state.pc); }
  PyObject* pop() { return slots[static_cast<std::size_t>(--top)]; }
  void push(PyObject* value) { slots[static_cast<std::size_t>(top++)] = value; }
  void cut(int to) {
    while (top > to) Py_XDECREF(pop());
  }
  FrameState take() {
    for (int i = 0; i < top; ++i) state.slots.push_back(Owned<>::steal(slots[static_cast<std::size_t>(i)]));
    top = 0;
    return std::move(state);
  }
};

/// Interprets a chain until the outermost frame returns, or it must become real.
class Interpreter {
 public:
  explicit Interpreter(const PointState& start, bool skip_stop) : skip_stop_(skip_stop) { frames_.emplace_back(start); }

  Step run() {
    for (;;)
      if (auto step = one()) return std::move(*step);
  }

 private:
  std::optional<Step> one() {
    VirtualFrame& f = frames_.back();
    const bool skip = std::exchange(skip_stop_, false);
    StopAt* const stop = stop_of(f.state.code.get());
    if (!skip && stop != nullptr && stop->pc == f.state.pc && ++stop->hits == stop->nth)
      return chain(session().modes.go_on_natively ? First::kPerform : First::kLeave);
    if (f.instruction().opcode == Opcode::RETURN_VALUE) return pop_frame();
    if (f.instruction().opcode == Opcode::CALL) {
      if (push_callee(f)) return std::nullopt;
      if (session().modes.materialise_calls) return chain(First::kPerform);
    }
    return perform(f);
  }

  std::optional<Step> perform(VirtualFrame& f) {
    capture::LiveFrame live{f.state.function.borrow(), f.state.code.borrow(), f.slots.data(), f.top, f.state.pc};
    ++session().counts.performed;
    const Performed performed = capture::perform(live);
    f.top = live.top;
    f.state.pc = live.pc;
    if (performed == Performed::kRaised) return chain(First::kRaise);
    if (performed == Performed::kLeave) return chain(First::kLeave);
    return std::nullopt;
  }

  std::optional<Step> pop_frame() {
    VirtualFrame& f = frames_.back();
    const int pc = f.state.pc;
    auto value = Owned<>::steal(f.pop());
    frames_.pop_back();
    if (!frames_.empty()) {
      frames_.back().push(value.release());
      frames_.back().state.pc = frames_.back().instruction().next;
      return std::nullopt;
    }
    ++session().counts.returned;
    Step step = Step::of(Step::Kind::kReturned);
    step.value = std::move(value);
    step.return_pc = pc;
    return step;
  }

  /// A call of a registered plain function becomes a frame. 3.11 and 3.12: [NULL, f, args] or [method, self, args].
  bool push_callee(VirtualFrame& f) {
    const Instruction call = f.instruction();
    if (call.kw_names >= 0) return false;
    PyObject** const base = f.slots.data() + f.top - call.oparg - 2;
    PyObject* target = base[0] != nullptr ? base[0] : base[1];
    PyObject* self = base[0] != nullptr ? base[1] : nullptr;
    if (self == nullptr && PyMethod_Check(target)) {
      self = PyMethod_GET_SELF(target);
      target = PyMethod_GET_FUNCTION(target);
    }
    if (!PyFunction_Check(target)) return false;
    const auto function = Borrowed<>::of(target).as<PyFunctionObject>();
    const auto code = Borrowed<>::of(function->func_code).as<PyCodeObject>();
    if (stop_of(code.get()) == nullptr || (code->co_flags & CO_GENERATOR) != 0) return false;
    const frame::BoundArguments bound(function, self, base + 2, static_cast<std::size_t>(call.oparg), nullptr);
    if (!bound.is_bound()) return false;
    VirtualFrame callee({function, code, bound.slots(), code->co_nlocalsplus, 0});
    f.cut(static_cast<int>(base - f.slots.data()));
    f.state.call_pc = f.state.pc;
    frames_.push_back(std::move(callee));
    return true;
  }

  Step chain(First first) {
    ++session().counts.materialised;
    Step step = Step::of(Step::Kind::kChain);
    step.first = first;
    for (VirtualFrame& f : frames_) step.chain.push_back(f.take());
    return step;
  }

  std::vector<VirtualFrame> frames_;
  bool skip_stop_;
};

class TestDriver final : public frame::Driver {
 public:
  Step advance(const PointState& point) noexcept override {
    const Modes& modes = session().modes;
    if (!modes.go_on_natively && !modes.materialise_calls) return {};
    return Interpreter(point, false).run();
  }
};

Owned<> call_interpreted(Borrowed<PyFunctionObject> function, const pb::args& args) {
  const frame::BoundArguments bound(function, nullptr, PySequence_Fast_ITEMS(args.ptr()), args.size(), nullptr);
  const auto code = Borrowed<>::of(function->func_code).as<PyCodeObject>();
  if (!bound.is_bound() || py::is_traced(PyThreadState_Get()))
    return Owned<>::steal(PyObject_CallObject(function.object(), args.ptr()));
  Step step = Interpreter({function, code, bound.slots(), code->co_nlocalsplus, 0}, false).run();
  if (step.kind == Step::Kind::kReturned) return std::move(step.value);
  TestDriver driver;
  return frame::run_in_frames(std::move(step.chain), step.first, driver);
}

pb::object call(const pb::object& function, const pb::args& args) {
  if (!PyFunction_Check(function.ptr())) throw pb::type_error("function expected");
  Owned<> result = call_interpreted(Borrowed<>::of(function.ptr()).as<PyFunctionObject>(), args);
  if (!result) throw pb::error_already_set();
  return pb::reinterpret_steal<pb::object>(result.release());
}

void stop_at(const pb::object& function, int offset, long nth) {
  auto code = Owned<>::share(PyFunction_GET_CODE(function.ptr()));
  session().stops[code.borrow().as<PyCodeObject>().get()] = {.pc = offset < 0 ? -1 : offset / 2, .nth = nth};
  session().held.push_back(std::move(code));
}

/// (byte offset, name, argument, byte offset behind, index of the keyword names or -1) per instruction.
pb::list decode(const pb::object& function) {
  const auto code = Borrowed<>::of(PyFunction_GET_CODE(function.ptr())).as<PyCodeObject>();
  const CodeInfo& info = CodeInfo::of(code);
  pb::list result;
  for (const int pc : info.starts()) {
    const Instruction& i = info.at(pc);
    result.append(pb::make_tuple(2 * pc, py::opcode_name(i.opcode), i.oparg, 2 * i.next, i.kw_names));
  }
  return result;
}

/// (start, end, target, depth, lasti) per handler, in bytes; end excluded.
pb::list handlers(const pb::object& function) {
  const auto code = Borrowed<>::of(PyFunction_GET_CODE(function.ptr())).as<PyCodeObject>();
  pb::list result;
  for (const auto& h : CodeInfo::of(code).handlers())
    result.append(pb::make_tuple(2 * h.start, 2 * h.end, 2 * h.target, h.depth, h.push_lasti));
  return result;
}

pb::dict take_counts() {
  const Counts counts = std::exchange(session().counts, {});
  pb::dict result;
  result["materialised"] = counts.materialised;
  result["performed"] = counts.performed;
  result["returned"] = counts.returned;
  return result;
}

}  // namespace

void register_testing(pb::module_& m) {
  auto testing = m.def_submodule("testing", "For the tests of Braze itself.");
  testing.def("register", stop_at, pb::arg("function"), pb::arg("offset") = -1, pb::arg("nth") = 1);
  testing.def("unregister_all", [] { session().stops.clear(); });
  testing.def("modes", [](bool go_on_natively, bool materialise_calls) {
    session().modes = {go_on_natively, materialise_calls};
  });
  testing.def("call", call);
  testing.def("counts", take_counts);
  testing.def("decode", decode);
  testing.def("handlers", handlers);
  testing.def("is_evaluator_default", py::is_evaluator_default);
}

}  // namespace braze::binding
