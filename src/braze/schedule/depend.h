// Who makes and who reads each tensor, and which groups stand behind which.
#pragma once

#include <cstdint>
#include <vector>

#include "braze/schedule/schedule.h"

namespace braze::schedule {

struct Uses {
  std::vector<std::uint32_t> producer;                ///< op by tensor, kNone for inputs; views: of the base
  std::vector<std::vector<std::uint32_t>> consumers;  ///< ops by tensor, each once, in order; views: of the base
  std::vector<bool> needs_memory;                     ///< by tensor: outputs, bases of views, operands of externals
};
Uses find_uses(const LoopProgram& program);
TensorId base_of(const LoopProgram& program, TensorId t);
/// Tensors that an operator reads (bases), each once.
std::vector<TensorId> reads_of(const LoopProgram& program, const loop::LoopOp& op);

/// Transitive dependencies between groups while they grow.
class Reach {
 public:
  std::size_t add();  ///< a new group without dependencies
  bool has(std::size_t group, std::size_t on) const { return (bits_[group][on / 64] >> (on % 64)) & 1; }
  void depend(std::size_t group, std::size_t on);  ///< group, and all that stand on it, depend on `on`

 private:
  std::vector<std::vector<std::uint64_t>> bits_;
};

}  // namespace braze::schedule
