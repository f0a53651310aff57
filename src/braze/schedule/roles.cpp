// Rows where the reduced axes are contiguous, columns where the kept ones are and many rows are folded, else lanes.
#include "braze/schedule/roles.h"

#include <algorithm>

#include "braze/schedule/access.h"

namespace braze::schedule {
namespace {

using Mask = std::vector<bool>;

Mask axes_in(std::span<const SymExpr> variables, const Group& group) {
  Mask mask(group.axes.size());
  for (std::size_t k = 0; k < mask.size(); ++k)
    mask[k] = std::ranges::any_of(variables, [&](const SymExpr& v) { return mentions(v, group.axes[k].name); });
  return mask;
}
bool none(const Mask& m) { return std::ranges::none_of(m, std::identity{}); }
Mask outer_axes(const Group& g) {
  Mask mask;
  for (const Axis& a : g.axes) mask.push_back(a.outer);
  return mask;
}
Mask complement(Mask m) {
  m.flip();
  return m;
}
bool covers_all(const Mask& a, const Mask& b) {
  for (std::size_t k = 0; k < a.size(); ++k)
    if (!a[k] && !b[k]) return false;
  return true;
}

/// The address of a load over the group's axes.
std::optional<Linear> address_over_axes(const LoopProgram& p, const loop::LoopOp& op, const loop::Scalar& load,
                                        std::span<const SymExpr> variables, const Group& g) {
  const auto names = variable_names(op);
  const SymExpr at = substitute(address(p.tensors[load.tensor.index].type, load.indices),
                                [&](std::string_view name) -> std::optional<SymExpr> {
                                  const auto it = std::ranges::find(names, name);
                                  if (it == names.end()) return std::nullopt;
                                  return variables[static_cast<std::size_t>(it - names.begin())];
                                });
  std::vector<std::string> axes;
  for (const Axis& a : g.axes) axes.push_back(a.name);
  return linear_in(sym::simplify(at, ranges_of(g.axes)), axes);
}

/// The axis along which most memory is walked contiguously.
std::size_t contiguous_axis(const LoopProgram& program, const loop::LoopOp& op, std::span<const SymExpr> variables,
                            const Group& group) {
  std::vector<double> votes(group.axes.size());
  for (const loop::Scalar& s : op.body.nodes) {
    if (s.op != loop::ScalarOp::load) continue;
    const auto linear = address_over_axes(program, op, s, variables, group);
    for (std::size_t a = 0; linear && a < votes.size(); ++a)
      if (linear->coefficients[a].is_value(1))
        votes[a] += static_cast<double>(estimate(program.tensors[s.tensor.index].type.numel(), program));
  }
  std::size_t best = votes.empty() ? 0 : votes.size() - 1;
  for (std::size_t a = 0; a < votes.size(); ++a)
    if (votes[a] > votes[best]) best = a;
  return best;
}

std::int64_t extent_of(const Mask& mask, const Group& g, const LoopProgram& p) {
  std::int64_t product = 1;
  for (std::size_t k = 0; k < mask.size(); ++k)
    if (mask[k]) product *= estimate(g.axes[k].extent, p);
  return product;
}

void set_outer(Group& g, const Mask& outer) {
  for (std::size_t k = 0; k < outer.size(); ++k) g.axes[k].outer = outer[k];
  g.has_roles = true;
}

/// In memory every axis of `outside` steps over whole runs of the others.
bool lies_outside(const LoopProgram& p, const loop::LoopOp& op, const std::vector<SymExpr>& variables, const Group& g,
                  const Mask& outside) {
  for (const loop::Scalar& s : op.body.nodes) {
    if (s.op != loop::ScalarOp::load) continue;
    const auto linear = address_over_axes(p, op, s, variables, g);
    if (!linear) continue;
    std::int64_t inside = 0, least = INT64_MAX;
    for (std::size_t k = 0; k < outside.size(); ++k) {
      const std::int64_t step = estimate(linear->coefficients[k], p);
      if (step == 0) continue;
      if (outside[k]) least = std::min(least, step);
      else inside = std::max(inside, step);
    }
    if (least != INT64_MAX && inside != 0) return least > inside;
  }
  return false;
}

/// The first reduction of a group divides its axes.
Role decide(const LoopProgram& p, const loop::LoopOp& op, const std::vector<SymExpr>& variables, Group& g,
            const Mask& kept, const Mask& reduced) {
  const std::size_t inner = contiguous_axis(p, op, variables, g);
  const bool arg = op.fold == loop::Fold::argmax || op.fold == loop::Fold::argmin;
  if (none(kept) && !arg) {
    Mask outer(g.axes.size(), true);
    if (!g.axes.empty()) outer[inner] = false;
    set_outer(g, outer);
    return Role::total;
  }
  if (none(kept) || reduced[inner]) {
    set_outer(g, kept);
    return Role::row;
  }
  const bool reduced_outside = lies_outside(p, op, variables, g, reduced);
  if (!arg && reduced_outside && extent_of(reduced, g, p) >= 64 && extent_of(kept, g, p) <= 65536) {
    set_outer(g, reduced);
    return Role::column;
  }
  set_outer(g, kept);
  g.by_lane = true;
  return Role::row;
}

Fit fit_reduction(const LoopProgram& p, const loop::LoopOp& op, const std::vector<SymExpr>& variables, Group& g) {
  const std::span<const SymExpr> all(variables);
  const Mask kept = axes_in(all.first(op.space.size()), g), reduced = axes_in(all.subspan(op.space.size()), g);
  const bool arg = op.fold == loop::Fold::argmax || op.fold == loop::Fold::argmin;
  for (std::size_t k = 0; k < kept.size(); ++k)
    if (kept[k] && reduced[k]) return {std::nullopt, "a split axis is both kept and reduced"};
  if (!g.has_roles) {
    if (!covers_all(kept, reduced)) return {std::nullopt, "the reduction does not cover the group's space"};
    return {decide(p, op, variables, g, kept, reduced), ""};
  }
  const Mask outer = outer_axes(g), inner = complement(outer);
  if (kept == outer && reduced == inner) return {Role::row, ""};
  if (g.by_lane || arg) return {std::nullopt, "another kind of reduction in a group walked by lanes"};
  if (kept == inner && reduced == outer && !none(inner)) return {Role::column, ""};
  if (none(kept) && (reduced == outer || covers_all(reduced, reduced))) return {Role::total, ""};
  return {std::nullopt, "reduces other axes than the group"};
}

}  // namespace

Fit fit(const LoopProgram& program, const loop::LoopOp& op, const std::vector<SymExpr>& variables, Group& group,
        const support::Target& target) {
  if (op.kind == loop::Kind::reduce) return fit_reduction(program, op, variables, group);
  const Mask used = axes_in(variables, group);
  if (covers_all(used, used)) {
    const Mask outer = outer_axes(group);
    if (group.has_roles && extent_of(outer, group, program) < 2 * target.threads &&
        extent_of(complement(outer), group, program) > 32768)
      return {std::nullopt, "few long rows: one kernel would run on one thread"};
    return {Role::full, ""};
  }
  if (group.has_roles && used == outer_axes(group)) return {Role::outer, ""};
  return {std::nullopt, "a smaller space than the group's"};
}

}  // namespace braze::schedule
