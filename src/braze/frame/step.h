// What one look at a program point ends with, and where it was taken: the words run.h and materialise.h talk in.
#pragma once

#include <cstdint>

#include "braze/capture/capture.h"
#include "braze/capture/frame_state.h"
#include "braze/py/ref.h"

namespace braze::frame {

using capture::FrameChain;
using py::Borrowed;
using py::Owned;

/// A program point with live values, borrowed from arguments or from a real frame.
struct PointState {
  Borrowed<PyFunctionObject> function;
  Borrowed<PyCodeObject> code;
  PyObject* const* slots = nullptr;  ///< localsplus, then the operand stack
  int top = 0;                       ///< slots in use
  int pc = 0;
};

/// What happens first in the innermost frame of a chain.
enum class First : std::uint8_t {
  kPerform,  ///< its instruction is performed for real, then native code goes on behind it
  kLeave,    ///< CPython goes on with it, for good
  kRaise,    ///< it has raised: CPython unwinds it with the pending exception, for good
};

struct Step {
  enum class Kind : std::uint8_t {
    kReturned,  ///< the frame returns `value`; return_pc is its RETURN instruction
    kChain,     ///< effects are committed; `chain` goes on with `first`. chain[0] is the frame that was asked about
    kNotRun,    ///< nothing was done: CPython runs the frame from the point on
    kRaised,    ///< nothing was done and the error indicator is set: the frame raises at the point
  };
  Kind kind = Kind::kNotRun;
  First first = First::kPerform;
  int return_pc = -1;
  Owned<> value;
  FrameChain chain;

  static Step of(Kind kind) {
    Step step;
    step.kind = kind;
    return step;
  }
};

/// Who goes on in real frames between breaks.
class Driver {
 public:
  virtual ~Driver() = default;
  /// The frame is linked and stands at the point.
  virtual Step advance(const PointState& point) noexcept = 0;
  /// Operators that ran in eager in the driver's frames, at a break or after CPython took over.
  virtual void ran_in_eager(std::int64_t /*operators*/) noexcept {}
};

}  // namespace braze::frame
