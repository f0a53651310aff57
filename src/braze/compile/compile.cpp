// One line per step.
#include "braze/compile/compile.h"

#include <chrono>

#include "braze/graph/passes.h"
#include "braze/kernel/tile.h"
#include "braze/loop/passes.h"
#include "braze/plan/make_plan.h"
#include "braze/schedule/schedule.h"
#include "braze/support/check.h"

namespace braze::compile {
namespace {

using Clock = std::chrono::steady_clock;

template <class Step>
auto timed(std::string_view name, support::Observer& o, Step step) {
  const auto start = Clock::now();
  auto result = step();
  o.took(name, std::chrono::duration<double>(Clock::now() - start).count());
  return result;
}

template <class IR>
void show(std::string_view name, const IR& ir, support::Observer& o) {
  if (o.wants(name)) o.changed(name, "", to_text(ir));
}

void check(const kernel::Kernel& k) {
  verify(k, "tile");
  BRAZE_CHECK(kernel::parse(to_text(k)) == k, "a kernel's text does not say all of it:\n{}", to_text(k));
}

std::vector<kernel::Tiled> tile_all(const schedule::Schedule& s, const Target& target, support::Observer& o) {
  std::vector<kernel::Tiled> tiled;
  for (const schedule::Group& g : s.groups)
    if (g.form != schedule::Form::external) {
      tiled.push_back(kernel::tile(s, g, target));
      show("kernel", tiled.back().kernel, o);
      if (o.checks()) check(tiled.back().kernel);
    }
  return tiled;
}

}  // namespace

plan::Plan compile_loops(loop::LoopProgram loops, const Target& target, support::Observer& o) {
  const auto s = timed("fuse", o, [&] { return schedule::fuse(std::move(loops), target, o); });
  show("schedule", s, o);
  auto tiled = timed("tile", o, [&] { return tile_all(s, target, o); });
  auto p = timed("emit", o, [&] { return plan::make_plan(s, std::move(tiled)); });
  show("plan", p, o);
  if (o.wants("code"))
    for (const plan::Kernel& k : p.kernels) o.changed("code", "", k.source);
  if (o.checks()) verify(p, "plan");
  return p;
}

plan::Plan compile(graph::Graph graph, const Target& target, support::Observer& o) {
  support::run_all<graph::Graph>(graph::kGraphPasses, graph, o);
  show("graph", graph, o);
  auto loops = timed("lower", o, [&] { return loop::lower(graph, {.checks = target.checks}); });
  show("loops", loops, o);
  support::run_all<loop::LoopProgram>(loop::kLoopPasses, loops, o);
  return compile_loops(std::move(loops), target, o);
}

}  // namespace braze::compile
