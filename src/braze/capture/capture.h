// Interprets a frame on fakes from a program point until it returns, raises, or must stop, and describes the segment.
//
//   Capture c = capture(state, options);
//   // later calls: c.guards->check(...), executable->run(inputs), c.commit(...): effects, then the live values
//
// Nothing visible happens during a capture: old objects are not changed, native state is restored.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "braze/autograd/segment.h"
#include "braze/capture/frame_state.h"
#include "braze/guard/guard.h"

namespace braze::capture {

/// User code that is not captured: where, why, what to change.
struct Break {
  std::string reason;  ///< "call of print", "bool() of a tensor"
  std::string advice;  ///< "" or what to change
  std::string file;
  int line = 0;
  std::string function;
  bool raises = false;  ///< the instruction raises the user's exception: eager's error, not a graph break
};

struct Options {
  bool trace_only_forward = false;  ///< grad mode off at the point anyway
  bool chaos = false;
  bool wants_text = false;  ///< fill Capture::text
};

/// How the segment ends.
struct Returned {  ///< the outermost frame returns; the recipe yields one value
  int pc = -1;     ///< the RETURN instruction: a frame that is real already executes it itself
};
struct Stopped {
  Break reason;
};  ///< the recipe yields the chain's slots; the instruction at pc of the last
    ///< frame is not yet executed and will be performed for real
struct LeaveToPython {
  Break reason;
};  ///< as Stopped, but the frame cannot go on natively (unsupported opcode)
using End = std::variant<Returned, Stopped, LeaveToPython>;

/// Rebuilds live values and applies logged writes; primitive operations on exact builtin types with preallocated
/// values. Built by the capture (capture/outputs.h), opaque to others.
class Recipe {
 public:
  virtual ~Recipe() = default;
  /// fetched: the guards' fetched values. tensors: the executable's outputs. First rebuilds, then commits the effects
  /// (in program order), which runs no user code and cannot fail half-way. Returns the value, or fills `chain`.
  virtual Owned<> finish(std::span<PyObject* const> fetched, std::span<const Owned<>> tensors, FrameChain& chain) = 0;
  virtual std::string text() const = 0;
  virtual int traverse(visitproc visit, void* arg) = 0;
};

struct Capture {
  std::unique_ptr<guard::GuardSet>
      guards;  ///< fetched: first the tensors of segment.joint's primals, then the recipe's
  autograd::Segment segment;
  std::unique_ptr<Recipe> recipe;
  End end;
  std::size_t operators = 0;  ///< aten calls that eager would make in this segment
  std::vector<Break> notes;   ///< branches taken because of is_compiling, things met and not supported
  double trace_seconds = 0;   ///< in torch calls on fakes
  double joint_seconds = 0;   ///< in differentiating the trace and building the joint graph
  std::string text;           ///< capture text form (golden tests), filled if asked for
};

/// How it ended, guards, joint graph, recipe: for golden tests and explain.
std::string to_text(const Capture& capture);

/// A capture that could not even start or gave up: run this call in Python.
struct Refused {
  Break reason;
};

/// Throws InternalError for our own faults. A user's exception ends the capture before the instruction that raises
/// (Stopped): it is then performed for real and raises eager's error.
std::variant<Capture, Refused> capture(const FrameState& start, const Options& options);

}  // namespace braze::capture
