// What the trace must know of an operator, found once per operator from its schema, its tags and our op table.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <vector>

#include "braze/aten/argument.h"
#include "braze/op/op.h"

namespace braze::trace {

struct OperatorFacts {
  std::string name;  ///< "aten::mul.Tensor"
  op::Op op = op::Op::kOther;
  std::vector<aten::ArgKind> kinds;  ///< one per parameter
  std::string refusal;               ///< not empty: a trace cannot hold this operator, and why
  bool is_random = false;
  bool has_meta_kernel = false;
  bool is_foreach = false;  ///< recorded as one node per tensor
  bool returns_list = false;
  bool returns_tensors = false;  ///< nothing but tensors, or one list of them
  int dropout = -1;              ///< parameter that makes a random operator deterministic when 0
};

/// The reference stays valid; one cache per thread.
const OperatorFacts& facts_of(const c10::OperatorHandle& op);

}  // namespace braze::trace
