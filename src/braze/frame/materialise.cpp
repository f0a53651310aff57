// One RealFrame per frame of the chain, nested through CPython: a frame runs its callees' frames from inside its body.
#include "braze/frame/materialise.h"

#include <algorithm>
#include <utility>

#include "braze/aten/operator_counter.h"
#include "braze/capture/perform.h"
#include "braze/py/code_object.h"
#include "braze/py/frame.h"
#include "braze/py/py_error.h"

namespace braze::frame {

namespace {

using capture::FrameState;
using capture::LiveFrame;
using capture::Performed;
using py::CodeInfo;
using py::RawFrame;

/// One unit of the recursion limit, held while native code works on a frame that CPython does not count yet.
class RecursionUnit {
 public:
  explicit RecursionUnit(PyThreadState* thread) : thread_(thread) { --py::recursion_left(thread); }
  ~RecursionUnit() { ++py::recursion_left(thread_); }
  RecursionUnit(const RecursionUnit&) = delete;
  RecursionUnit& operator=(const RecursionUnit&) = delete;
  bool is_exceeded() const { return py::recursion_left(thread_) < 0; }

 private:
  PyThreadState* thread_;
};

/// Tells the driver how many operators ran in eager.
class EagerScope {
 public:
  explicit EagerScope(Driver& driver) : driver_(driver) {}
  ~EagerScope() { driver_.ran_in_eager(counter_.count()); }
  EagerScope(const EagerScope&) = delete;
  EagerScope& operator=(const EagerScope&) = delete;

 private:
  Driver& driver_;
  aten::OperatorCounter counter_;
};

class RealFrame final : public py::FrameBody {
 public:
  RealFrame(FrameChain chain, First first, Driver& driver)
      : chain_(std::move(chain)), first_(first), driver_(driver), info_(CodeInfo::of(chain_.front().code.borrow())) {}

  Owned<> run(PyThreadState* thread, RawFrame* frame) noexcept override {
    thread_ = thread;
    raw_ = frame;
    live_ = {.function = py::function_of(frame), .code = py::code_of(frame), .slots = frame->localsplus};
    live_.top = live_.code->co_nlocalsplus;
    const Exit exit = work();
    raw_->stacktop = live_.top;
    if (exit == Exit::kRaise) {
      py::raise_at(raw_, info_.at(live_.pc).last);
    } else {
      py::resume_at(raw_, live_.pc);
    }
    if (exit == Exit::kReturn) return py::evaluate(thread, frame, false);
    const EagerScope scope(driver_);
    return py::evaluate(thread, frame, exit == Exit::kRaise);
  }

 private:
  /// kReturn: only the RETURN instruction is left. kResume, kRaise: CPython takes over at live_.pc.
  enum class Exit { kGoOn, kReturn, kResume, kRaise };

  Exit work() {
    const py::Linked linked(thread_, raw_);
    handled_at_entry_ = thread_->exc_info->exc_value;
    adopt(std::move(chain_));
    const RecursionUnit unit(thread_);
    if (unit.is_exceeded()) return refuse_depth();
    Exit exit = Exit::kGoOn;
    while (exit == Exit::kGoOn) exit = do_first();
    return exit;
  }

  /// What the state asks for, then the driver.
  Exit do_first() {
    if (!inner_.empty()) {
      if (!run_inner()) return Exit::kRaise;
    } else {
      if (first_ == First::kRaise) return Exit::kRaise;
      if (first_ == First::kLeave) return Exit::kResume;
      const Performed performed = perform();
      if (performed == Performed::kRaised) return Exit::kRaise;
      if (performed == Performed::kLeave) return Exit::kResume;
    }
    return advance();
  }

  Performed perform() {
    stand();
    const EagerScope scope(driver_);
    return capture::perform(live_);
  }

  bool run_inner() {
    stand();
    Owned<> value = run_in_frames(std::exchange(inner_, {}), first_, driver_);
    if (!value) return false;
    live_.slots[live_.top++] = value.release();
    live_.pc = info_.at(live_.pc).next;
    return true;
  }

