// Gives a group its kernel: picks the vector axis, merges axes, lays out passes over rows, slots and folds.
#pragma once

#include "braze/kernel/kernel.h"
#include "braze/schedule/schedule.h"

namespace braze::kernel {

using loop::TensorId;

/// What the host passes for a kernel's buffer.
struct Argument {
  enum class Kind : std::uint8_t { tensor, workspace };
  Kind kind = Kind::tensor;
  TensorId tensor = TensorId();
  std::size_t workspace = 0;
};

/// Partial results of slots; one memory block each.
struct Workspace {
  SymExpr elements;
  DType type = DType::kFloat32;
};

/// A kernel and how the host calls it.
struct Tiled {
  Kernel kernel;
  std::vector<Argument> arguments;  ///< one per buffer that is neither local nor the flag
  std::vector<SymExpr> integers;    ///< one per integer argument
  SymExpr extent = 1;               ///< of the grid
  SymExpr grain = 1;
  bool slots = false;
  bool checks = false;
  SymExpr fold_extent;  ///< 0: no second launch
  SymExpr fold_grain = 1;
  std::vector<Workspace> workspaces;
  std::string origins;
};

Tiled tile(const schedule::Schedule& s, const schedule::Group& group, const support::Target& target);

}  // namespace braze::kernel
