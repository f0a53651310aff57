// PyTorch's schema texts as data.
//
//   "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braze/op/op.h"

namespace braze::op {

struct Schema {
  std::string name;                   ///< "aten::sum.dim_IntList"
  std::vector<Parameter> parameters;  ///< types without alias annotations: "Tensor(a!)" is "Tensor"
  std::vector<std::string> results;   ///< types, likewise
  bool returns_list = false;          ///< the single result is a Tensor[]
};

Schema parse_schema(std::string_view text);  ///< ParseError

}  // namespace braze::op
