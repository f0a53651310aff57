// Evaluation of graphs on dense arrays: slow and obvious, the oracle of passes and of partitions.
#pragma once

#include <span>
#include <vector>

#include "braze/graph/graph.h"

namespace braze::graph {

/// Elements in row-major order, whatever the strides of the type say. Integers are exact up to 2^53. An array without a
/// shape's number of elements stands for an undefined tensor.
struct Array {
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> sizes;
  std::vector<double> data;
  bool operator==(const Array&) const = default;
};

/// The outputs for these inputs; f32 results are rounded to float after each node, other floating types are not.
/// Symbols take their values from the inputs' sizes. InternalError names an operator that is not known here.
std::vector<Array> interpret(const Graph& g, std::span<const Array> inputs);

}  // namespace braze::graph
