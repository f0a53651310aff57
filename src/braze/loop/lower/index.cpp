// Concatenation, padding, triangles and the derivatives of views: maps that choose by position.
#include "braze/loop/lower/args.h"
#include "braze/loop/lower/positions.h"

namespace braze::loop {
namespace {

constexpr std::size_t kMostConcatenated = 8;  // more are copied by the library: a select chain costs per operand

ValueId operand(const Node& node, std::size_t position = 0) { return arg<ValueId>(node, position); }
const std::vector<SymExpr>& result_sizes(const Lowering& l, const Node& node) { return l.type(node.results[0]).sizes; }

Term cast_to_result(Lowering& l, Loop& loop, const Node& node, Term x) {
  return loop.body.cast(x, op::compute_type(l.type(node.results[0]).dtype));
}

/// low <= e < high, leaving out what always holds.
std::optional<Term> within(Loop& loop, const SymExpr& e, const SymExpr& low, const SymExpr& high, bool below,
                           bool above) {
  std::optional<Term> condition;
  if (below) condition = loop.body.index(e) >= loop.body.index(low);
  if (above) {
    const Term under = loop.body.index(e) < loop.body.index(high);
    condition = condition ? both(*condition, under) : under;
  }
  return condition;
}

Term value_where(Loop& loop, std::optional<Term> mask, ValueId v, std::span<const SymExpr> at) {
  return mask ? loop.value_if(*mask, v, at) : loop.value(v, at);
}

/// One operand of a concatenation: [start, end) of the result along the dimension.
struct Piece {
  ValueId value;
  SymExpr start, end;
};

std::vector<Piece> pieces_of(const Lowering& l, const std::vector<ValueId>& values, std::size_t dim, bool stacked) {
  std::vector<Piece> pieces;
  SymExpr start = 0;
  for (const ValueId v : values) {
    const auto& sizes = l.type(v).sizes;
    if (!stacked && sizes.size() == 1 && sizes[0].is_value(0)) continue;  // cat skips empty 1-dim tensors
    const SymExpr end = start + (stacked ? SymExpr(1) : sizes[dim]);
    pieces.push_back({v, start, end});
    start = end;
  }
  return pieces;
}

Term read_piece(Lowering& l, Loop& loop, const Node& node, const Piece& piece, std::size_t dim, bool stacked,
                bool first, bool last) {
  std::vector<SymExpr> at = loop.i;
  if (stacked) at.erase(at.begin() + static_cast<std::ptrdiff_t>(dim));
  else at[dim] = at[dim] - piece.start;
  const auto mask = within(loop, loop.i[dim], piece.start, piece.end, !first, !last);
  return cast_to_result(l, loop, node, value_where(loop, mask, piece.value, at));
}

bool concatenate(Lowering& l, const Node& node, bool stacked) {
  const auto& values = arg<std::vector<ValueId>>(node, 0);
  const auto& sizes = result_sizes(l, node);
  if (sizes.empty()) return false;
  const std::size_t dim = dim_arg(node, 1, sizes.size());
  const std::vector<Piece> pieces = pieces_of(l, values, dim, stacked);
  if (pieces.empty() || pieces.size() > kMostConcatenated) return false;
  Loop loop(l, node, sizes);
  std::vector<Term> terms;
  for (std::size_t k = 0; k < pieces.size(); ++k)
    terms.push_back(read_piece(l, loop, node, pieces[k], dim, stacked, k == 0, k + 1 == pieces.size()));
  Term result = terms.back();
  for (std::size_t k = pieces.size() - 1; k-- > 0;)
    result = choose(loop.body.index(loop.i[dim]) < loop.body.index(pieces[k].end), terms[k], result);
  loop.yield(result, node.results[0]);
  loop.map();
  return true;
}
bool cat(Lowering& l, const Node& node) { return concatenate(l, node, false); }
bool stack(Lowering& l, const Node& node) { return concatenate(l, node, true); }

/// Where a slice of the loop's space lies: a mask (none: everywhere) and the indices in the slice.
struct Window {
  std::optional<Term> mask;
  std::vector<SymExpr> at;
};

std::optional<Window> slice_window(Lowering& l, Loop& loop, const SymExpr& size, const SymExpr& length, std::size_t dim,
                                   const SymExpr& from, const SymExpr& step) {
  const auto start = clamp_position(l, from, size);
  if (!start) return std::nullopt;
  const SymExpr end = *start + length * step, here = loop.i[dim] - *start;
  Window w{within(loop, loop.i[dim], *start, end, !start->is_value(0), end != size), loop.i};
  if (!step.is_value(1)) {
    const Term hit = equal(loop.body.index(mod(here, step)), loop.body.integer(0, DType::kInt64));
    w.mask = w.mask ? both(*w.mask, hit) : hit;
  }
  w.at[dim] = floor_div(here, step);
  return w;
}

bool slice_backward(Lowering& l, const Node& node) {
  const auto& sizes = result_sizes(l, node);
  const std::size_t dim = dim_arg(node, 2, sizes.size());
  Loop loop(l, node, sizes);
  const SymExpr length = l.type(operand(node)).sizes[dim];
  const auto w = slice_window(l, loop, sizes[dim], length, dim, int_arg(node, 3), int_arg(node, 5));
  if (!w) return false;
  loop.yield(value_where(loop, w->mask, operand(node), w->at), node.results[0]);
  loop.map();
  return true;
}

bool slice_scatter(Lowering& l, const Node& node) {
  const auto& sizes = result_sizes(l, node);
  const std::size_t dim = dim_arg(node, 2, sizes.size());
  Loop loop(l, node, sizes);
  const SymExpr length = l.type(operand(node, 1)).sizes[dim], start = is_none(node, 3) ? SymExpr(0) : int_arg(node, 3);
  const auto w = slice_window(l, loop, sizes[dim], length, dim, start, int_arg(node, 5));
  if (!w) return false;
  const Term inside = cast_to_result(l, loop, node, value_where(loop, w->mask, operand(node, 1), w->at));
  loop.yield(w->mask ? choose(*w->mask, inside, loop.value(operand(node), loop.i)) : inside, node.results[0]);
  loop.map();
  return true;
}

/// The mask of one position along a dimension, and the indices without that dimension.
std::optional<Window> select_window(Lowering& l, Loop& loop, const SymExpr& size, std::size_t dim,
                                    const SymExpr& index) {
  const auto at = front_index(l, index, size);
  if (!at) return std::nullopt;
  Window w{equal(loop.body.index(loop.i[dim]), loop.body.index(*at)), loop.i};
  w.at.erase(w.at.begin() + static_cast<std::ptrdiff_t>(dim));
  return w;
}

bool select_backward(Lowering& l, const Node& node) {
  const auto& sizes = result_sizes(l, node);
  const std::size_t dim = dim_arg(node, 2, sizes.size());
  Loop loop(l, node, sizes);
  const auto w = select_window(l, loop, sizes[dim], dim, int_arg(node, 3));
  if (!w) return false;
  loop.yield(loop.value_if(*w->mask, operand(node), w->at), node.results[0]);
  loop.map();
  return true;
}

bool select_scatter(Lowering& l, const Node& node) {
  const auto& sizes = result_sizes(l, node);
  const std::size_t dim = dim_arg(node, 2, sizes.size());
  Loop loop(l, node, sizes);
  const auto w = select_window(l, loop, sizes[dim], dim, int_arg(node, 3));
  if (!w) return false;
  const Term inside = cast_to_result(l, loop, node, loop.value_if(*w->mask, operand(node, 1), w->at));
  loop.yield(choose(*w->mask, inside, loop.value(operand(node), loop.i)), node.results[0]);
  loop.map();
  return true;
}

bool diagonal_backward(Lowering& l, const Node& node) {
  const auto& sizes = result_sizes(l, node);
  const std::size_t dim1 = dim_arg(node, 3, sizes.size()), dim2 = dim_arg(node, 4, sizes.size());
  const std::int64_t offset = constant_arg(node, 2);
  Loop loop(l, node, sizes);
  std::vector<SymExpr> at;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (k != dim1 && k != dim2) at.push_back(loop.i[k]);
  }
  at.push_back(offset < 0 ? loop.i[dim1] + offset : loop.i[dim1]);
  const Term hit = equal(loop.body.index(loop.i[dim2] - loop.i[dim1]), loop.body.integer(offset, DType::kInt64));
  loop.yield(loop.value_if(hit, operand(node), at), node.results[0]);
  loop.map();
  return true;
}

bool constant_pad(Lowering& l, const Node& node) {
  const auto& from = l.type(operand(node)).sizes;
  const std::vector<SymExpr> pad = ints_arg(node, 1);
  const auto fill = number_arg(node, 2);
  if (!fill) return false;
  Loop loop(l, node, result_sizes(l, node));
  std::vector<SymExpr> at = loop.i;
  std::optional<Term> mask;
  for (std::size_t k = 0; k < pad.size() / 2; ++k) {
    const std::size_t dim = from.size() - 1 - k;
    const SymExpr &left = pad[2 * k], &right = pad[2 * k + 1];
    at[dim] = loop.i[dim] - left;
    const auto inside = within(loop, loop.i[dim], left, left + from[dim], !left.is_value(0), !right.is_value(0));
    if (inside) mask = mask ? both(*mask, *inside) : *inside;
  }
  const Term x = value_where(loop, mask, operand(node), at);
  loop.yield(!mask || *fill == 0 ? x : choose(*mask, x, like(x, *fill)), node.results[0]);
  loop.map();
  return true;
}

/// triu keeps column - row >= diagonal, tril <=.
template <ScalarOp kKeep>
bool triangle(Lowering& l, const Node& node) {
  const auto& sizes = result_sizes(l, node);
  if (sizes.size() < 2) return false;
  Loop loop(l, node, sizes);
  const SymExpr distance = loop.i[sizes.size() - 1] - loop.i[sizes.size() - 2];
  const Term keep = apply(kKeep, loop.body.index(distance), loop.body.index(int_arg(node, 1)));
  const Term x = loop.value(operand(node), loop.i);
  loop.yield(choose(keep, x, like(x, 0)), node.results[0]);
  loop.map();
  return true;
}

/// Copies that only rename indices: no memory until somebody asks for it.
bool bind_copy(Lowering& l, const Node& node, IndexMap map) {
  l.bind_view(node.results[0], operand(node), std::move(map), std::nullopt);
  return true;
}

bool repeat(Lowering& l, const Node& node) {
  const auto &from = l.type(operand(node)).sizes, &to = result_sizes(l, node);
  IndexMap map = broadcast_map(from, to);
  const std::size_t lead = to.size() - from.size();
  for (std::size_t k = 0; k < from.size(); ++k) {
    if (map[k].var >= 0 && from[k] != to[lead + k]) map[k] = Index::of(mod(space_var(lead + k), from[k]));
  }
  return bind_copy(l, node, std::move(map));
}

bool roll(Lowering& l, const Node& node) {
  const auto& sizes = result_sizes(l, node);
  const std::vector<SymExpr> shifts = ints_arg(node, 1);
  std::vector<SymExpr> dims = ints_arg(node, 2);
  if (dims.empty() && sizes.size() == 1) dims = {0};
  if (dims.size() != shifts.size()) return false;
  IndexMap map = identity_map(sizes);
  std::vector<SymExpr> back(sizes.size());
  for (std::size_t k = 0; k < dims.size(); ++k) {
    const std::size_t dim = wrap_dim(dims[k].constant(), sizes.size());
    back[dim] = back[dim] - shifts[k];
  }
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (map[k].var < 0 || back[k].is_value(0) || sizes[k].is_value(0)) continue;
    map[k] = Index::of(mod(space_var(k) + mod(back[k], sizes[k]), sizes[k]));
  }
  return bind_copy(l, node, std::move(map));
}

