// Shape rules: the types of an operator's results, as eager PyTorch gives them: dtype, sizes and strides.
//
// They stand in for PyTorch's meta kernels, many of which are Python (0.1-1.3 ms a call), at a microsecond. A rule
// answers only where it is certain: for arguments at which eager raises, for layouts whose strides depend on a
// library's choice, for sizes that are not known to be equal, it says so and the caller asks PyTorch.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "braze/graph/graph.h"

namespace braze::graph {

/// Fills `out` with one type per result (a Tensor[] flattened; nullopt: an undefined result). `args` are complete and
/// in schema order; their ValueIds index g.values. `default_dtype` is torch.get_default_dtype(). False: ask PyTorch;
/// then `out` means nothing.
bool infer_types(const Graph& g, Op op, std::span<const Arg> args, DType default_dtype,
                 std::vector<std::optional<TensorType>>& out);

}  // namespace braze::graph
