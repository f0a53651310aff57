// Substitution does all the work: a map read at any index is its body with that index for its loop variables.
#include "braze/kernel/values.h"

#include <algorithm>
#include <bit>

#include "braze/schedule/match.h"
#include "braze/support/check.h"
#include "braze/support/hash.h"
#include "braze/sym/node.h"

namespace braze::kernel {

namespace {

std::uint64_t hash_of(const SymExpr& e) {
  return e.node() ? e.node()->hash : static_cast<std::uint64_t>(*e.maybe_constant());
}

std::uint64_t hash_of(const Value& v) {
  std::uint64_t h = support::combine(static_cast<std::uint64_t>(v.form) << 16 | static_cast<std::uint64_t>(v.op) << 8,
                                     static_cast<std::uint64_t>(v.type));
  for (ValueId o : v.operands) h = support::combine(h, o.index);
  h = support::combine(h, std::bit_cast<std::uint64_t>(v.number));
  h = support::combine(h, static_cast<std::uint64_t>(v.integer));
  h = support::combine(h, (std::uint64_t{v.buffer.index} << 32) | v.accumulator.index);
  return support::combine(h, hash_of(v.index));
}

bool same_bits(const Value& a, const Value& b) {  // -0 is not 0, a nan is itself
  Value x = a, y = b;
  x.number = y.number = 0;
  return x == y && std::bit_cast<std::uint64_t>(a.number) == std::bit_cast<std::uint64_t>(b.number);
}

}  // namespace

Values::Values(const schedule::Schedule& s, const schedule::Group& group, bool strict)
    : s_(s), group_(group), strict_(strict), ranges_(schedule::ranges_of(group.axes)) {
  for (const graph::Symbol& symbol : s.program.symbols)
    ranges_.push_back(sym::Range{symbol.name, symbol.low, symbol.high, std::nullopt});
}

SymExpr Values::simplified(const SymExpr& e) const { return sym::simplify(e, ranges_); }

const schedule::Member* Values::member(std::uint32_t op) const {
  const auto it = std::ranges::find(group_.members, op, &schedule::Member::op);
  return it == group_.members.end() ? nullptr : &*it;
}

ValueId Values::add(Value v) {
  const std::uint64_t h = hash_of(v);
  for (auto [it, end] = known_.equal_range(h); it != end; ++it)
    if (same_bits(values[it->second.index], v)) return it->second;
  const ValueId id(values.size());
  values.push_back(std::move(v));
  known_.emplace(h, id);
  return id;
}

ValueId Values::scalar(ScalarOp op, DType type, std::vector<ValueId> operands) {
  Value v;
  v.op = op;
  v.type = type;
  v.operands = std::move(operands);
  return add(std::move(v));
}

ValueId Values::constant(DType type, double number, std::int64_t integer) {
  Value v;
  v.type = type;
  v.number = number;
  v.integer = integer;
  return add(std::move(v));
}

ValueId Values::load(BufferId buffer, const SymExpr& index) {
  Value v;
  v.form = Value::Form::load;
  v.type = op::compute_type(buffers[buffer.index].type);
  v.buffer = buffer;
  v.index = index;
  return add(std::move(v));
}

ValueId Values::result(AccumulatorId a, DType type) {
  Value v;
  v.form = Value::Form::result;
  v.type = type;
  v.accumulator = a;
  return add(std::move(v));
}

ValueId Values::cast(ValueId v, DType type) {
  return values[v.index].type == type ? v : scalar(ScalarOp::cast, type, {v});
}

BufferId Values::new_buffer(Buffer b, Argument a) {
  buffers.push_back(b);
  arguments.push_back(a);
  return BufferId(buffers.size() - 1);
}

BufferId Values::buffer_of(TensorId t) {
  const auto [it, fresh] = buffer_of_.try_emplace(t.index);
  if (fresh) it->second = new_buffer({s_.program.tensors[t.index].type.dtype}, {Argument::Kind::tensor, t});
  return it->second;
}

std::vector<ValueId> Values::yields_of(const schedule::Member& m) {
  const Place& at = evaluate(m.op, m.variables, ValueId());
  std::vector<ValueId> yields;
  for (loop::ScalarId y : s_.program.ops[m.op].body.yields) yields.push_back(at.nodes[y.index]);
  return yields;
}

SymExpr Values::index_at(const schedule::Member& m, const SymExpr& index) {
  return over_axes(index, evaluate(m.op, m.variables, ValueId()));
}

const Values::Place& Values::evaluate(std::uint32_t op, const std::vector<SymExpr>& variables, ValueId mask) {
  for (const auto& p : places_[op])
    if (p->mask == mask && p->variables == variables) return *p;
  auto at = std::make_unique<Place>(Place{op, variables, mask, {}});
  const loop::Body& body = s_.program.ops[op].body;
  for (const loop::Scalar& s : body.nodes) at->nodes.push_back(node_value(s, *at));
  for (loop::ScalarId c : body.checks) {
    ValueId check = at->nodes[c.index];
    if (!mask.is_none())
      check = scalar(ScalarOp::bit_or, DType::kBool, {check, scalar(ScalarOp::bit_not, DType::kBool, {mask})});
    if (std::ranges::find(checks, check) == checks.end()) checks.push_back(check);
  }
  auto& places = places_[op];
  places.push_back(std::move(at));
  return *places.back();
}

SymExpr Values::over_axes(const SymExpr& e, const Place& at) const {
  const std::size_t space = s_.program.ops[at.op].space.size();
  const SymExpr moved = substitute(e, [&](std::string_view name) -> std::optional<SymExpr> {
    if (name.size() < 2 || name[1] < '0' || name[1] > '9') return std::nullopt;
    if (name[0] != '@' && name[0] != 'i' && name[0] != 'r') return std::nullopt;
    const std::size_t k = std::stoul(std::string(name.substr(1)));
    if (name[0] == '@') return SymExpr::symbol(support::format("@{}", at.nodes[k].index));
    return at.variables[k + (name[0] == 'r' ? space : 0)];
  });
  return simplified(moved);
}

ValueId Values::node_value(const loop::Scalar& s, const Place& at) {
  if (s.op == ScalarOp::load) {
    std::vector<SymExpr> indices;
    for (const SymExpr& i : s.indices) indices.push_back(over_axes(i, at));
    ValueId mask = s.operands.empty() ? ValueId() : at.nodes[s.operands[0].index];
    if (mask.is_none()) mask = at.mask;
    else if (!at.mask.is_none()) mask = scalar(ScalarOp::bit_and, DType::kBool, {at.mask, mask});
    return tensor_value(s.tensor, indices, mask);
  }
  Value v;
  v.op = s.op;
  v.type = s.type;
  v.number = s.number;
  v.integer = s.integer;
  if (s.op == ScalarOp::index) v.index = over_axes(s.indices[0], at);
  for (loop::ScalarId o : s.operands) v.operands.push_back(at.nodes[o.index]);
  if ((s.op == ScalarOp::cast && op::is_floating(s.type)) || loop::type_rule(s.op) == loop::TypeRule::boolean)
    narrow_operands(v);
  return add(std::move(v));
}

namespace {
constexpr std::int64_t kNarrow = std::int64_t{1} << 30;
}

/// Bounds of i64 values made of indices and constants; nothing for others.
std::optional<sym::Bounds> Values::bounds(ValueId id) const {
  const Value& v = values[id.index];
  if (v.form != Value::Form::scalar || v.type != DType::kInt64) return std::nullopt;
  if (v.op == ScalarOp::constant) return sym::Bounds{v.integer, v.integer};
  if (v.op == ScalarOp::index) return sym::bounds_of(v.index, ranges_);
  const bool sum = v.op == ScalarOp::add || v.op == ScalarOp::sub, product = v.op == ScalarOp::mul;
  if (!sum && !product) return std::nullopt;
  const auto a = bounds(v.operands[0]), b = bounds(v.operands[1]);
  const auto fits = [](const std::optional<sym::Bounds>& x) { return x && x->low > -kNarrow && x->high < kNarrow; };
  if (!fits(a) || !fits(b)) return std::nullopt;
  if (v.op == ScalarOp::add) return sym::Bounds{a->low + b->low, a->high + b->high};
  if (v.op == ScalarOp::sub) return sym::Bounds{a->low - b->high, a->high - b->low};
  const std::int64_t corners[] = {a->low * b->low, a->low * b->high, a->high * b->low, a->high * b->high};
  return sym::Bounds{*std::ranges::min_element(corners), *std::ranges::max_element(corners)};
}

ValueId Values::narrowed(ValueId id) {
  Value v = values[id.index];
  v.type = DType::kInt32;
  for (ValueId& o : v.operands) o = narrowed(o);
  return add(std::move(v));
}

/// Index arithmetic that is compared or converted is done in 32 bits: twice the lanes.
void Values::narrow_operands(Value& v) {
  for (ValueId o : v.operands) {
    const auto b = bounds(o);
    if (!b || b->low <= -kNarrow || b->high >= kNarrow) return;
  }
  for (ValueId& o : v.operands) o = narrowed(o);
}

ValueId Values::tensor_value(TensorId t, const std::vector<SymExpr>& indices, ValueId mask) {
  const std::uint32_t op = s_.producer[t.index];
  const bool loops = op != schedule::kNone && s_.program.ops[op].kind != loop::Kind::external &&
                     s_.program.ops[op].kind != loop::Kind::scatter;
  if (loops && (!s_.stored[t.index] || member(op))) return computed(op, t, indices, mask);
  const op::TensorType& type = s_.program.tensors[t.index].type;
  Value v;
  v.form = Value::Form::load;
  v.type = op::compute_type(type.dtype);
  v.buffer = buffer_of(t);
  v.index = simplified(schedule::address(type, indices));
  if (!mask.is_none()) v.operands.push_back(mask);
  return add(std::move(v));
}

std::size_t Values::result_number(std::uint32_t op, TensorId t) const {
  const auto& results = s_.program.ops[op].results;
  return static_cast<std::size_t>(std::ranges::find(results, t) - results.begin());
}

/// A conversion that the program asks for, not the end of half arithmetic: it rounds even where nothing is stored.
bool Values::rounds(const loop::LoopOp& op, std::size_t number) const {
  const loop::Scalar& yield = op.body.nodes[op.body.yields[number].index];
  if (yield.op == ScalarOp::load) return !op::is_half(s_.program.tensors[yield.tensor.index].type.dtype);
  return yield.op == ScalarOp::cast;
}

/// The value of a tensor that this group makes, or that has no memory.
ValueId Values::computed(std::uint32_t k, TensorId t, const std::vector<SymExpr>& indices, ValueId mask) {
  const loop::LoopOp& op = s_.program.ops[k];
  const op::TensorType& type = s_.program.tensors[t.index].type;
  const std::size_t number = result_number(k, t);
  const schedule::Member* m = member(k);
  ValueId value;
  if (op.kind == loop::Kind::reduce) {
    BRAZE_CHECK(m, "reduction %{} has no memory and is not in the group", s_.program.tensors[t.index].name);
    value = reductions.at({k, number});
  } else {
    std::vector<SymExpr> variables(indices.begin(), indices.end());
    for (std::size_t d = 0; d < variables.size(); ++d)
      if (op.space[d].is_value(1)) variables[d] = 0;
    if (m && simplified(schedule::linear_position(type, indices)) ==
                 simplified(schedule::linear_position(type, std::span(m->variables).first(indices.size()))))
      variables = m->variables;
    const bool own = m && variables == m->variables;
    value = evaluate(k, variables, own ? ValueId() : mask).nodes[op.body.yields[number].index];
  }
  const DType compute = op::compute_type(type.dtype);
  value = cast(value, compute);
  if (op::is_half(type.dtype) && (strict_ || rounds(op, number)))
    value = cast(scalar(ScalarOp::cast, type.dtype, {value}), compute);
  if (mask.is_none()) return value;
  return scalar(ScalarOp::select, compute, {mask, value, constant(compute, 0, 0)});
}

}  // namespace braze::kernel
