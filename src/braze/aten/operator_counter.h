// Counts the operators that run in eager while nobody compiled them: in frames left to CPython and at breaks.
#pragma once

#include <cstdint>

namespace braze::aten {

/// Counts this thread's dispatcher calls that make no further ones, until the end of the scope. Scopes may nest: the
/// outermost counts.
class OperatorCounter {
 public:
  OperatorCounter();
  ~OperatorCounter();
  OperatorCounter(const OperatorCounter&) = delete;
  OperatorCounter& operator=(const OperatorCounter&) = delete;
  /// Of the outermost scope; 0 in inner ones.
  std::int64_t count() const;

  /// A plan's own library calls are no eager operators.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
  };

 private:
  std::uint64_t handle_ = 0;
};

}  // namespace braze::aten
