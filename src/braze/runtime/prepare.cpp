#include "braze/runtime/prepare.h"

#include <algorithm>
#include <bit>

#include "braze/aten/types.h"
#include "braze/support/check.h"

namespace braze::runtime {

using plan::BufferId;

namespace {

using Kind = PreparedStep::Kind;

class Preparation {
 public:
  Preparation(const plan::Plan& plan, std::span<const LoadedKernel> kernels) : plan_(plan), kernels_(kernels) {}

  Prepared run() {
    for (const plan::Buffer& b : plan_.buffers) add_layout(b);
    find_used();
    allocated_.resize(plan_.buffers.size());
    for (const plan::Step& step : plan_.steps) std::visit([this](const auto& s) { add(s); }, step);
    out_.inputs = plan_.inputs;
    out_.outputs = plan_.outputs;
    out_.arena_bytes = plan_.arena_bytes;
    free_inputs();
    return std::move(out_);
  }

 private:
  void add_layout(const plan::Buffer& b) {
    BRAZE_CHECK(b.type.device.kind == op::Device::Kind::kCpu, "buffer {} is on {}: plans run on the CPU", b.name,
                op::to_text(b.type.device));
    Layout l{aten::to_ints(b.type.sizes), aten::to_ints(b.type.strides), aten::to_scalar_type(b.type.dtype),
             static_cast<std::uint32_t>(out_.layouts.size())};
    if (!b.base.is_none()) {
      const plan::Buffer& base = plan_.buffers[b.base.index];
      BRAZE_CHECK(base.base.is_none(), "base {} of view {} is itself a view", base.name, b.name);
      l.root = b.base.index;
      l.byte_offset = b.offset.constant() * op::bytes(base.type.dtype);
    }
    out_.layouts.push_back(std::move(l));
  }

  /// Most buffers of a large plan live in registers only: nothing of theirs is looked at again.
  void find_used() {
    std::vector<bool> used(plan_.buffers.size());
    const auto mark = [&](BufferId b) {
      if (!b.is_none()) used[b.index] = used[out_.layouts[b.index].root] = true;
    };
    std::ranges::for_each(plan_.inputs, mark);
    std::ranges::for_each(plan_.outputs, mark);
    for (const plan::Step& step : plan_.steps) {
      if (const auto* a = std::get_if<plan::Alloc>(&step)) mark(a->buffer);
      if (const auto* l = std::get_if<plan::Launch>(&step)) std::ranges::for_each(l->buffers, mark);
      if (const auto* c = std::get_if<plan::Call>(&step)) {
        std::ranges::for_each(c->results, mark);
        graph::for_each_operand(*c, mark);
      }
    }
    by_root_.resize(used.size());
    for (std::uint32_t b = 0; b < used.size(); b++) {
      if (!used[b]) continue;
      out_.used.push_back(b);
      by_root_[out_.layouts[b].root].push_back(b);
    }
  }

  void step(Kind kind, std::size_t index) { out_.steps.push_back({kind, static_cast<std::uint32_t>(index)}); }

  void add(const plan::Alloc& a) {
    allocated_[a.buffer.index] = true;
    if (a.arena_offset < 0) return step(Kind::kAllocate, a.buffer.index);
    out_.layouts[a.buffer.index].arena_offset = a.arena_offset;
  }
  void add(const plan::View&) {}  // made when a call or an output first names it
  void add(const plan::Launch& l) {
    PreparedLaunch p;
    p.kernel = kernels_[l.kernel.index];
    for (const BufferId b : l.buffers)
      p.operands.push_back({out_.layouts[b.index].root, out_.layouts[b.index].byte_offset});
    p.arguments = aten::to_ints(l.integers);
    for (const double d : l.doubles) p.arguments.push_back(std::bit_cast<std::int64_t>(d));
    p.extent = l.extent.constant();
    p.grain = std::max<std::int64_t>(1, l.grain.constant());
    p.checks = l.checks;
    if (p.extent <= 0) return;
    step(Kind::kLaunch, out_.launches.size());
    out_.launches.push_back(std::move(p));
  }
  void add(const plan::Call& c) {
    std::size_t in_place = 0;
    for (const BufferId r : c.results) in_place += !r.is_none() && allocated_[out_.layouts[r.index].root];
    BRAZE_CHECK(in_place == 0 || in_place == c.results.size(), "some results of {} have memory and some have not",
                c.name);
    step(Kind::kCall, out_.calls.size());
    out_.calls.emplace_back(c, in_place > 0);
  }
  void add(const plan::Free& f) {
    if (out_.layouts[f.buffer.index].arena_offset >= 0) return;
    for (const std::uint32_t b : by_root_[f.buffer.index]) step(Kind::kFree, b);
  }

  /// Inputs die after their last use, as saved tensors do in eager: the caller may have handed over the only reference.
  void free_inputs() {
    std::vector<bool> kept(plan_.buffers.size(), true);
    for (const BufferId b : plan_.inputs) kept[b.index] = false;
    for (const BufferId b : plan_.outputs)
      if (!b.is_none()) kept[out_.layouts[b.index].root] = true;
    std::vector<PreparedStep> reversed;
    for (std::size_t i = out_.steps.size(); i-- > 0;) {
      const PreparedStep s = out_.steps[i];
      for_each_root(s, [&](std::uint32_t root) {
        if (kept[root]) return;
        kept[root] = true;
        for (const std::uint32_t b : by_root_[root]) reversed.push_back({Kind::kFree, b});
      });
      reversed.push_back(s);
    }
    out_.steps.assign(reversed.rbegin(), reversed.rend());
  }
  template <class Visit>
  void for_each_root(PreparedStep s, Visit visit) const {
    if (s.kind == Kind::kLaunch)
      for (const auto& operand : out_.launches[s.index].operands) visit(operand.root);
    if (s.kind == Kind::kCall)
      for (const std::uint32_t b : out_.calls[s.index].operands()) visit(out_.layouts[b].root);
  }

  const plan::Plan& plan_;
  std::span<const LoadedKernel> kernels_;
  std::vector<bool> allocated_;
  std::vector<std::vector<std::uint32_t>> by_root_;  ///< used buffers in the same memory
  Prepared out_;
};

}  // namespace

Prepared prepare(const plan::Plan& plan, std::span<const LoadedKernel> kernels) {
  return Preparation(plan, kernels).run();
}

}  // namespace braze::runtime
