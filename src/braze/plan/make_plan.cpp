// Tensors that library operators might alias, and outputs, get storage of their own; all else lies in the arena.
#include "braze/plan/make_plan.h"

#include <algorithm>
#include <map>

#include "braze/codegen/emit.h"
#include "braze/plan/arena.h"
#include "braze/schedule/access.h"
#include "braze/schedule/depend.h"
#include "braze/support/hash.h"

namespace braze::plan {
namespace {

using loop::TensorId;
using schedule::Form;
using schedule::Group;

constexpr std::size_t kForever = SIZE_MAX;

bool is_pure(const graph::Node& node) {
  return node.op != op::Op::kOther && op::info(node.op).effect == op::Effect::pure;
}

/// Library operators whose result may be written where the plan says.
bool writes_in_place(const graph::Node& node) {
  return node.name == "aten::mm" || node.name == "aten::addmm" || node.name == "aten::bmm" ||
         node.name == "aten::baddbmm";
}

class Planner {
 public:
  Planner(const schedule::Schedule& s, std::vector<kernel::Tiled> tiled) : s_(s), tiled_(std::move(tiled)) {}

  Plan run() {
    start();
    find_lifetimes();
    std::size_t next = 0;
    for (std::size_t g = 0; g < s_.groups.size(); ++g) {
      if (s_.groups[g].form == Form::external) call(g);
      else launch(g, tiled_[next++]);
      for (TensorId t : dies_at_[g]) plan_.steps.emplace_back(Free{t});
    }
    plan_.arena_bytes = arena_.size();
    return std::move(plan_);
  }

 private:
  const loop::LoopProgram& program() const { return s_.program; }

  void start() {
    plan_.name = program().name;
    plan_.symbols = program().symbols;
    plan_.inputs = program().inputs;
    plan_.outputs = program().outputs;
    plan_.opaques = program().opaques;
    for (const loop::Tensor& t : program().tensors) {
      Buffer b{t.name, t.type, {}, t.offset};
      if (!t.base.is_none()) {
        b.base = schedule::base_of(program(), t.base);
        for (TensorId up = t.base; !program().tensors[up.index].base.is_none(); up = program().tensors[up.index].base)
          b.offset = b.offset + program().tensors[up.index].offset;
      }
      plan_.buffers.push_back(std::move(b));
    }
  }

  void find_lifetimes() {
    const std::size_t n = program().tensors.size();
    last_use_.assign(n, 0);
    own_storage_.assign(n, false);
    made_at_.assign(n, kForever);
    is_static_ = true;
    for (std::size_t t = 0; t < n; ++t)
      if (s_.stored[t] && !program().tensors[t].type.numel().is_constant()) is_static_ = false;
    std::size_t next = 0;
    for (std::size_t g = 0; g < s_.groups.size(); ++g) {
      const loop::LoopOp& op = program().ops[s_.groups[g].members[0].op];
      if (s_.groups[g].form == Form::external) {
        const bool pure = is_pure(op.node);
        graph::for_each_operand(op.node, [&](TensorId t) {
          use(t, g);
          if (!pure) own_storage_[base(t).index] = true;
        });
        for (TensorId t : op.results) {
          if (t.is_none()) continue;
          make(t, g);
          if (!writes_in_place(op.node)) own_storage_[base(t).index] = true;
        }
      } else {
        for (const kernel::Argument& a : tiled_[next++].arguments)
          if (a.kind == kernel::Argument::Kind::tensor) {
            use(a.tensor, g);
            if (is_made_by(a.tensor, s_.groups[g])) make(a.tensor, g);
          }
      }
    }
    for (TensorId t : program().inputs) last_use_[t.index] = kForever;
    for (TensorId t : program().outputs) {
      if (t.is_none()) continue;
      last_use_[base(t).index] = kForever;
      own_storage_[base(t).index] = true;
    }
    dies_at_.resize(s_.groups.size());
    for (std::size_t t = 0; t < n; ++t)
      if (made_at_[t] != kForever && last_use_[t] != kForever && (own_storage_[t] || !is_static_))
        dies_at_[last_use_[t]].push_back(TensorId(t));
  }

  TensorId base(TensorId t) const { return schedule::base_of(program(), t); }
  void use(TensorId t, std::size_t g) { last_use_[base(t).index] = std::max(last_use_[base(t).index], g); }
  void make(TensorId t, std::size_t g) {
    use(t, g);
    if (made_at_[base(t).index] == kForever) made_at_[base(t).index] = g;
  }
  bool is_made_by(TensorId t, const Group& g) const {
    const std::uint32_t op = s_.producer[t.index];
    return op != schedule::kNone &&
           std::ranges::any_of(g.members, [&](const schedule::Member& m) { return m.op == op; });
  }

