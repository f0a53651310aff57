// Turns a chain of frame states into CPython's own frames and goes on in them.
//
// Outermost first, each frame is made by CPython, gets its live slots, stands at its call and is linked, so that
// sys._getframe, warnings and tracebacks see what they see in eager. In the innermost frame the break's instruction is
// performed for real. Behind it the driver goes on natively in the same frame. CPython itself executes every RETURN and
// everything after an exception; the frame outside then goes on behind its call in the same way.
#pragma once

#include "braze/frame/step.h"

namespace braze::frame {

/// The value the outermost frame returns; NULL with the error indicator set if it raises.
/// With First::kRaise the exception is pending on entry.
Owned<> run_in_frames(FrameChain chain, First first, Driver& driver) noexcept;

/// CPython finishes all frames; native code does nothing more. `raised`: the innermost frame raises the pending error.
Owned<> finish_in_python(FrameChain chain, bool raised) noexcept;

}  // namespace braze::frame
