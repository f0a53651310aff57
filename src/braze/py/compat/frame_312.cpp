// Frames of CPython 3.12: as 3.11, but the evaluator clears and pops the frame and recursion has a counter of its own.
#include "braze/py/compat/version.h"
#if BRAZE_PYTHON_312
#include "braze/py/frame.h"

namespace braze::py {

Borrowed<PyCodeObject> code_of(RawFrame* frame) noexcept { return Borrowed<PyCodeObject>::of(frame->f_code); }
Borrowed<PyFunctionObject> function_of(RawFrame* frame) noexcept {
  return Borrowed<PyFunctionObject>::of(reinterpret_cast<PyFunctionObject*>(frame->f_funcobj));
}

int next_unit(RawFrame* frame) noexcept {
  return static_cast<int>(frame->prev_instr - _PyCode_CODE(frame->f_code)) + 1;
}
void resume_at(RawFrame* frame, int pc) noexcept { frame->prev_instr = _PyCode_CODE(frame->f_code) + pc - 1; }
void stand_at(RawFrame* frame, int pc) noexcept { frame->prev_instr = _PyCode_CODE(frame->f_code) + pc; }
void raise_at(RawFrame* frame, int pc) noexcept { stand_at(frame, pc); }

RawFrame*& current_frame(PyThreadState* thread) noexcept { return thread->cframe->current_frame; }
bool is_traced(PyThreadState* thread) noexcept {
  return thread->c_tracefunc != nullptr || thread->c_profilefunc != nullptr;
}
int& recursion_left(PyThreadState* thread) noexcept { return thread->py_recursion_remaining; }
bool pause_gc_for_binding() noexcept { return false; }

Linked::Linked(PyThreadState* thread, RawFrame* frame) noexcept : thread_(thread), saved_(current_frame(thread)) {
  frame->previous = saved_;
  current_frame(thread) = frame;
}

}  // namespace braze::py
#endif
