// Greedy: operators in program order; each joins the group with which it shares most memory traffic, or founds one.
#include <algorithm>

#include "braze/schedule/access.h"
#include "braze/schedule/depend.h"
#include "braze/schedule/order.h"
#include "braze/schedule/roles.h"

namespace braze::schedule {
namespace {

constexpr std::size_t kMaxNodes = 400;   // of all bodies of a group
constexpr std::size_t kMaxBuffers = 28;  // that a kernel reads and writes
constexpr std::size_t kMaxReaders = 4;   // groups tried for a shared operand
constexpr int kMaxRecompute = 40;        // weight of a body computed again at another point

struct Candidate {
  std::size_t group;
  std::int64_t bytes;  // saved
  Meeting meeting;
  bool depends;  // on a tensor of the group, rather than sharing an operand
};

struct Reader {
  std::size_t group;
  std::uint32_t op, node;
};

class Fuser {
 public:
  Fuser(LoopProgram program, const support::Target& target, support::Observer& observer)
      : p_(std::move(program)), target_(target), observer_(observer), uses_(find_uses(p_)) {
    group_of_.assign(p_.ops.size(), kNone);
    readers_.resize(p_.tensors.size());
  }

  Schedule run() {
    for (std::uint32_t k = 0; k < p_.ops.size(); ++k) place(k);
    return finish(std::move(p_), std::move(groups_), group_of_, uses_);
  }

 private:
  const loop::LoopOp& op(std::uint32_t k) const { return p_.ops[k]; }
  bool is_loop(const loop::LoopOp& o) const { return o.kind == loop::Kind::map || o.kind == loop::Kind::reduce; }

  void place(std::uint32_t k) {
    if (is_loop(op(k)))
      for (const Candidate& c : candidates(k))
        if (join(k, c)) return;
    found(k);
  }

  std::string name(std::uint32_t k) const {
    const TensorId t = op(k).results.front();
    return (t.is_none() ? std::string("none") : "%" + p_.tensors[t.index].name) + " (" + op(k).origin + ")";
  }

  Member* member_of(std::uint32_t k) {
    Group& g = groups_[group_of_[k]];
    const auto it = std::ranges::find(g.members, k, &Member::op);
    return it == g.members.end() ? nullptr : &*it;
  }

  SymExpr at_axes(const SymExpr& e, const Member& m, const Group& g) const {
    const std::size_t space = op(m.op).space.size();
    const SymExpr moved = substitute(e, [&](std::string_view name) -> std::optional<SymExpr> {
      if (name.size() < 2 || (name[0] != 'i' && name[0] != 'r') || name[1] < '0' || name[1] > '9') return std::nullopt;
      const std::size_t k = std::stoul(std::string(name.substr(1))) + (name[0] == 'r' ? space : 0);
      return k < m.variables.size() ? std::optional(m.variables[k]) : std::nullopt;
    });
    return sym::simplify(moved, ranges_of(g.axes));
  }

  /// The position in tensor t that member m writes.
  SymExpr result_position(TensorId t, const Member& m) const {
    return linear_position(p_.tensors[t.index].type,
                           std::span<const SymExpr>(m.variables).first(op(m.op).space.size()));
  }

  std::int64_t bytes_of(TensorId t) const {
    const op::TensorType& type = p_.tensors[t.index].type;
    return estimate(type.numel(), p_) * op::bytes(type.dtype);
  }

  std::vector<Candidate> candidates(std::uint32_t k) {
    std::vector<Candidate> found;
    const auto add = [&](Candidate c) {
      const auto it =
          std::ranges::find_if(found, [&](const Candidate& o) { return o.group == c.group && o.depends == c.depends; });
      if (it == found.end()) {
        found.push_back(std::move(c));
      } else {
        it->bytes += c.bytes;
        if (c.bytes > it->bytes - c.bytes) it->meeting = std::move(c.meeting);
      }
    };
    for (const loop::Scalar& s : op(k).body.nodes) {
      if (s.op != loop::ScalarOp::load) continue;
      const TensorId t = s.tensor;
      const SymExpr mine = load_position(p_, op(k), s);
      const std::uint32_t made = uses_.producer[t.index];
      if (made != kNone && is_loop(op(made))) {
        const Member& m = *member_of(made);
        add({group_of_[made], 2 * bytes_of(t), {mine, result_position(t, m)}, true});
      }
      if (estimate(p_.tensors[t.index].type.numel(), p_) < iterations(op(k))) continue;  // a broadcast: little to share
      std::size_t tried = 0;
      for (auto r = readers_[t.index].rbegin(); r != readers_[t.index].rend() && tried < kMaxReaders; ++r, ++tried) {
        const Member& m = *member_of(r->op);
        const SymExpr theirs = at_axes(linear_position(p_.tensors[t.index].type, op(r->op).body.nodes[r->node].indices),
                                       m, groups_[r->group]);
        add({r->group, bytes_of(t), {mine, theirs}, false});
      }
    }
    std::ranges::stable_sort(found, [](const Candidate& a, const Candidate& b) {
      return std::pair(a.depends, a.bytes) > std::pair(b.depends, b.bytes);
    });
    return found;
  }

