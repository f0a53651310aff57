// Loop: reading graph values through their maps, and closing an operator.
#include <algorithm>

#include "braze/loop/lower/lowering.h"
#include "braze/loop/passes/rewrite.h"
#include "braze/support/check.h"

namespace braze::loop {

Loop::Loop(Lowering& l, const Node& node, std::span<const SymExpr> space, std::span<const SymExpr> reduced)
    : i(space_vars(space)), r(reduced_vars(reduced)), l_(l), node_(node) {
  op_.space.assign(space.begin(), space.end());
  op_.reduced.assign(reduced.begin(), reduced.end());
}

const sym::Ranges& Loop::ranges() {
  if (ranges_.empty()) ranges_ = l_.ranges(op_.space, op_.reduced);
  return ranges_;
}

Term Loop::read(std::optional<Term> mask, ValueId v, std::span<const SymExpr> at) {
  const Bound& b = l_.bound(v);
  const DType dtype = l_.type(v).dtype;
  switch (b.form) {
    case Bound::Form::number: {
      const DType type = op::compute_type(dtype);
      return op::is_floating(type) ? body.constant(b.number, type) : body.integer(b.integer, type);
    }
    case Bound::Form::content: return body.cast(body.index(apply(b.index, at, ranges())), op::compute_type(dtype));
    case Bound::Form::tensor: break;
    case Bound::Form::none: BRAZE_CHECK(false, "%{} is used before it is lowered", l_.graph.values[v.index].name);
  }
  static const sym::Ranges kNothing;
  std::vector<SymExpr> indices = apply(b.map, at, has_arithmetic(b.map) ? ranges() : kNothing);
  return mask ? body.load_if(*mask, b.tensor, dtype, std::move(indices))
              : body.load(b.tensor, dtype, std::move(indices));
}

Term Loop::value(ValueId v, std::span<const SymExpr> at) { return read(std::nullopt, v, at); }

Term Loop::value_if(Term mask, ValueId v, std::span<const SymExpr> at) {
  const Term loaded = read(mask, v, at);
  if (l_.bound(v).form == Bound::Form::tensor) return loaded;
  return choose(mask, loaded, like(loaded, 0));
}

Term Loop::broadcast(ValueId v, std::span<const SymExpr> at) {
  const auto& sizes = l_.type(v).sizes;
  BRAZE_CHECK(sizes.size() <= at.size(), "%{} has more dimensions than its space", l_.graph.values[v.index].name);
  std::vector<SymExpr> own(sizes.size());
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (!sizes[k].is_value(1)) own[k] = at[at.size() - sizes.size() + k];
  }
  return value(v, own);
}

Term Loop::tensor(TensorId t, std::span<const SymExpr> at) {
  return body.load(t, l_.program.tensors[t.index].type.dtype, {at.begin(), at.end()});
}

void Loop::yield(Term x, ValueId result) {
  if (result.is_none()) return;
  yield_key(body.cast(x, op::compute_type(l_.type(result).dtype)), result);
}

void Loop::yield_key(Term x, ValueId result) {
  if (result.is_none()) return;
  const TensorId tensor = l_.add_tensor(l_.stored_type(result), l_.graph.values[result.index].name);
  l_.bind_tensor(result, tensor);
  body.yield(x);
  op_.results.push_back(tensor);
}

TensorId Loop::yield(Term x, DType type, std::string_view suffix) {
  const auto result = std::find_if(node_.results.begin(), node_.results.end(), [](ValueId v) { return !v.is_none(); });
  BRAZE_CHECK(result != node_.results.end(), "{} has no result", node_.name);
  const graph::Value& owner = l_.graph.values[result->index];
  std::string name = owner.name + "_" + std::string(suffix);
  return yield_into(x, l_.add_tensor(op::contiguous(type, op_.space, owner.type.device), std::move(name)));
}

TensorId Loop::yield_both(Term x, ValueId result, DType type, std::string_view suffix) {
  yield(x, result);
  const bool suffices = !result.is_none() && l_.type(result).dtype == type && l_.type(result).sizes == op_.space;
  return suffices ? l_.bound(result).tensor : yield(x, type, suffix);
}

TensorId Loop::yield_into(Term x, TensorId tensor) {
  body.yield(body.cast(x, op::compute_type(l_.program.tensors[tensor.index].type.dtype)));
  op_.results.push_back(tensor);
  return tensor;
}

void Loop::reduce(Fold fold) {
  op_.fold = fold;
  finish(Kind::reduce);
}

void Loop::scatter(TensorId init, std::vector<SymExpr> targets, bool accumulate) {
  op_.init = init;
  op_.targets = std::move(targets);
  op_.accumulate = accumulate;
  finish(Kind::scatter);
}

void Loop::finish(Kind kind) {
  if (op_.results.empty()) return;
  op_.kind = kind;
  op_.body = body.take();
  order_body(op_);
  op_.at = node_.at;
  op_.origin = node_.name;
  l_.emit(std::move(op_));
}

}  // namespace braze::loop
