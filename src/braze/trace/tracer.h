// Records what torch operations do to fake tensors: forward through the dispatcher, backward through PyTorch's engine.
//
// One Tracer per capture attempt, on the capturing thread; several threads may have one each. While it is alive and not
// paused, a native TorchDispatchMode sits on this thread's mode stack: operations on fakes (storage-less tensors with
// the real device and dtype, wrapped by PyTorch's functionalization) become nodes; Python sees ordinary torch.Tensor
// and Parameter objects. A real tensor that reaches the mode without a fake poisons the trace. No fake is ever stored
// in an old object. This header is free of ATen.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braze/autograd/segment.h"
#include "braze/py/ref.h"

namespace braze::trace {

using py::Borrowed;
using py::Owned;

/// Why the capture cannot go on with this trace. The capture breaks at, or restarts before, the call under way.
struct Poison {
  std::string reason;  ///< in words, for explain
  Owned<> tensor;      ///< a real tensor that was met without a fake, if that was it: make it an input
};

class Tracer {
 public:
  Tracer();   ///< snapshots native state (grad mode, autocast, default dtype ...) and pushes the mode
  ~Tracer();  ///< pops the mode, restores the native state; also after an exception
  Tracer(const Tracer&) = delete;

  /// The fake that stands for a real tensor: made on first use, then the same object. It has the real's Python type if
  /// that is torch.Tensor, Parameter or Buffer, its geometry, requires_grad, and its own entry among the inputs.
  /// Null, with a Poison to take, for a tensor that no trace can hold (sparse, quantized, nested, a subclass ...).
  /// Inputs may share memory as long as none of them is written; otherwise a Poison.
  Owned<> fake_of(Borrowed<> real);
  bool is_fake(Borrowed<> tensor) const noexcept;
  Borrowed<> real_of(Borrowed<> fake) const noexcept;  ///< the input it stands for; null for a computed one

  /// A torch call is a transaction: mark before it, roll back if it throws. False: the call had recorded nodes, an
  /// older fake may have changed; the capture must restart and stop before that call.
  struct Mark {
    std::size_t nodes = 0;
  };
  Mark mark() const;
  bool roll_back(Mark mark);
  /// To be asked after every torch call, also after one that threw. The trace is void once there was one.
  std::optional<Poison> take_poison();

  void set_location(const char* file, int line);  ///< of the nodes to come
  std::size_t node_count() const;

  /// Ends the trace: runs the backward on symbolic tangents if an output requires grad, and builds the segment.
  /// `outputs` are fakes (inputs allowed), each once. primals() stay valid. Ask take_poison() before using the result.
  autograd::Segment finish(std::span<const Borrowed<>> outputs);
  std::span<const Owned<>> primals() const;  ///< the real tensors, in the order of joint.graph.inputs
  /// True for a primal that the program made itself (torch.tensor([1, 2])): it has no source and no guard; keep it with
  /// the entry and pass it on every call. The graph copies it before use.
  bool is_constant(std::size_t primal) const;

  /// Notes the strides of fakes before a call that may write them, and restores them after it: in-place operators keep
  /// strides. Where that cannot be said the trace is poisoned.
  class Layouts;

  /// While alive, this thread runs as if nothing were captured (mode popped, native state of the program kept).
  class Pause;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class Tracer::Layouts {
 public:
  Layouts(Tracer& tracer, std::span<const Owned<>> objects);  ///< those that are no fakes are passed over
  ~Layouts();
  Layouts(const Layouts&) = delete;
  void restore();

 private:
  struct Noted;
  Tracer& tracer_;
  std::vector<Noted> noted_;
};

class Tracer::Pause {
 public:
  explicit Pause(Tracer& tracer);
  ~Pause();
  Pause(const Pause&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// To be called on every tensor that a torch call gave: native code that asks for its memory then throws.
void seal(Borrowed<> tensor) noexcept;

/// True while a Tracer of this thread is recording.
bool is_tracing() noexcept;

}  // namespace braze::trace
