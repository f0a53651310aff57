// CPython's own frames: reading, resuming, linking, and having one made. All version differences are in compat/.
//
// Facts behind it (docs/decisions): a frame is resumed at a code unit; a frame that waits for a callee stands at its
// CALL; a frame entered with `raised` consults its exception table at the unit where it stands.
#pragma once

#include "braze/py/ref.h"

namespace braze::py {

using RawFrame = _PyInterpreterFrame;

Borrowed<PyCodeObject> code_of(RawFrame* frame) noexcept;
Borrowed<PyFunctionObject> function_of(RawFrame* frame) noexcept;

/// Unit of the next instruction.
int next_unit(RawFrame* frame) noexcept;
/// Unit `pc` is executed next.
void resume_at(RawFrame* frame, int pc) noexcept;
/// The instruction at `pc` is under way: line numbers and handlers as CPython has them meanwhile.
void stand_at(RawFrame* frame, int pc) noexcept;
/// The instruction at `pc` has raised; for an entry with raised == true.
void raise_at(RawFrame* frame, int pc) noexcept;

/// The running thread's current frame.
RawFrame*& current_frame(PyThreadState* thread) noexcept;
/// A tracing or profiling function is active on this thread: nothing may be interpreted, it would see no events.
bool is_traced(PyThreadState* thread) noexcept;
/// Units of the recursion limit left to Python frames.
int& recursion_left(PyThreadState* thread) noexcept;

/// CPython's evaluator. Where the caller of a frame evaluator does not clear the frame, this does.
Owned<> evaluate(PyThreadState* thread, RawFrame* frame, bool raised) noexcept;

/// Binding arguments may collect garbage on 3.11, and finalisers could call the very function; true if it was on.
bool pause_gc_for_binding() noexcept;

/// While alive the frame is the thread's current one: code called from here sees it as its caller.
/// Unlink before evaluate(): the evaluator links the frame itself.
class Linked {
 public:
  Linked(PyThreadState* thread, RawFrame* frame) noexcept;
  ~Linked();
  Linked(const Linked&) = delete;
  Linked& operator=(const Linked&) = delete;

 private:
  PyThreadState* thread_;
  RawFrame* saved_;
};

/// What happens with a frame that CPython has just made for a request.
class FrameBody {
 public:
  virtual ~FrameBody() = default;
  /// The frame's slots are empty. Must end in evaluate(thread, frame, ...). NULL with the indicator set if it raises.
  virtual Owned<> run(PyThreadState* thread, RawFrame* frame) noexcept = 0;
};

/// Has CPython make a genuine frame for the function (a call with dummy arguments, caught by an evaluator that is
/// installed for that instant and for this thread only) and runs `body` in it. A pending exception stays pending for
/// the body. NULL with the indicator set: the body raised, or no frame could be made (recursion limit, memory).
Owned<> run_in_frame(Borrowed<PyFunctionObject> function, FrameBody& body) noexcept;

/// True if no evaluator of ours is installed (tests).
bool is_evaluator_default() noexcept;

}  // namespace braze::py
