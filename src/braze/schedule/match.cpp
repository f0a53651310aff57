// Two mixed radix systems over the same elements are brought to a common refinement, innermost digits first.
#include "braze/schedule/match.h"

#include <algorithm>

#include "braze/schedule/access.h"

namespace braze::schedule {
namespace {

struct Digit {
  std::string name;
  SymExpr extent;
};
using Digits = std::vector<Digit>;  // outermost first

std::vector<std::string> names_of(const Digits& digits) {
  std::vector<std::string> names;
  for (const Digit& d : digits) names.push_back(d.name);
  return names;
}

/// The step of the innermost digit: the smallest coefficient that is not 0.
SymExpr step_of(const Linear& position) {
  std::optional<std::int64_t> step;
  for (const SymExpr& c : position.coefficients) {
    const auto value = c.maybe_constant();
    if (value && *value > 0 && (!step || *value < *step)) step = value;
  }
  return step.value_or(1);
}

/// The digits of a mixed radix number whose innermost one counts `size`, as far as they go.
Digits digits_of(const Linear& position, const Digits& candidates, SymExpr size) {
  Digits found;
  std::vector<bool> used(candidates.size());
  for (;;) {
    std::size_t k = 0;
    while (k < candidates.size() && (used[k] || position.coefficients[k] != size)) ++k;
    if (k == candidates.size()) return found;
    used[k] = true;
    found.insert(found.begin(), candidates[k]);
    size = size * candidates[k].extent;
  }
}

std::size_t digit_count(const Linear& position) {
  return static_cast<std::size_t>(
      std::ranges::count_if(position.coefficients, [](const SymExpr& c) { return !c.is_value(0); }));
}

Digits without(const Digits& all, const Digits& some) {
  Digits rest;
  for (const Digit& d : all)
    if (std::ranges::none_of(some, [&](const Digit& s) { return s.name == d.name; })) rest.push_back(d);
  return rest;
}

struct Matcher {
  std::vector<std::string> names;  // of the operator's variables
  Match out;
  int fresh = 0;

  void assign(const std::string& variable, const SymExpr& piece, const SymExpr& scale) {
    const auto k = static_cast<std::size_t>(std::ranges::find(names, variable) - names.begin());
    out.variables[k] = out.variables[k] + piece * scale;
  }

  // Cuts `size` off the inner end of the axis; returns the inner part and leaves the outer part in `axis`.
  Digit cut(Digit& axis, const SymExpr& size) {
    const SymExpr rest = floor_div(axis.extent, size);
    Split split{axis.name, axis.name + "a", axis.name + "b", rest, size};
    const Digit inner{split.inner, size};
    for (SymExpr& v : out.variables) v = apply({split}, v);
    axis = Digit{split.outer, rest};
    out.splits.push_back(std::move(split));
    return inner;
  }

  bool align(Digits variables, Digits axes) {
    SymExpr scale = 1;  // of the next piece of the innermost variable left
    while (!variables.empty() && !axes.empty()) {
      Digit& v = variables.back();
      Digit& a = axes.back();
      const auto vc = v.extent.maybe_constant(), ac = a.extent.maybe_constant();
      if (v.extent == a.extent) {
        assign(v.name, SymExpr::symbol(a.name), scale);
        variables.pop_back();
        axes.pop_back();
        scale = 1;
      } else if (vc && ac && 0 < *vc && *vc < *ac && *ac % *vc == 0) {
        assign(v.name, SymExpr::symbol(cut(a, v.extent).name), scale);
        variables.pop_back();
        scale = 1;
      } else if (vc && ac && 0 < *ac && *ac < *vc && *vc % *ac == 0) {
        assign(v.name, SymExpr::symbol(a.name), scale);
        scale = scale * *ac;
        v.extent = *vc / *ac;
        axes.pop_back();
      } else {
        return false;
      }
    }
    return variables.empty() && axes.empty();
  }
};

}  // namespace

SymExpr apply(const std::vector<Split>& splits, SymExpr e) {
  for (const Split& s : splits)
    e = substitute(e, [&](std::string_view name) -> std::optional<SymExpr> {
      if (name != s.axis) return std::nullopt;
      return SymExpr::symbol(s.outer) * s.size + SymExpr::symbol(s.inner);
    });
  return e;
}

void apply(const std::vector<Split>& splits, Group& group) {
  for (const Split& s : splits) {
    const auto at = std::ranges::find(group.axes, s.axis, &Axis::name);
    const bool outer = at->outer;
    *at = Axis{s.inner, s.size, outer};
    group.axes.insert(at, Axis{s.outer, s.outer_extent, outer});
  }
  if (splits.empty()) return;
  for (Member& m : group.members)
    for (SymExpr& v : m.variables) v = apply(splits, v);
}

sym::Ranges ranges_of(const std::vector<Axis>& axes) {
  sym::Ranges ranges;
  for (const Axis& a : axes) ranges.push_back(sym::index_range(a.name, a.extent));
  return ranges;
}

std::optional<Match> match(const loop::LoopOp& op, const Group& group, const Meeting& meeting, bool leave_axes) {
  Matcher m;
  m.names = variable_names(op);
  const auto extents = variable_extents(op);
  m.out.variables.resize(m.names.size());
  Digits variables, axes;
  for (std::size_t k = 0; k < m.names.size(); ++k)
    if (!extents[k].is_value(1)) variables.push_back({m.names[k], extents[k]});
  for (const Axis& a : group.axes) axes.push_back({a.name, a.extent});
  const auto read = linear_in(meeting.of_operator, names_of(variables));
  const auto made = linear_in(meeting.of_group, names_of(axes));
  if (!read || !made) return std::nullopt;
  const Digits mine = digits_of(*read, variables, step_of(*read)), theirs = digits_of(*made, axes, step_of(*read));
  if (mine.size() != digit_count(*read) || !m.align(mine, theirs)) return std::nullopt;
  const Digits other_variables = without(variables, mine), other_axes = without(axes, theirs);
  if (other_variables.empty() && (leave_axes || other_axes.empty())) return m.out;
  if (!m.align(other_variables, other_axes)) return std::nullopt;
  return m.out;
}

}  // namespace braze::schedule
