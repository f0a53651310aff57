// Addresses of loads and results, and how they depend on loop variables.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braze/loop/loop.h"
#include "braze/sym/simplify.h"

namespace braze::schedule {

using loop::LoopProgram;
using loop::TensorId;
using sym::SymExpr;

/// Position of an element in row-major order of the logical sizes: equal positions are equal elements, however viewed.
SymExpr linear_position(const op::TensorType& type, std::span<const SymExpr> indices);
/// The same of a load of the operator, simplified by the ranges of its loop variables.
SymExpr load_position(const LoopProgram& program, const loop::LoopOp& op, const loop::Scalar& load);
/// Offset in memory, in elements from the tensor's first one.
SymExpr address(const op::TensorType& type, std::span<const SymExpr> indices);

/// sum of coefficients[k] * names[k] + rest; rest holds none of the names.
struct Linear {
  std::vector<SymExpr> coefficients;
  SymExpr rest;
};
/// Nothing if a name occurs otherwise (inside a division, squared).
std::optional<Linear> linear_in(const SymExpr& e, std::span<const std::string> names);
bool mentions(const SymExpr& e, std::string_view name);

/// The loop variables of an operator in order: i0, i1, ..., r0, r1, ...
std::vector<std::string> variable_names(const loop::LoopOp& op);
std::vector<SymExpr> variable_extents(const loop::LoopOp& op);

/// Estimates with the symbols' hints.
std::int64_t estimate(const SymExpr& e, const LoopProgram& program);

/// Operators per element of a body: 1 for arithmetic, 8 for transcendentals, 40 for a random word.
int weight(const loop::Body& body);
int weight(loop::ScalarOp op);

}  // namespace braze::schedule
