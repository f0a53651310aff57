// A plan with symbolic sizes becomes a plan with constant ones: executors only know the latter.
#include "braze/runtime/prepare.h"

namespace braze::runtime {

namespace {

using sym::SymExpr;

struct Binder {
  const std::vector<graph::Symbol>& symbols;
  std::span<const std::int64_t> values;

  void operator()(SymExpr& e) const {
    if (e.is_constant()) return;
    e = sym::substitute(e, [&](std::string_view name) -> std::optional<SymExpr> {
      for (std::size_t i = 0; i < symbols.size(); i++)
        if (symbols[i].name == name) return values[i];
      return std::nullopt;
    });
  }
  void operator()(std::vector<SymExpr>& list) const {
    for (SymExpr& e : list) (*this)(e);
  }
  void operator()(plan::Arg& arg) const {
    if (auto* e = std::get_if<SymExpr>(&arg)) (*this)(*e);
    if (auto* list = std::get_if<std::vector<SymExpr>>(&arg)) (*this)(*list);
  }
  void operator()(plan::Launch& launch) const {
    (*this)(launch.integers);
    (*this)(launch.extent);
    (*this)(launch.grain);
  }
  void operator()(plan::Call& call) const {
    for (plan::Arg& arg : call.args) (*this)(arg);
  }
};

}  // namespace

plan::Plan bind_symbols(const plan::Plan& plan, std::span<const std::int64_t> values) {
  plan::Plan bound = plan;
  const Binder bind{plan.symbols, values};
  for (plan::Buffer& b : bound.buffers) {
    bind(b.type.sizes);
    bind(b.type.strides);
    bind(b.offset);
  }
  for (plan::Step& step : bound.steps) {
    if (auto* launch = std::get_if<plan::Launch>(&step)) bind(*launch);
    if (auto* call = std::get_if<plan::Call>(&step)) bind(*call);
  }
  bound.symbols.clear();
  return bound;
}

}  // namespace braze::runtime