  bool refuse(std::uint32_t k, const Candidate& c, std::string_view reason) {
    if (c.depends)
      observer_.refuse(
          support::format("{} is not fused with {}: {}", name(k), name(groups_[c.group].members[0].op), reason));
    return false;
  }

  bool join(std::uint32_t k, const Candidate& c) {
    if (makes_cycle(k, c.group)) return refuse(k, c, "a group between them depends on one and feeds the other");
    if (nodes_[c.group] + op(k).body.nodes.size() > kMaxNodes)
      return refuse(k, c, "the kernel would have too many operations");
    if (buffers_with(k, c.group) > kMaxBuffers) return refuse(k, c, "the kernel would have too many operands");
    const bool folded = reads_folded(k, c.group);
    if (folded && op(k).kind == loop::Kind::reduce) return refuse(k, c, "a reduction of a folded reduction");
    const auto m = match(op(k), groups_[c.group], c.meeting, true);
    if (!m) return refuse(k, c, "its loop variables do not lie in the group's axes");
    Group grown = groups_[c.group];
    apply(m->splits, grown);
    if (!c.depends && at_axes(c.meeting.of_operator, {k, Role::full, m->variables}, grown) !=
                          sym::simplify(apply(m->splits, c.meeting.of_group), ranges_of(grown.axes)))
      return false;  // reads other elements of the operand
    std::optional<Role> role;
    if (folded) {
      role = fold_role(k, *m, grown);
      if (!role) return refuse(k, c, "reads a folded reduction at other points");
    } else {
      const Fit f = fit(p_, op(k), m->variables, grown, target_);
      if (!f.role) return refuse(k, c, f.reason);
      role = f.role;
    }
    grown.members.push_back({k, *role, m->variables});
    if (!folded && !reads_at_its_point(grown)) return refuse(k, c, "reads the group's values at other points");
    groups_[c.group] = std::move(grown);
    settle(k, c.group);
    return true;
  }

  std::int64_t iterations(const loop::LoopOp& o) const {
    return estimate(sym::product(o.space) * sym::product(o.reduced), p_);
  }

  bool makes_cycle(std::uint32_t k, std::size_t group) const {
    for (TensorId t : reads_of(p_, op(k))) {
      const std::uint32_t made = uses_.producer[t.index];
      if (made != kNone && group_of_[made] != group && reach_.has(group_of_[made], group)) return true;
    }
    return false;
  }

  std::size_t buffers_with(std::uint32_t k, std::size_t group) const {
    std::size_t fresh = op(k).results.size();
    for (TensorId t : reads_of(p_, op(k)))
      if (std::ranges::find(touched_[group], t) == touched_[group].end()) ++fresh;
    return touched_[group].size() + fresh;
  }

  static bool is_folded(Role r) { return r == Role::column || r == Role::total || r == Role::folded; }

  bool reads_folded(std::uint32_t k, std::size_t group) {
    return std::ranges::any_of(reads_of(p_, op(k)), [&](TensorId t) {
      const std::uint32_t made = uses_.producer[t.index];
      return made != kNone && group_of_[made] == group && is_folded(member_of(made)->role);
    });
  }

  /// A map of folded results alone, each at its own point, over all of their space.
  std::optional<Role> fold_role(std::uint32_t k, const Match& m, const Group& g) const {
    const Member mine{k, Role::folded, m.variables};
    for (const loop::Scalar& s : op(k).body.nodes) {
      if (s.op != loop::ScalarOp::load) continue;
      const std::uint32_t made = uses_.producer[s.tensor.index];
      const auto it = std::ranges::find(g.members, made, &Member::op);
      if (it == g.members.end()) continue;
      if (!is_folded(it->role) || !same_space(op(k).space, op(made).space)) return std::nullopt;
      if (position_of_load(s, mine, g) != position_of_result(s.tensor, *it, g)) return std::nullopt;
    }
    return Role::folded;
  }

  static bool same_space(std::vector<SymExpr> a, std::vector<SymExpr> b) {
    std::erase_if(a, [](const SymExpr& e) { return e.is_value(1); });
    std::erase_if(b, [](const SymExpr& e) { return e.is_value(1); });
    return sym::product(a) == sym::product(b);
  }

  SymExpr position_of_load(const loop::Scalar& s, const Member& m, const Group& g) const {
    return at_axes(linear_position(p_.tensors[s.tensor.index].type, s.indices), m, g);
  }
  SymExpr position_of_result(TensorId t, const Member& m, const Group& g) const {
    return sym::simplify(result_position(t, m), ranges_of(g.axes));
  }

