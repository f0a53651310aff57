// A map that other groups read is stored, unless computing it there again moves less memory.
#include "braze/schedule/order.h"

#include <algorithm>
#include <set>

#include "braze/schedule/access.h"
#include "braze/support/check.h"

namespace braze::schedule {
namespace {

constexpr int kCheapChain = 12;        // weight of maps computed again, along a chain
constexpr std::size_t kMaxCopies = 3;  // groups that compute it again
constexpr std::int64_t kSmall = 4096;  // elements; reading fewer costs little

struct Placer {
  const LoopProgram& p;
  const std::vector<std::uint32_t>& group_of;
  const Uses& uses;
  std::vector<bool> stored;                      // by tensor
  std::vector<std::set<std::uint32_t>> runs_in;  // by op: the groups that compute it
  std::vector<int> chain;                        // by op: weight that its results carry into other groups

  void decide(std::uint32_t k) {
    const loop::LoopOp& op = p.ops[k];
    const std::uint32_t own = group_of[k];
    std::set<std::uint32_t> readers;
    bool memory = op.kind == loop::Kind::external || op.kind == loop::Kind::scatter;
    int carried = 0;
    for (TensorId t : op.results) {
      if (t.is_none()) continue;
      memory = memory || uses.needs_memory[t.index];
      for (std::uint32_t c : uses.consumers[t.index]) {
        readers.insert(runs_in[c].begin(), runs_in[c].end());
        if (!is_stored(c)) carried = std::max(carried, chain[c]);
      }
    }
    const bool local = readers.empty() || (readers.size() == 1 && *readers.begin() == own);
    chain[k] = weight(op.body) + carried;
    if (!memory && local) {
      runs_in[k] = {own};
    } else if (!memory && op.kind == loop::Kind::map && is_cheap(op, readers, chain[k])) {
      runs_in[k] = std::move(readers);
      return;
    } else {
      runs_in[k] = {own};
      for (TensorId t : op.results)
        if (!t.is_none() && (memory || !local)) stored[t.index] = true;
    }
    if (stored_any(op)) chain[k] = 0;
  }

  bool stored_any(const loop::LoopOp& op) const {
    return std::ranges::any_of(op.results, [&](TensorId t) { return !t.is_none() && stored[t.index]; });
  }
  bool is_stored(std::uint32_t k) const { return stored_any(p.ops[k]); }

  bool is_cheap(const loop::LoopOp& op, const std::set<std::uint32_t>& readers, int weight_carried) const {
    if (readers.size() > kMaxCopies && !op.body.nodes.empty() && has_loads(op)) return false;
    const std::int64_t elements = estimate(sym::product(op.space), p);
    if (weight_carried > (elements <= kSmall ? 2 * kCheapChain : kCheapChain)) return false;
    int large = 0;
    for (TensorId t : reads_of(p, op))
      if (estimate(p.tensors[t.index].type.numel(), p) > kSmall) ++large;
    return large <= 1;
  }
  static bool has_loads(const loop::LoopOp& op) {
    return std::ranges::any_of(op.body.nodes, [](const loop::Scalar& s) { return s.op == loop::ScalarOp::load; });
  }
};

bool has_effect(const loop::LoopOp& op) {
  if (op.kind != loop::Kind::external) return false;
  if (op.node.op == op::Op::kOther) return true;
  const op::Effect e = op::info(op.node.op).effect;
  return e != op::Effect::pure && e != op::Effect::view;
}

std::vector<std::set<std::uint32_t>> dependencies(const Placer& at, std::size_t groups) {
  std::vector<std::set<std::uint32_t>> on(groups);
  std::uint32_t last_effect = kNone;
  for (std::uint32_t k = 0; k < at.p.ops.size(); ++k) {
    for (TensorId t : reads_of(at.p, at.p.ops[k])) {
      const std::uint32_t made = at.uses.producer[t.index];
      if (made == kNone || !at.stored[t.index]) continue;
      for (std::uint32_t g : at.runs_in[k])
        if (g != at.group_of[made]) on[g].insert(at.group_of[made]);
    }
    if (!has_effect(at.p.ops[k])) continue;
    if (last_effect != kNone) on[at.group_of[k]].insert(last_effect);
    last_effect = at.group_of[k];
  }
  return on;
}

/// Among the ready groups the one whose first member comes first in the program.
std::vector<std::uint32_t> topological(const std::vector<Group>& groups,
                                       const std::vector<std::set<std::uint32_t>>& on) {
  std::vector<std::size_t> waits(groups.size());
  std::vector<std::vector<std::uint32_t>> unlocks(groups.size());
  std::set<std::pair<std::uint32_t, std::uint32_t>> ready;  // (first op, group)
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    waits[g] = on[g].size();
    for (std::uint32_t d : on[g]) unlocks[d].push_back(g);
    if (waits[g] == 0) ready.emplace(groups[g].members.back().op, g);
  }
  std::vector<std::uint32_t> order;
  while (!ready.empty()) {
    const std::uint32_t g = ready.begin()->second;
    ready.erase(ready.begin());
    order.push_back(g);
    for (std::uint32_t u : unlocks[g])
      if (--waits[u] == 0) ready.emplace(groups[u].members.back().op, u);
  }
  BRAZE_CHECK(order.size() == groups.size(), "groups depend on each other in a cycle");
  return order;
}

}  // namespace

Schedule finish(LoopProgram program, std::vector<Group> groups, const std::vector<std::uint32_t>& group_of,
                const Uses& uses) {
  Placer at{program, group_of, uses, uses.needs_memory, {}, {}};
  at.runs_in.resize(program.ops.size());
  at.chain.resize(program.ops.size());
  for (auto k = static_cast<std::uint32_t>(program.ops.size()); k-- > 0;) at.decide(k);
  Schedule s;
  for (std::uint32_t g : topological(groups, dependencies(at, groups.size()))) {
    const bool kept = groups[g].form == Form::external ||
                      std::ranges::any_of(groups[g].members, [&](const Member& m) { return at.is_stored(m.op); });
    if (kept) s.groups.push_back(std::move(groups[g]));
  }
  s.stored = std::move(at.stored);
  s.producer = uses.producer;
  s.program = std::move(program);
  return s;
}

std::string to_text(const Schedule& s) {
  static constexpr std::string_view kRoles[] = {"full", "outer", "row", "column", "total", "folded"};
  static constexpr std::string_view kForms[] = {"loops", "scatter", "external"};
  std::string out = support::format("schedule @{} {{\n", s.program.name);
  for (const Group& g : s.groups) {
    out += support::format("  {} [", kForms[static_cast<int>(g.form)]);
    for (std::size_t k = 0; k < g.axes.size(); ++k)
      out += support::format("{}{} < {}{}", k ? ", " : "", g.axes[k].name, to_text(g.axes[k].extent),
                             g.axes[k].outer ? " outer" : "");
    out += g.by_lane ? "] by lane {\n" : "] {\n";
    for (const Member& m : g.members) {
      out += "   ";
      for (TensorId t : s.program.ops[m.op].results)
        out += t.is_none() ? " none"
                           : support::format(" %{}{}", s.program.tensors[t.index].name, s.stored[t.index] ? "!" : "");
      out += support::format(" {} (", kRoles[static_cast<int>(m.role)]);
      for (std::size_t k = 0; k < m.variables.size(); ++k)
        out += support::format("{}{}", k ? ", " : "", to_text(m.variables[k]));
      out += ")\n";
    }
    out += "  }\n";
  }
  return out + "}\n";
}

}  // namespace braze::schedule