bool flip(Lowering& l, const Node& node) {
  const auto& sizes = result_sizes(l, node);
  IndexMap map = identity_map(sizes);
  for (const SymExpr& d : ints_arg(node, 1)) {
    const std::size_t dim = wrap_dim(d.constant(), sizes.size());
    if (!sizes.empty() && map[dim].var >= 0) map[dim] = Index::of(sizes[dim] - 1 - space_var(dim));
  }
  return bind_copy(l, node, std::move(map));
}

template <SymExpr (*kFold)(const SymExpr& shifted, const SymExpr& size)>
bool index_pad(Lowering& l, const Node& node) {
  const auto &from = l.type(operand(node)).sizes, &to = result_sizes(l, node);
  const std::vector<SymExpr> pad = ints_arg(node, 1);
  IndexMap map = identity_map(to);
  for (std::size_t k = 0; k < pad.size() / 2; ++k) {
    const std::size_t dim = from.size() - 1 - k;
    if (map[dim].var >= 0) map[dim] = Index::of(kFold(space_var(dim) - pad[2 * k], from[dim]));
  }
  return bind_copy(l, node, std::move(map));
}
SymExpr reflect(const SymExpr& shifted, const SymExpr& size) {
  const SymExpr mirrored = max(shifted, SymExpr(0) - shifted);
  return min(mirrored, SymExpr(2) * (size - 1) - mirrored);
}
SymExpr replicate(const SymExpr& shifted, const SymExpr& size) { return min(max(shifted, 0), size - 1); }

constexpr RuleRow kRows[] = {
    {Op::cat, cat},
    {Op::stack, stack},
    {Op::slice_backward, slice_backward},
    {Op::select_backward, select_backward},
    {Op::diagonal_backward, diagonal_backward},
    {Op::constant_pad_nd, constant_pad},
    {Op::slice_scatter, slice_scatter},
    {Op::select_scatter, select_scatter},
    {Op::triu, triangle<ScalarOp::ge>},
    {Op::tril, triangle<ScalarOp::le>},
    {Op::repeat, repeat},
    {Op::roll, roll},
    {Op::flip, flip},
    {Op::reflection_pad2d, index_pad<reflect>},
    {Op::replication_pad2d, index_pad<replicate>},
};

}  // namespace

std::span<const RuleRow> index_rules() { return kRows; }

}  // namespace braze::loop