  /// The last member reads reductions of the group at its own row, and computes little again.
  bool reads_at_its_point(const Group& g) const {
    const Member& m = g.members.back();
    for (const loop::Scalar& s : op(m.op).body.nodes) {
      if (s.op != loop::ScalarOp::load) continue;
      const std::uint32_t made = uses_.producer[s.tensor.index];
      const auto it = std::ranges::find(g.members, made, &Member::op);
      if (made == kNone || it == g.members.end()) continue;
      if (position_of_load(s, m, g) == position_of_result(s.tensor, *it, g)) continue;
      if (recompute_weight(made, g) > kMaxRecompute) return false;
    }
    return true;
  }

  /// What it costs to compute a member again at another point, with all of the group that it is made from; reductions
  /// of the group, and what is computed once a row, exist at the group's own point only: more than any limit.
  int recompute_weight(std::uint32_t made, const Group& g) const {
    const auto it = std::ranges::find(g.members, made, &Member::op);
    if (it->role != Role::full) return kMaxRecompute + 1;
    int total = weight(op(made).body);
    for (TensorId t : reads_of(p_, op(made))) {
      const std::uint32_t from = uses_.producer[t.index];
      if (from == kNone || std::ranges::find(g.members, from, &Member::op) == g.members.end()) continue;
      if (total <= kMaxRecompute) total += recompute_weight(from, g);
    }
    return total;
  }

  void found(std::uint32_t k) {
    Group g;
    Member m{k, Role::full, {}};
    const loop::LoopOp& o = op(k);
    g.form = is_loop(o) ? Form::loops : o.kind == loop::Kind::scatter ? Form::scatter : Form::external;
    if (g.form != Form::external) {
      const auto names = variable_names(o);
      const auto extents = variable_extents(o);
      for (std::size_t v = 0; v < names.size(); ++v) {
        if (extents[v].is_value(1)) {
          m.variables.emplace_back(0);
          continue;
        }
        g.axes.push_back({support::format("g{}", g.axes.size()), extents[v], false});
        m.variables.push_back(SymExpr::symbol(g.axes.back().name));
      }
    }
    if (o.kind == loop::Kind::reduce) m.role = *fit(p_, o, m.variables, g, target_).role;
    g.members.push_back(std::move(m));
    groups_.push_back(std::move(g));
    nodes_.push_back(0);
    touched_.emplace_back();
    reach_.add();
    settle(k, groups_.size() - 1);
  }

  void settle(std::uint32_t k, std::size_t group) {
    group_of_[k] = static_cast<std::uint32_t>(group);
    nodes_[group] += op(k).body.nodes.size();
    const auto reads = reads_of(p_, op(k));
    for (TensorId t : reads) {
      const std::uint32_t made = uses_.producer[t.index];
      if (made != kNone) reach_.depend(group, group_of_[made]);
      if (std::ranges::find(touched_[group], t) == touched_[group].end()) touched_[group].push_back(t);
    }
    for (TensorId t : op(k).results) touched_[group].push_back(t);
    if (groups_[group].form != Form::loops) {
      keep_order(k, group);
      return;
    }
    for (std::uint32_t n = 0; n < op(k).body.nodes.size(); ++n) {
      const loop::Scalar& s = op(k).body.nodes[n];
      if (s.op != loop::ScalarOp::load) continue;
      auto& readers = readers_[s.tensor.index];
      if (std::ranges::find(readers, group, &Reader::group) == readers.end()) readers.push_back({group, k, n});
    }
  }

  /// Operators with effects (random ones too) run in program order.
  void keep_order(std::uint32_t k, std::size_t group) {
    if (op(k).kind != loop::Kind::external) return;
    if (op(k).node.op != op::Op::kOther) {
      const op::Effect e = op::info(op(k).node.op).effect;
      if (e == op::Effect::pure || e == op::Effect::view) return;
    }
    if (last_effect_ != kNone) reach_.depend(group, last_effect_);
    effects_.emplace_back(last_effect_, group);
    last_effect_ = static_cast<std::uint32_t>(group);
  }

  LoopProgram p_;
  const support::Target& target_;
  support::Observer& observer_;
  Uses uses_;
  std::vector<Group> groups_;
  std::vector<std::uint32_t> group_of_;
  std::vector<std::size_t> nodes_;
  std::vector<std::vector<TensorId>> touched_;
  std::vector<std::vector<Reader>> readers_;
  Reach reach_;
  std::uint32_t last_effect_ = kNone;
  std::vector<std::pair<std::uint32_t, std::size_t>> effects_;
};

}  // namespace

Schedule fuse(LoopProgram program, const support::Target& target, support::Observer& observer) {
  return Fuser(std::move(program), target, observer).run();
}

}  // namespace braze::schedule
