// Iteration spaces with scalar bodies: what tensor operators become before they are fused.
//
//   loops @f(%x: f32[s0, 1024], %w: f32[1024]) -> %1 {
//     %0: f32[s0, 1024] = map [i0 < s0, i1 < 1024] {
//       yield mul(load %x[i0, i1], load %w[i1]) }
//     %1: f32[s0] = reduce sum [i0 < s0 | r0 < 1024] {
//       yield load %0[i0, r0] } }
//
// A body is data: a DAG of scalar nodes in order, ending in one yield per result. Loads name a tensor and one logical
// index per dimension; indices are SymExpr over the op's own loop variables (i0.. for the space, r0.. for the reduced
// part), over size symbols, and over `@n`, the integer scalar node n of the same body (gathers). So reordering loops is
// substitution and dependencies are read off the loads. Views leave no trace here: lowering composes them into the load
// indices; a view tensor exists only where an external operator or an output needs one (Tensor::base).
//
// Half types: loads and yields convert; arithmetic is done in op::compute_type, which is the type of a load. A yield is
// cast to the result's dtype. A cast to a half type rounds and is the only half-typed scalar. `index` gives an i64.
// A loop variable of extent 1 never stands in an index: it is 0.
// Element e of a result with dims d0..dn is the value at loop variables i0=d0, ...; results of one op share its space.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braze/graph/graph.h"

namespace braze::loop {

using graph::DType;
using graph::SymExpr;
using graph::TensorType;

/// The same id type as graph values, so that an external's args are graph Args whose ValueIds are tensors here.
using TensorId = graph::ValueId;
using ScalarId = support::Id<struct ScalarTag>;

enum class ScalarOp : std::uint8_t {
  constant,  ///< Scalar::number (or ::integer for integral and b8 types)
  index,     ///< Scalar::indices[0] as an i64 value
  load,      ///< Scalar::tensor at Scalar::indices; with one operand: a b8 mask, the load gives 0 where it is false
#define SCALAR(id, ...) id,
#include "braze/op/scalar_ops.def"
#undef SCALAR
  kCount,
};

struct Scalar {
  ScalarOp op = ScalarOp::constant;
  DType type = DType::kFloat32;  ///< of the value; arithmetic nodes: never a half type
  std::vector<ScalarId> operands;
  double number = 0;
  std::int64_t integer = 0;
  TensorId tensor;
  std::vector<SymExpr> indices;
  bool operator==(const Scalar&) const = default;
};

struct Body {
  std::vector<Scalar> nodes;     ///< operands before uses
  std::vector<ScalarId> yields;  ///< one per result
  std::vector<ScalarId> checks;  ///< b8 conditions that must hold wherever the body runs (an index is in range, a
                                 ///< divisor is not 0); if one does not, the results are void and the segment
                                 ///< runs again in eager, which raises the user's error
  bool operator==(const Body&) const = default;
};

std::string_view to_text(ScalarOp op);  ///< as in scalar_ops.def: "add"
std::optional<ScalarOp> find_scalar_op(std::string_view text);
int arity(ScalarOp op);  ///< -1: none fixed (load)
enum class TypeRule : std::uint8_t { same, boolean, cast, floating, bits, special };
TypeRule type_rule(ScalarOp op);

/// Loop variables are named by position: i0, i1, ... for the space; r0, r1, ... for the reduced part.
SymExpr space_var(std::size_t position);
SymExpr reduced_var(std::size_t position);
SymExpr scalar_var(ScalarId id);  ///< `@n` in indices

enum class Kind : std::uint8_t {
  map,       ///< result[i...] = yield
  reduce,    ///< result[i...] = fold over r... of yield; accumulates in the yield's type (f32 for halves)
  scatter,   ///< result = copy of `init` (or zeros), then, in order of the space, result[targets] (+)= yield
  external,  ///< a library operator
};
enum class Fold : std::uint8_t { sum, prod, max, min, argmax, argmin, any, all };
std::string_view to_text(Kind kind);
std::string_view to_text(Fold fold);

struct LoopOp {
  Kind kind = Kind::map;
  std::vector<TensorId> results;
  std::vector<SymExpr> space;    ///< extents of i0, i1, ...
  std::vector<SymExpr> reduced;  ///< extents of r0, r1, ...; argmax/argmin give the row-major linear index in it
  Fold fold = Fold::sum;         ///< of a reduce
  Body body;
  // scatter
  TensorId init;                 ///< none: zeros
  std::vector<SymExpr> targets;  ///< logical indices of the result, over i... and @n
  bool accumulate = false;       ///< add, else overwrite (last in order wins)
  // external: a graph node whose ValueIds are TensorIds
  graph::Node node;
  graph::Location at;
  std::string origin;  ///< the aten operator(s) this came from, comma separated
  bool operator==(const LoopOp&) const = default;
};

struct Tensor {
  std::string name;
  TensorType type;  ///< strides: how it lies (or will lie) in memory
  TensorId base;    ///< none, or: a view of base's memory; then only externals and outputs name it
  SymExpr offset;   ///< of a view, in elements
  bool operator==(const Tensor&) const = default;
};

struct LoopProgram {
  std::string name;
  std::vector<graph::Symbol> symbols;
  std::vector<Tensor> tensors;
  std::vector<LoopOp> ops;  ///< in order: producers before consumers
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;  ///< may repeat, may be inputs or views, may be none
  std::vector<std::shared_ptr<void>> opaques;
  bool operator==(const LoopProgram&) const = default;
};

struct LowerOptions {
  bool checks = false;  ///< whoever runs the kernels honours Body::checks; without, what needs one stays external
};

/// Every operator becomes map/reduce/scatter, or one external; views become load indices. Never fails.
LoopProgram lower(const graph::Graph& g, const LowerOptions& options = {});

std::string to_text(const LoopProgram& p);
LoopProgram parse(std::string_view text);                   ///< parse(to_text(p)) == p; ParseError
void verify(const LoopProgram& p, std::string_view after);  ///< InternalError

}  // namespace braze::loop
