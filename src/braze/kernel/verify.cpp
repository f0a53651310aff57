// The rules of kernel IR: names before uses, in scope; accumulators declared; buffers and axes that exist.
#include <set>

#include "braze/kernel/kernel.h"
#include "braze/support/check.h"

namespace braze::kernel {
namespace {

struct Verifier {
  const Kernel& k;
  std::string_view after;
  std::set<std::string> axes;

  struct Scope {
    std::set<std::uint32_t> values, accumulators;
  };

  void index(const SymExpr& e, const Scope& scope) const {
    std::vector<std::string> names;
    if (!e.is_constant()) collect_symbols(e, names);
    for (const std::string& n : names) {
      if (n[0] == '@')
        BRAZE_CHECK(scope.values.contains(static_cast<std::uint32_t>(std::stoul(n.substr(1)))),
                    "after {}: index {} uses a value that is not named yet", after, to_text(e));
      else BRAZE_CHECK(axes.contains(n), "after {}: index {} uses {}, which is no axis", after, to_text(e), n);
    }
  }

  void value(ValueId v, const Scope& scope) const {
    BRAZE_CHECK(scope.values.contains(v.index), "after {}: %{} is used before it is named", after, v.index);
  }

  void let(ValueId id, Scope& scope) const {
    const Value& v = k.values[id.index];
    for (ValueId o : v.operands) value(o, scope);
    index(v.index, scope);
    if (v.form == Value::Form::result)
      BRAZE_CHECK(scope.accumulators.contains(v.accumulator.index), "after {}: a{} is not declared", after,
                  v.accumulator.index);
    scope.values.insert(id.index);
  }

  void statement(const Statement& s, Scope& scope) {
    using Kind = Statement::Kind;
    if (s.kind == Kind::let) return let(s.value, scope);
    if (s.kind == Kind::accumulate) return void(scope.accumulators.insert(s.accumulator.index));
    if (s.kind == Kind::define || s.kind == Kind::loop) {
      index(s.begin, scope);
      index(s.end, scope);
      axes.insert(s.axis);
    }
    if (s.kind == Kind::store || s.kind == Kind::reload) {
      BRAZE_CHECK(s.buffer.index < k.buffers.size(), "after {}: buffer {} of {}", after, s.buffer.index,
                  k.buffers.size());
      index(s.index, scope);
    }
    if (s.kind == Kind::update)
      BRAZE_CHECK(scope.accumulators.contains(s.accumulator.index), "after {}: a{} is not declared", after,
                  s.accumulator.index);
    if (s.kind == Kind::reload) return void(scope.values.insert(s.value.index));
    if (s.kind != Kind::define && s.kind != Kind::loop) value(s.value, scope);
    Scope inner = scope;
    for (const Statement& b : s.body) statement(b, inner);
  }
};

}  // namespace

void verify(const Kernel& k, std::string_view after) {
  for (const auto* body : {&k.body, &k.fold}) {
    Verifier v{k, after, {k.integers.begin(), k.integers.end()}};
    v.axes.insert({"begin", "end"});
    Verifier::Scope scope;
    for (const Statement& s : *body) v.statement(s, scope);
  }
}

}  // namespace braze::kernel
