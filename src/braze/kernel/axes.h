// The axes of a kernel: which one is walked in vector lanes, which ones merge into one.
#pragma once

#include "braze/kernel/values.h"

namespace braze::kernel {

/// A memory access of the kernel: an element offset over the axes.
struct Access {
  SymExpr index;
  int weight = 1;  ///< stores count double
};

struct Layout {
  std::vector<schedule::Axis> axes;                      ///< merged: outer ones first
  int vector = -1;                                       ///< of axes; -1: none
  std::vector<std::pair<std::string, SymExpr>> renames;  ///< of the group's axes, to be applied to all indices
};

/// `indices`: further expressions over the axes that must stay as they are (values of `index`, linear positions).
Layout lay_out(const schedule::Group& group, const std::vector<Access>& accesses, const std::vector<SymExpr>& indices);

}  // namespace braze::kernel
