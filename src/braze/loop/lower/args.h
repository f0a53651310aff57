// Arguments of a node by position, in the form a rule wants; InternalError if the node has another form.
#pragma once

#include <optional>

#include "braze/graph/graph.h"
#include "braze/support/check.h"

namespace braze::loop {

template <class T>
const T& arg(const graph::Node& node, std::size_t position) {
  BRAZE_CHECK(position < node.args.size(), "{} has no argument {}", node.name, position);
  const T* value = std::get_if<T>(&node.args[position]);
  BRAZE_CHECK(value, "{}: argument {} has an unexpected form", node.name, position);
  return *value;
}

inline bool is_none(const graph::Node& node, std::size_t position) {
  BRAZE_CHECK(position < node.args.size(), "{} has no argument {}", node.name, position);
  const graph::Arg& a = node.args[position];
  const auto* v = std::get_if<graph::ValueId>(&a);
  return std::holds_alternative<graph::None>(a) || (v && v->is_none());
}

/// An operand, or a none id for None.
inline graph::ValueId value_arg(const graph::Node& node, std::size_t position) {
  return is_none(node, position) ? graph::ValueId() : arg<graph::ValueId>(node, position);
}
inline bool is_value(const graph::Node& node, std::size_t position) {
  return !is_none(node, position) && std::holds_alternative<graph::ValueId>(node.args[position]);
}

inline const sym::SymExpr& int_arg(const graph::Node& node, std::size_t position) {
  return arg<sym::SymExpr>(node, position);
}
/// A plain int of the schema.
inline std::int64_t constant_arg(const graph::Node& node, std::size_t position) {
  return int_arg(node, position).constant();
}
inline bool bool_arg(const graph::Node& node, std::size_t position) { return arg<bool>(node, position); }

/// A dimension, counted from the front; 0 for a 0-dim tensor.
inline std::size_t wrap_dim(std::int64_t dim, std::size_t rank) {
  const auto n = static_cast<std::int64_t>(rank == 0 ? 1 : rank);
  BRAZE_CHECK(dim >= -n && dim < n, "dimension {} of {}", dim, rank);
  return static_cast<std::size_t>(dim < 0 ? dim + n : dim);
}
inline std::size_t dim_arg(const graph::Node& node, std::size_t position, std::size_t rank) {
  return wrap_dim(constant_arg(node, position), rank);
}

/// A list of ints; None gives an empty one.
inline std::vector<sym::SymExpr> ints_arg(const graph::Node& node, std::size_t position) {
  if (is_none(node, position)) return {};
  if (const auto* one = std::get_if<sym::SymExpr>(&node.args[position])) return {*one};
  const auto is_empty = [](const auto& list) {
    if constexpr (requires { list.empty(); }) return list.empty();
    return false;
  };
  if (std::visit(is_empty, node.args[position])) return {};  // [] has no element type
  return arg<std::vector<sym::SymExpr>>(node, position);
}

/// A Scalar that is known: bool, constant int or double. Nothing for symbolic and complex ones.
inline std::optional<double> number_arg(const graph::Node& node, std::size_t position) {
  const graph::Arg& a = node.args[position];
  if (const auto* b = std::get_if<bool>(&a)) return *b;
  if (const auto* d = std::get_if<double>(&a)) return *d;
  if (const auto* e = std::get_if<sym::SymExpr>(&a); e && e->is_constant()) return static_cast<double>(e->constant());
  return std::nullopt;
}

}  // namespace braze::loop
