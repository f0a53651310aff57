// Text of plans, for dumps and golden tests; and their rules.
#include <variant>

#include "braze/graph/graph.h"
#include "braze/plan/plan.h"
#include "braze/support/check.h"

namespace braze::plan {
namespace {

using support::format;

struct Printer {
  const Plan& p;
  std::string out;

  std::string name(BufferId b) const { return b.is_none() ? "none" : "%" + p.buffers[b.index].name; }
  std::string list(const std::vector<BufferId>& ids) const {
    std::string text;
    for (BufferId b : ids) text += (text.empty() ? "" : ", ") + name(b);
    return text;
  }
  std::string typed(BufferId b) const { return format("{}: {}", name(b), op::to_text(p.buffers[b.index].type)); }

  void operator()(const Alloc& a) {
    out += format("  alloc {}{}\n", typed(a.buffer), a.arena_offset < 0 ? "" : format(" at {}", a.arena_offset));
  }
  void operator()(const View& v) { out += format("  view {}\n", typed(v.buffer)); }
  void operator()(const Launch& l) {
    std::string integers;
    for (const SymExpr& i : l.integers) integers += (integers.empty() ? "" : ", ") + to_text(i);
    out += format("  launch @{}({}; {}) over {}", p.kernels[l.kernel.index].name, list(l.buffers), integers,
                  to_text(l.extent));
    out += format(" grain {}{}{}\n", to_text(l.grain), l.slots ? " slots" : "", l.checks ? " checks" : "");
  }
  void operator()(const Call& c) {
    std::string operands;
    graph::for_each_operand(c, [&](BufferId b) { operands += (operands.empty() ? "" : ", ") + name(b); });
    out += format("  {} = call {}({})\n", list(c.results), c.name, operands);
  }
  void operator()(const Free& f) { out += format("  free {}\n", name(f.buffer)); }
};

}  // namespace

std::string to_text(const Plan& p) {
  Printer print{p, format("plan @{}(", p.name)};
  for (std::size_t k = 0; k < p.inputs.size(); ++k) print.out += (k ? ", " : "") + print.typed(p.inputs[k]);
  print.out += format(") -> ({}) {{\n", print.list(p.outputs));
  if (p.arena_bytes) print.out += format("  arena {}\n", p.arena_bytes);
  for (const Step& s : p.steps) std::visit(print, s);
  return print.out + "}\n";
}

namespace {

/// Every buffer is made before it is named and not named after it is freed.
struct Verifier {
  const Plan& p;
  std::string_view after;
  std::vector<bool> alive;

  void name(BufferId b) const {
    if (b.is_none()) return;
    BRAZE_CHECK(b.index < p.buffers.size(), "after {}: buffer {} of {}", after, b.index, p.buffers.size());
    const BufferId base = p.buffers[b.index].base.is_none() ? b : p.buffers[b.index].base;
    BRAZE_CHECK(p.buffers[base.index].base.is_none(), "after {}: %{} is a view of a view", after,
                p.buffers[b.index].name);
    BRAZE_CHECK(alive[base.index] || alive[b.index], "after {}: %{} is not alive", after, p.buffers[b.index].name);
  }
  void operator()(const Alloc& a) { alive[a.buffer.index] = true; }
  void operator()(const View& v) { name(v.buffer); }
  void operator()(const Launch& l) {
    BRAZE_CHECK(l.kernel.index < p.kernels.size(), "after {}: kernel {} of {}", after, l.kernel.index,
                p.kernels.size());
    for (BufferId b : l.buffers) name(b);
  }
  void operator()(const Call& c) {
    graph::for_each_operand(c, [&](BufferId b) { name(b); });
    for (BufferId b : c.results)
      if (!b.is_none()) alive[b.index] = true;
  }
  void operator()(const Free& f) { alive[f.buffer.index] = false; }
};

}  // namespace

void verify(const Plan& p, std::string_view after) {
  Verifier v{p, after, std::vector<bool>(p.buffers.size())};
  for (BufferId b : p.inputs) v.alive[b.index] = true;
  for (const Step& s : p.steps) std::visit(v, s);
  for (BufferId b : p.outputs) v.name(b);
}

}  // namespace braze::plan
