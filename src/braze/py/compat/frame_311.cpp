// Frames of CPython 3.11: prev_instr is the unit before the next one; the evaluator's caller clears the frame.
#include "braze/py/compat/version.h"
#if BRAZE_PYTHON_311
#include "braze/py/frame.h"

namespace braze::py {

Borrowed<PyCodeObject> code_of(RawFrame* frame) noexcept { return Borrowed<PyCodeObject>::of(frame->f_code); }
Borrowed<PyFunctionObject> function_of(RawFrame* frame) noexcept {
  return Borrowed<PyFunctionObject>::of(frame->f_func);
}

int next_unit(RawFrame* frame) noexcept {
  return static_cast<int>(frame->prev_instr - _PyCode_CODE(frame->f_code)) + 1;
}
void resume_at(RawFrame* frame, int pc) noexcept { frame->prev_instr = _PyCode_CODE(frame->f_code) + pc - 1; }
void stand_at(RawFrame* frame, int pc) noexcept { frame->prev_instr = _PyCode_CODE(frame->f_code) + pc; }
void raise_at(RawFrame* frame, int pc) noexcept { stand_at(frame, pc); }

RawFrame*& current_frame(PyThreadState* thread) noexcept { return thread->cframe->current_frame; }
bool is_traced(PyThreadState* thread) noexcept { return thread->cframe->use_tracing != 0; }
int& recursion_left(PyThreadState* thread) noexcept { return thread->recursion_remaining; }
bool pause_gc_for_binding() noexcept { return PyGC_Disable() != 0; }

Linked::Linked(PyThreadState* thread, RawFrame* frame) noexcept : thread_(thread), saved_(current_frame(thread)) {
  frame->previous = saved_;
  frame->is_entry = true;
  current_frame(thread) = frame;
}

}  // namespace braze::py
#endif
