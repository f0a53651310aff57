// PyTorch's state of this thread that belongs to a capture: taken at its start, put back at its end.
#pragma once

#include <memory>

namespace braze::trace {

/// Grad and inference mode, dispatch keys, mode stacks, autocast with its cache switch and dtypes, default dtype,
/// determinism, matmul precision. The constructor reads, restore() writes. Autocast's cache of cast weights is emptied
/// on both: it must not carry a fake out of a trace, nor a real tensor into it.
class NativeState {
 public:
  NativeState();
  ~NativeState();
  void restore() const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace braze::trace
