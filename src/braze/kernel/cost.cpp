// Figures of the measurements behind the emitter: 0.06 ns per f32 touched in cache, 0.35 ns per transcendental.
#include "braze/kernel/cost.h"

#include <algorithm>

namespace braze::kernel {

double row_cost(const std::vector<Value>& values, const std::vector<bool>& inner, const SymExpr& inner_extent,
                const loop::LoopProgram& program) {
  double per_element = 0.06, per_row = 2;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const Value& v = values[k];
    const double cost = v.form == Value::Form::load ? 0.06 * op::bytes(v.type) / 4 : 0.044 * schedule::weight(v.op);
    (k < inner.size() && inner[k] ? per_element : per_row) += cost;
  }
  return per_row + per_element * static_cast<double>(schedule::estimate(inner_extent, program));
}

void bind_integers(Kernel& k, const loop::LoopProgram& program, Tiled& out, int slots) {
  std::vector<std::string> used;
  const auto collect = [&](const SymExpr& e) {
    if (!e.is_constant()) collect_symbols(e, used);
  };
  for (const Value& v : k.values) collect(v.index);
  for (auto* body : {&k.body, &k.fold})
    for_each_statement(*body, [&](const Statement& s) {
      collect(s.index);
      collect(s.begin);
      collect(s.end);
    });
  const auto is_used = [&](std::string_view name) { return std::ranges::find(used, name) != used.end(); };
  for (const graph::Symbol& s : program.symbols) {
    if (!is_used(s.name)) continue;
    k.integers.push_back(s.name);
    out.integers.push_back(SymExpr::symbol(s.name));
  }
  if (is_used("slots")) {
    k.integers.emplace_back("slots");
    out.integers.emplace_back(slots);
  }
  if (k.fold.empty()) return;
  k.integers.emplace_back("fold");
  out.integers.emplace_back(0);
}

}  // namespace braze::kernel