  Exit advance() {
    if (PyErr_CheckSignals() < 0) return Exit::kRaise;
    // Inside a handler the thread's exception state belongs to the frame, and a tracing function wants its events.
    if (info_.at(live_.pc).opcode == py::Opcode::RETURN_VALUE) return Exit::kResume;
    if (py::is_traced(thread_) || thread_->exc_info->exc_value != handled_at_entry_) return Exit::kResume;
    stand();
    Step step = driver_.advance({live_.function, live_.code, live_.slots, live_.top, live_.pc});
    switch (step.kind) {
      case Step::Kind::kNotRun: return Exit::kResume;
      case Step::Kind::kRaised: return Exit::kRaise;
      case Step::Kind::kReturned: return prepare_return(std::move(step));
      case Step::Kind::kChain: break;
    }
    first_ = step.first;
    adopt(std::move(step.chain));
    return Exit::kGoOn;
  }

  /// CPython executes the RETURN instruction itself: it alone clears frames.
  Exit prepare_return(Step step) {
    if (step.return_pc < 0) step.return_pc = any_return();
    cut_stack(live_.code->co_nlocalsplus);
    live_.pc = step.return_pc;
    if (info_.at(live_.pc).opcode == py::Opcode::RETURN_VALUE) live_.slots[live_.top++] = step.value.release();
    return Exit::kReturn;
  }

  int any_return() const {
    const auto starts = info_.starts();
    return *std::ranges::find_if(starts, [this](int pc) { return info_.at(pc).opcode == py::Opcode::RETURN_VALUE; });
  }

  /// The first state becomes this frame's own, the others wait.
  void adopt(FrameChain chain) {
    FrameState own = std::move(chain.front());
    chain.erase(chain.begin());
    inner_ = std::move(chain);
    take_slots(own.slots);
    live_.pc = inner_.empty() ? own.pc : own.call_pc;
    if (own.handled) Py_XSETREF(thread_->exc_info->exc_value, own.handled.release());
    stand();
  }

  void take_slots(std::vector<Owned<>>& slots) {
    const int count = static_cast<int>(slots.size());
    cut_stack(std::min(count, live_.top));
    for (int i = 0; i < count; ++i) {
      PyObject* const old = i < live_.top ? live_.slots[i] : nullptr;
      live_.slots[i] = slots[static_cast<std::size_t>(i)].release();
      slots[static_cast<std::size_t>(i)] = Owned<>::steal(old);  // dropped with the state, when all slots are in place
    }
    live_.top = count;
  }

  void cut_stack(int top) {
    while (live_.top > top) Py_XDECREF(live_.slots[--live_.top]);
  }

  void stand() {
    raw_->stacktop = live_.top;
    py::stand_at(raw_, info_.at(live_.pc).last);
  }

  Exit refuse_depth() {
    PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
    return Exit::kRaise;
  }

  FrameChain chain_;  ///< as handed over; empty once adopted
  FrameChain inner_;  ///< callees that are not real yet
  First first_;
  Driver& driver_;
  const CodeInfo& info_;
  PyThreadState* thread_ = nullptr;
  RawFrame* raw_ = nullptr;
  LiveFrame live_;
  PyObject* handled_at_entry_ = nullptr;
};

/// Leaves every frame to CPython.
class LeaveAll final : public Driver {
 public:
  Step advance(const PointState&) noexcept override { return {}; }
};

}  // namespace

Owned<> run_in_frames(FrameChain chain, First first, Driver& driver) noexcept {
  try {
    const Owned<PyFunctionObject> function = chain.front().function;
    RealFrame body(std::move(chain), first, driver);
    return py::run_in_frame(function.borrow(), body);
  } catch (const py::PyError&) {  // no memory to decode the code object
    return {};
  }
}

Owned<> finish_in_python(FrameChain chain, bool raised) noexcept {
  LeaveAll driver;
  return run_in_frames(std::move(chain), raised ? First::kRaise : First::kLeave, driver);
}

}  // namespace braze::frame
