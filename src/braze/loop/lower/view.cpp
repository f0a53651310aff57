// Views: each is an index map and, where the result still lies in its operand's memory, an offset.
#include "braze/loop/lower/args.h"
#include "braze/loop/lower/positions.h"

namespace braze::loop {

std::optional<SymExpr> clamp_position(const Lowering& l, const SymExpr& position, const SymExpr& size) {
  const sym::Ranges ranges = l.ranges({});
  SymExpr p = position;
  if (sym::is_less(p, 0, ranges)) p = p + size;
  else if (!sym::is_less_equal(0, p, ranges)) return std::nullopt;
  if (sym::is_less(p, 0, ranges)) return SymExpr(0);
  if (sym::is_less_equal(p, size, ranges)) return sym::is_less_equal(0, p, ranges) ? std::optional(p) : std::nullopt;
  return sym::is_less_equal(size, p, ranges) ? std::optional(size) : std::nullopt;
}

std::optional<SymExpr> front_index(const Lowering& l, const SymExpr& index, const SymExpr& size) {
  if (sym::is_less(index, 0, l.ranges({}))) return index + size;
  return sym::is_less_equal(0, index, l.ranges({})) ? std::optional(index) : std::nullopt;
}

namespace {

ValueId operand(const Node& node) { return arg<ValueId>(node, 0); }

/// The result's dimension k is the operand's dimension dims[k] (none: a new one).
bool rearrange(Lowering& l, const Node& node, std::span<const int> dims) {
  const auto& sizes = l.type(operand(node)).sizes;
  IndexMap map(sizes.size());
  for (std::size_t k = 0; k < dims.size(); ++k) {
    if (dims[k] >= 0 && !sizes[static_cast<std::size_t>(dims[k])].is_value(1))
      map[static_cast<std::size_t>(dims[k])] = Index::of_var(k);
  }
  l.bind_view(node.results[0], operand(node), std::move(map), SymExpr(0));
  return true;
}

bool alias(Lowering& l, const Node& node) {
  l.bind_view(node.results[0], operand(node), identity_map(l.type(node.results[0]).sizes), SymExpr(0));
  return true;
}

bool reshape(Lowering& l, const Node& node) {
  const TensorType &from = l.type(operand(node)), &to = l.type(node.results[0]);
  // view needs no copy by definition; reshape copies what is not viewable, and its result is contiguous then
  const bool viewable = node.op != Op::reshape || op::is_contiguous(from);
  l.bind_view(node.results[0], operand(node), reshape_map(from.sizes, to.sizes, l.ranges(to.sizes)),
              viewable ? std::optional<SymExpr>(0) : std::nullopt);
  return true;
}

bool transpose(Lowering& l, const Node& node) {
  const std::size_t rank = l.type(operand(node)).dim();
  std::vector<int> dims(rank);
  for (std::size_t k = 0; k < rank; ++k) dims[k] = static_cast<int>(k);
  if (node.op == Op::t) {
    if (rank == 2) std::swap(dims[0], dims[1]);
  } else if (rank > 0) {
    std::swap(dims[dim_arg(node, 1, rank)], dims[dim_arg(node, 2, rank)]);
  }
  return rearrange(l, node, dims);
}

bool permute(Lowering& l, const Node& node) {
  std::vector<int> dims;
  for (const SymExpr& d : ints_arg(node, 1))
    dims.push_back(static_cast<int>(wrap_dim(d.constant(), l.type(operand(node)).dim())));
  return rearrange(l, node, dims);
}

bool expand(Lowering& l, const Node& node) {
  const auto &from = l.type(operand(node)).sizes, &to = l.type(node.results[0]).sizes;
  l.bind_view(node.results[0], operand(node), broadcast_map(from, to), SymExpr(0));
  return true;
}

bool unsqueeze(Lowering& l, const Node& node) {
  const std::size_t rank = l.type(node.results[0]).dim(), at = dim_arg(node, 1, rank);
  std::vector<int> dims(rank, -1);
  for (std::size_t k = 0; k < rank; ++k) {
    if (k != at) dims[k] = static_cast<int>(k < at ? k : k - 1);
  }
  return rearrange(l, node, dims);
}

bool squeeze(Lowering& l, const Node& node) {
  const auto& sizes = l.type(operand(node)).sizes;
  std::vector<bool> listed(sizes.size(), node.op == Op::squeeze);
  if (node.op != Op::squeeze && !sizes.empty()) {
    for (const SymExpr& d : ints_arg(node, 1)) listed[wrap_dim(d.constant(), sizes.size())] = true;
  }
  std::vector<int> dims;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (!(listed[k] && sizes[k].is_value(1))) dims.push_back(static_cast<int>(k));
  }
  return dims.size() == l.type(node.results[0]).dim() && rearrange(l, node, dims);
}

/// result = operand[..., start + step*i, ...] in dimension dim.
void bind_slice(Lowering& l, ValueId result, ValueId x, std::size_t dim, const SymExpr& start, const SymExpr& step) {
  const auto& sizes = l.type(result).sizes;
  IndexMap map = identity_map(sizes);
  const SymExpr at = (sizes[dim].is_value(1) ? SymExpr(0) : space_var(dim)) * step + start;
  if (!(start.is_value(0) && step.is_value(1))) map[dim] = Index::of(at);
  l.bind_view(result, x, std::move(map), start * l.type(x).strides[dim]);
}

bool slice(Lowering& l, const Node& node) {
  const TensorType& from = l.type(operand(node));
  const std::size_t dim = dim_arg(node, 1, from.dim());
  const auto start = is_none(node, 2) ? SymExpr(0) : clamp_position(l, int_arg(node, 2), from.sizes[dim]);
  if (!start) return false;
  bind_slice(l, node.results[0], operand(node), dim, *start, int_arg(node, 4));
  return true;
}

void bind_select(Lowering& l, ValueId result, ValueId x, std::size_t dim, const SymExpr& index) {
  const auto& sizes = l.type(x).sizes;
  IndexMap map(sizes.size());
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (k == dim) map[k] = Index::of(index);
    else if (!sizes[k].is_value(1)) map[k] = Index::of_var(k < dim ? k : k - 1);
  }
  l.bind_view(result, x, std::move(map), index * l.type(x).strides[dim]);
}

