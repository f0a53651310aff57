// Neighbouring axes merge where every access walks them as one; lanes go where most accesses are contiguous.
#include "braze/kernel/axes.h"

#include <algorithm>

namespace braze::kernel {

using schedule::Axis;
using schedule::Linear;

namespace {

struct Walk {
  std::optional<Linear> linear;  // over the axes' names
  SymExpr index;
  int weight;
};

struct Layouter {
  std::vector<Axis> axes;
  std::vector<Walk> walks;
  Layout out;

  std::vector<std::string> names() const {
    std::vector<std::string> n;
    for (const Axis& a : axes) n.push_back(a.name);
    return n;
  }

  void drop_unit_axes() {
    for (const Axis& a : axes)
      if (a.extent.is_value(1)) out.renames.emplace_back(a.name, SymExpr(0));
    std::erase_if(axes, [](const Axis& a) { return a.extent.is_value(1); });
  }

  void permute(const std::vector<std::size_t>& order) {
    std::vector<Axis> moved;
    for (std::size_t k : order) moved.push_back(axes[k]);
    for (Walk& w : walks) {
      if (!w.linear) continue;
      std::vector<SymExpr> c;
      for (std::size_t k : order) c.push_back(w.linear->coefficients[k]);
      w.linear->coefficients = std::move(c);
    }
    axes = std::move(moved);
  }

  // Outer axes first; within a kind by descending stride of the heaviest access that uses the axis.
  void sort() {
    std::vector<std::size_t> order(axes.size());
    std::vector<std::int64_t> stride(axes.size(), -1);
    int best = 0;
    for (const Walk& w : walks) best = std::max(best, w.weight);
    for (int weight = best; weight > 0; --weight)
      for (const Walk& w : walks)
        for (std::size_t k = 0; w.linear && w.weight == weight && k < axes.size(); ++k)
          if (const auto c = w.linear->coefficients[k].maybe_constant(); stride[k] < 0 && c && *c != 0)
            stride[k] = std::abs(*c);
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    const bool all_known = std::ranges::none_of(stride, [](std::int64_t s) { return s < 0; });
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      if (axes[a].outer != axes[b].outer) return axes[a].outer;
      return all_known && stride[a] > stride[b];
    });
    permute(order);
  }

  bool merges(std::size_t a, std::size_t b) const {
    if (axes[a].outer != axes[b].outer) return false;
    return std::ranges::all_of(walks, [&](const Walk& w) {
      if (!w.linear) return !schedule::mentions(w.index, axes[a].name) && !schedule::mentions(w.index, axes[b].name);
      return w.linear->coefficients[a] == w.linear->coefficients[b] * axes[b].extent;
    });
  }

  void merge() {
    for (std::size_t b = axes.size(); b-- > 1;) {
      if (!merges(b - 1, b)) continue;
      out.renames.emplace_back(axes[b - 1].name, SymExpr(0));
      axes[b - 1] = Axis{axes[b].name, axes[b - 1].extent * axes[b].extent, axes[b].outer};
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(b));
      for (Walk& w : walks)
        if (w.linear) w.linear->coefficients.erase(w.linear->coefficients.begin() + static_cast<std::ptrdiff_t>(b - 1));
    }
  }

  void pick_vector(const schedule::Group& group) {
    int best = INT_MIN;
    for (std::size_t k = 0; k < axes.size(); ++k) {
      if (group.has_roles && axes[k].outer != group.by_lane) continue;
      int votes = 0;
      for (const Walk& w : walks) {
        if (!w.linear) continue;
        const SymExpr& c = w.linear->coefficients[k];
        votes += c.is_value(0) ? 0 : c.is_value(1) ? 2 * w.weight : -w.weight;
      }
      if (const auto e = axes[k].extent.maybe_constant(); e && *e < 8) votes -= 4;
      if (votes < best) continue;
      best = votes;
      out.vector = static_cast<int>(k);
    }
  }
};

}  // namespace

Layout lay_out(const schedule::Group& group, const std::vector<Access>& accesses, const std::vector<SymExpr>& indices) {
  Layouter l;
  l.axes = group.axes;
  l.drop_unit_axes();
  const auto names = l.names();
  for (const Access& a : accesses) l.walks.push_back({schedule::linear_in(a.index, names), a.index, a.weight});
  for (const SymExpr& i : indices) l.walks.push_back({schedule::linear_in(i, names), i, 0});
  l.sort();
  l.merge();
  l.pick_vector(group);
  l.out.axes = std::move(l.axes);
  return std::move(l.out);
}

}  // namespace braze::kernel
