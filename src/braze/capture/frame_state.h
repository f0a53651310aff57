// A program point's state as plain data: what CPython keeps in a frame, outermost frame first.
#pragma once

#include <vector>

#include "braze/py/ref.h"

namespace braze::capture {

using py::Borrowed;
using py::Owned;

/// `slots` are localsplus (locals, cells, free variables; NULL where unbound), then the operand stack.
/// `pc` is the code unit (2 bytes) of the next instruction; at an EXTENDED_ARG group or KW_NAMES it is the first unit.
struct FrameState {
  Owned<PyFunctionObject> function;
  Owned<PyCodeObject> code;
  int pc = 0;
  std::vector<Owned<>> slots;
  int call_pc = -1;  ///< of a frame with a callee frame above it: the CALL under way (its operands are already popped)
  Owned<> handled;   ///< the exception whose handler this frame is in (pushed by PUSH_EXC_INFO since the program
                     ///< point); the stack holds the one before it, as CPython's does
};

/// Frames [0] is the outermost. All but the last wait for the next one's return value, which is then pushed.
using FrameChain = std::vector<FrameState>;

}  // namespace braze::capture
