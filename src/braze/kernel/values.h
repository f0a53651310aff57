// The scalar values of a group over its axes: bodies of members, with maps that have no memory computed in place.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "braze/kernel/tile.h"
#include "braze/schedule/access.h"
#include "braze/sym/simplify.h"

namespace braze::kernel {

/// Values are hash-consed: equal ones have one id. Loop variables are the group's axes.
class Values {
 public:
  Values(const schedule::Schedule& s, const schedule::Group& group, bool strict);

  /// The yields of a member at its own point.
  std::vector<ValueId> yields_of(const schedule::Member& m);
  /// What the member's body must hold to be valid: b8 values.
  std::vector<ValueId> checks;

  BufferId buffer_of(TensorId t);
  BufferId new_buffer(Buffer b, Argument a);
  ValueId add(Value v);
  ValueId load(BufferId buffer, const SymExpr& index);
  ValueId scalar(ScalarOp op, DType type, std::vector<ValueId> operands);
  ValueId constant(DType type, double number, std::int64_t integer);
  ValueId result(AccumulatorId a, DType type);
  ValueId cast(ValueId v, DType type);
  /// An index of the member's body (a scatter's target) over the axes.
  SymExpr index_at(const schedule::Member& m, const SymExpr& index);
  SymExpr simplified(const SymExpr& e) const;

  /// Results of reductions: by op and result number, the accumulator's value; filled by the tiler.
  std::map<std::pair<std::uint32_t, std::size_t>, ValueId> reductions;

  std::vector<Value> values;
  std::vector<Buffer> buffers;
  std::vector<Argument> arguments;

 private:
  struct Place {  // a body at a point
    std::uint32_t op;
    std::vector<SymExpr> variables;
    ValueId mask;
    std::vector<ValueId> nodes;
  };
  const Place& evaluate(std::uint32_t op, const std::vector<SymExpr>& variables, ValueId mask);
  ValueId node_value(const loop::Scalar& s, const Place& at);
  ValueId tensor_value(TensorId t, const std::vector<SymExpr>& indices, ValueId mask);
  ValueId computed(std::uint32_t op, TensorId t, const std::vector<SymExpr>& indices, ValueId mask);
  SymExpr over_axes(const SymExpr& e, const Place& at) const;
  std::size_t result_number(std::uint32_t op, TensorId t) const;
  const schedule::Member* member(std::uint32_t op) const;
  std::optional<sym::Bounds> bounds(ValueId v) const;
  bool rounds(const loop::LoopOp& op, std::size_t number) const;
  ValueId narrowed(ValueId v);
  void narrow_operands(Value& v);

  const schedule::Schedule& s_;
  const schedule::Group& group_;
  bool strict_;
  sym::Ranges ranges_;
  std::unordered_multimap<std::uint64_t, ValueId> known_;
  std::map<std::uint32_t, BufferId> buffer_of_;
  std::unordered_map<std::uint32_t, std::vector<std::unique_ptr<Place>>> places_;  // by op
};

}  // namespace braze::kernel