bool select(Lowering& l, const Node& node) {
  const TensorType& from = l.type(operand(node));
  const std::size_t dim = dim_arg(node, 1, from.dim());
  const auto index = front_index(l, int_arg(node, 2), from.sizes[dim]);
  if (!index) return false;
  bind_select(l, node.results[0], operand(node), dim, *index);
  return true;
}

bool unbind(Lowering& l, const Node& node) {
  const std::size_t dim = dim_arg(node, 1, l.type(operand(node)).dim());
  for (std::size_t k = 0; k < node.results.size(); ++k)
    bind_select(l, node.results[k], operand(node), dim, static_cast<std::int64_t>(k));
  return true;
}

/// split, split_with_sizes, chunk: the results' own sizes say where the next one starts.
bool split(Lowering& l, const Node& node) {
  const std::size_t dim = dim_arg(node, 2, l.type(operand(node)).dim());
  SymExpr start = 0;
  for (const ValueId result : node.results) {
    bind_slice(l, result, operand(node), dim, start, 1);
    start = start + l.type(result).sizes[dim];
  }
  return true;
}

bool diagonal(Lowering& l, const Node& node) {
  const TensorType& from = l.type(operand(node));
  const std::size_t dim1 = dim_arg(node, 2, from.dim()), dim2 = dim_arg(node, 3, from.dim());
  const std::int64_t offset = constant_arg(node, 1);
  const SymExpr first = offset < 0 ? -offset : 0, second = offset > 0 ? offset : 0;
  const std::size_t last = l.type(node.results[0]).dim() - 1;
  const SymExpr along = l.type(node.results[0]).sizes[last].is_value(1) ? SymExpr(0) : space_var(last);
  IndexMap map(from.dim());
  std::size_t next = 0;
  for (std::size_t k = 0; k < from.dim(); ++k) {
    if (k == dim1) map[k] = Index::of(along + first);
    else if (k == dim2) map[k] = Index::of(along + second);
    else if (const std::size_t at = next++; !from.sizes[k].is_value(1)) map[k] = Index::of_var(at);
  }
  l.bind_view(node.results[0], operand(node), std::move(map), first * from.strides[dim1] + second * from.strides[dim2]);
  return true;
}

bool unfold(Lowering& l, const Node& node) {
  const TensorType &from = l.type(operand(node)), &to = l.type(node.results[0]);
  if (from.dim() == 0) return false;
  const std::size_t dim = dim_arg(node, 1, from.dim()), last = to.dim() - 1;
  IndexMap map = identity_map(std::span(to.sizes).first(last));
  const auto along = [&](std::size_t k) { return to.sizes[k].is_value(1) ? SymExpr(0) : space_var(k); };
  map[dim] = Index::of(along(dim) * int_arg(node, 3) + along(last));
  l.bind_view(node.results[0], operand(node), std::move(map), SymExpr(0));
  return true;
}

constexpr RuleRow kRows[] = {
    {Op::view, reshape},
    {Op::_unsafe_view, reshape},
    {Op::reshape, reshape},
    {Op::alias, alias},
    {Op::detach, alias},
    {Op::lift_fresh, alias},
    {Op::t, transpose},
    {Op::transpose_int, transpose},
    {Op::permute, permute},
    {Op::expand, expand},
    {Op::unsqueeze, unsqueeze},
    {Op::squeeze, squeeze},
    {Op::squeeze_dim, squeeze},
    {Op::squeeze_dims, squeeze},
    {Op::slice_Tensor, slice},
    {Op::select_int, select},
    {Op::unbind_int, unbind},
    {Op::split_Tensor, split},
    {Op::split_with_sizes, split},
    {Op::chunk, split},
    {Op::diagonal, diagonal},
    {Op::unfold, unfold},
};

}  // namespace

std::span<const RuleRow> view_rules() { return kRows; }

}  // namespace braze::loop
