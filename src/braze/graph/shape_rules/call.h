// What a shape rule sees: the arguments of one call, and what all rules share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "braze/graph/shape_rules.h"

namespace braze::graph::shape_rules {

using Sizes = std::vector<SymExpr>;

/// Thrown nowhere, set instead: `sure` becomes false when a question about a symbolic size has no certain answer or an
/// argument is not of the expected kind; then the whole answer is dropped. Accessors give something harmless.
struct Call {
  const Graph& g;
  Op op;
  std::span<const Arg> args;
  DType default_dtype;
  std::vector<std::optional<TensorType>>& out;
  bool sure = true;

  /// The tensor at position i; unsure if there is none.
  const TensorType& tensor(std::size_t i);
  const TensorType* maybe_tensor(std::size_t i) const;  ///< null: None, undefined or a scalar
  std::span<const ValueId> list(std::size_t i);
  bool is_none(std::size_t i) const;
  bool is_scalar(std::size_t i) const;  ///< bool, integer, double, complex
  bool flag(std::size_t i);
  std::int64_t integer(std::size_t i);  ///< a constant
  SymExpr expr(std::size_t i);
  const Sizes& exprs(std::size_t i);                  ///< a list; empty for None
  std::vector<std::int64_t> integers(std::size_t i);  ///< a list of constants (one for an integer); empty for None
  bool mask(std::size_t i, std::size_t bit);          ///< of a bool[n]
  std::optional<DType> dtype(std::size_t i) const;    ///< nullopt for None
  std::string_view text(std::size_t i) const;         ///< "" for None

  bool give_up() { return sure = false; }
  bool give(TensorType type) {
    out.emplace_back(std::move(type));
    return true;
  }
  void give_undefined() { out.emplace_back(std::nullopt); }
  bool require(bool condition) { return condition || give_up(); }

  bool equal(const SymExpr& a, const SymExpr& b);  ///< unsure if neither equal nor known to differ
  bool is_one(const SymExpr& e) { return equal(e, 1); }
  bool less(const SymExpr& a, const SymExpr& b);
  bool equal(const Sizes& a, const Sizes& b);
  std::size_t wrap(std::int64_t dim, std::size_t rank);  ///< -1 -> rank - 1; a 0-dim tensor counts as 1-dim
};

using Rule = bool (*)(Call&);

// Layouts.
bool has_zero(const Sizes& sizes);
bool has_overlap(const TensorType& t);                ///< a stride of 0: elements that share memory
bool is_dense(Call& c, const TensorType& t);          ///< non-overlapping and dense
bool is_channels_last(Call& c, const TensorType& t);  ///< is_contiguous(channels_last), 4 dimensions
bool suggests_channels_last(Call& c, const TensorType& t);
Sizes channels_last_strides(const Sizes& sizes);
Sizes dense_strides(Call& c, const TensorType& t);                ///< infer_dense_strides
TensorType preserved(Call& c, const TensorType& t, DType dtype);  ///< empty_like(t), preserve_format
/// The layout `format` asks for, preserve_format for None. `t` gives sizes, dtype, device.
TensorType formatted(Call& c, const TensorType& t, std::size_t format);
/// As t.suggest_memory_format() says, with other sizes.
TensorType suggested(Call& c, const TensorType& t, Sizes sizes);
inline TensorType like(const TensorType& t, Sizes sizes) { return op::contiguous(t.dtype, std::move(sizes), t.device); }
inline TensorType like(const TensorType& t, Sizes sizes, DType d) {
  return op::contiguous(d, std::move(sizes), t.device);
}

/// An operand of a TensorIterator.
struct Operand {
  const Sizes* sizes;
  const Sizes* strides;
};
/// Output type of a TensorIterator over the operands, in PyTorch's order (0-dim operands included).
TensorType iterate(Call& c, std::span<const Operand> operands, DType dtype, Device device);
Sizes broadcast(Call& c, const Sizes& a, const Sizes& b);

// clang-format off
#define BRAZE_SHAPE_RULES(X)                                                                                      \
  X(clone)                                                                                                        \
  X(compare)                                                                                                      \
  X(factory)                                                                                                      \
  X(index) X(library) X(matmul) X(norm) X(pointwise) X(random) X(reduce) X(same) X(same_float) X(scan) X(to_copy) \
      X(view)
// clang-format on
#define X(name) bool name(Call&);
BRAZE_SHAPE_RULES(X)
#undef X
/// Column "meta": PyTorch's own.
inline bool meta(Call& c) { return c.give_up(); }

}  // namespace braze::graph::shape_rules
