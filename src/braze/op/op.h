// Operators: rows of aten_ops.def (families under op/aten/*.def), and those that PyTorch has and we have no row for.
//
// A Target names an operator: a known row, or kOther with its qualified name ("aten::histc", "transformers::foo").
// Coverage is a matter of speed: an operator without a row runs as one library call.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braze::op {

enum class Op : std::uint16_t {
  kOther,
#define ATEN(id, schema, effect, shape, lowering, decomposition) id,
#include "braze/op/aten_ops.def"
#undef ATEN
  kCount,
};

enum class Effect : std::uint8_t {
  pure,    ///< value depends on arguments alone; may be dropped, merged, recomputed
  view,    ///< result shares the first operand's storage; pure otherwise
  random,  ///< draws from the default generator: kept in order, never merged, never recomputed
  effect,  ///< anything else that must be kept in order
};

/// One parameter of a schema, in schema order.
struct Parameter {
  std::string name;
  std::string type;  ///< as printed in the schema, without default: "int[1]?", "Tensor", "Scalar"
  bool keyword_only = false;
  std::string default_text;  ///< "" if there is none
  bool has_default = false;
};

struct OpInfo {
  std::string_view id;      ///< "mul_Tensor"
  std::string_view name;    ///< "aten::mul.Tensor": qualified name with overload
  std::string_view schema;  ///< verbatim as PyTorch prints it
  Effect effect;
  std::string_view shape;          ///< name of the shape rule in graph/shape_rules, or "meta" (PyTorch's meta kernel)
  std::string_view lowering;       ///< name of the lowering rule in loop/lower, "library_call" or "none"
  std::string_view decomposition;  ///< name of the graph decomposition, or "none"
};

const OpInfo& info(Op op);
Op find_op(std::string_view qualified_name);   ///< kOther if there is no row
std::span<const Parameter> parameters(Op op);  ///< parsed once from the schema
int result_count(Op op);                       ///< a Tensor[] counts as one
bool returns_list(Op op);                      ///< the single result is a Tensor[]

}  // namespace braze::op