  void allocate(TensorId t, std::size_t g) {
    Alloc a{t, -1};
    if (is_static_ && !own_storage_[t.index])
      a.arena_offset = arena_.place(bytes_of(program().tensors[t.index].type), g, last_use_[t.index]);
    plan_.steps.emplace_back(a);
  }

  /// Of the memory that the strides span.
  static std::int64_t bytes_of(const TensorType& type) {
    std::int64_t last = 0;
    for (std::size_t d = 0; d < type.dim(); ++d) {
      if (type.sizes[d].is_value(0)) return 0;
      last += (type.sizes[d].constant() - 1) * type.strides[d].constant();
    }
    return (last + 1) * op::bytes(type.dtype);
  }

  void call(std::size_t g) {
    const loop::LoopOp& op = program().ops[s_.groups[g].members[0].op];
    for (TensorId t : op.results)
      if (!t.is_none() && program().tensors[t.index].base.is_none() && !own_storage_[t.index] && is_static_)
        allocate(t, g);
    Call c{op.node.op, op.node.name, op.node.args, {}, op.node.returns_list};
    c.results.assign(op.results.begin(), op.results.end());
    plan_.steps.emplace_back(std::move(c));
  }

  void launch(std::size_t g, kernel::Tiled& t) {
    for (const kernel::Argument& a : t.arguments)
      if (a.kind == kernel::Argument::Kind::tensor && is_made_by(a.tensor, s_.groups[g])) allocate(a.tensor, g);
    Launch l;
    l.kernel = kernel_id(t);
    const std::vector<BufferId> workspaces = allocate_workspaces(t, g);
    for (const kernel::Argument& a : t.arguments)
      l.buffers.push_back(a.kind == kernel::Argument::Kind::tensor ? a.tensor : workspaces[a.workspace]);
    l.integers = t.integers;
    l.extent = t.extent;
    l.grain = t.slots ? SymExpr(1) : t.grain;
    l.slots = t.slots;
    l.checks = t.checks;
    plan_.steps.emplace_back(l);
    if (!t.kernel.fold.empty()) {
      l.integers.back() = 1;
      l.extent = t.fold_extent;
      l.grain = t.fold_grain;
      l.slots = false;
      plan_.steps.emplace_back(std::move(l));
    }
    if (!is_static_)
      for (BufferId w : workspaces) plan_.steps.emplace_back(Free{w});
  }

  std::vector<BufferId> allocate_workspaces(const kernel::Tiled& t, std::size_t g) {
    std::vector<BufferId> ids;
    for (const kernel::Workspace& w : t.workspaces) {
      const BufferId id(plan_.buffers.size());
      plan_.buffers.push_back({support::format("workspace{}", id.index), op::contiguous(w.type, {w.elements}), {}, 0});
      Alloc a{id, -1};
      if (is_static_) a.arena_offset = arena_.place(w.elements.constant() * op::bytes(w.type), g, g);
      plan_.steps.emplace_back(a);
      ids.push_back(id);
    }
    return ids;
  }

  KernelId kernel_id(kernel::Tiled& t) {
    const std::string anonymous = codegen::emit_cpp(t.kernel, "");
    const auto [it, fresh] = known_.try_emplace(anonymous, KernelId(plan_.kernels.size()));
    if (!fresh) return it->second;
    Kernel k;
    k.source_key = support::format("{:016x}{:016x}", support::hash_bytes(anonymous),
                                   support::hash_bytes(anonymous, anonymous.size()));
    k.name = "k_" + k.source_key;
    k.source = codegen::emit_cpp(t.kernel, k.name);
    t.kernel.name = k.name;
    k.summary = kernel::to_text(t.kernel);
    k.origins = t.origins;
    plan_.kernels.push_back(std::move(k));
    return it->second;
  }

  const schedule::Schedule& s_;
  std::vector<kernel::Tiled> tiled_;
  Plan plan_;
  Arena arena_;
  bool is_static_ = true;
  std::vector<std::size_t> last_use_, made_at_;  // by base tensor, in groups
  std::vector<bool> own_storage_;                // a tensor of its own, not in the arena
  std::vector<std::vector<TensorId>> dies_at_;
  std::map<std::string, KernelId> known_;
};

}  // namespace

Plan make_plan(const schedule::Schedule& s, std::vector<kernel::Tiled> tiled) {
  return Planner(s, std::move(tiled)).run();
}

}  // namespace braze::plan
