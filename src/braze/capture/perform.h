// Executes one instruction for real, in place: between a break and the next capture, in a frame that CPython knows.
//
// The caller has linked the frame and set where it stands, so whatever the instruction runs sees eager's frames.
#pragma once

#include "braze/py/ref.h"

namespace braze::capture {

using py::Borrowed;

/// A live frame as the performer sees it. `slots` are localsplus, then the operand stack (owned references; NULL where
/// unbound); `top` of them are in use; there is room for co_nlocalsplus + co_stacksize.
struct LiveFrame {
  Borrowed<PyFunctionObject> function;
  Borrowed<PyCodeObject> code;
  PyObject** slots = nullptr;
  int top = 0;
  int pc = 0;  ///< the instruction to perform; afterwards the next one
};

enum class Performed {
  kDone,
  kRaised,  ///< the error indicator is set; pc still names the instruction, the stack holds only owned references
  kLeave,   ///< nothing was done: CPython must execute it (returns, yields, unbound names, unsupported opcodes)
};

Performed perform(LiveFrame& frame) noexcept;

}  // namespace braze::capture
