// The rules of a well-formed loop program, as a list of named facts.
#include <unordered_set>

#include "braze/loop/loop.h"
#include "braze/support/check.h"

namespace braze::loop {
namespace {

struct Verifier {
  const LoopProgram& p;
  std::string_view after;
  std::vector<bool> defined;
  const LoopOp* op = nullptr;

  void rule(bool holds, std::string_view text) const {
    if (holds) return;
    throw support::InternalError(support::format("after {}: {}{}", after, text, op ? "\nin " + describe() : ""));
  }
  std::string describe() const {
    std::string text = support::format("{} of {}", to_text(op->kind), op->origin);
    for (const TensorId t : op->results) text += t.is_none() ? " none" : " %" + p.tensors[t.index].name;
    return text;
  }

  bool is_defined(TensorId t) const { return t.index < p.tensors.size() && defined[t.index]; }
  /// Views are defined where their base is.
  bool is_known(TensorId t) const {
    if (t.index >= p.tensors.size()) return false;
    const TensorId base = p.tensors[t.index].base;
    return base.is_none() ? defined[t.index] : is_defined(base) && p.tensors[base.index].base.is_none();
  }

  void symbols_of(const SymExpr& e, std::size_t scalars) const {
    std::vector<std::string> names;
    sym::collect_symbols(e, names);
    for (const std::string& name : names) {
      const auto number = [&] { return std::stoul(name.substr(1)); };
      if (name[0] == '@') rule(number() < scalars, "an index names an earlier scalar");
      else if (name[0] == 'i' && name.size() > 1 && std::isdigit(static_cast<unsigned char>(name[1])))
        rule(number() < op->space.size() && !op->space[number()].is_value(1),
             "an index names a loop variable of the space");
      else if (name[0] == 'r' && name.size() > 1 && std::isdigit(static_cast<unsigned char>(name[1])))
        rule(number() < op->reduced.size() && !op->reduced[number()].is_value(1),
             "an index names a reduced loop variable");
    }
  }

  void load(const Scalar& s, std::size_t position) const {
    rule(is_defined(s.tensor), "a load names a tensor that is defined above and no view");
    const TensorType& type = p.tensors[s.tensor.index].type;
    rule(s.indices.size() == type.dim(), "a load has one index per dimension");
    rule(s.type == op::compute_type(type.dtype), "a load has the compute type of its tensor");
    rule(s.operands.size() <= 1, "a load has at most a mask");
    for (const ScalarId id : s.operands) rule(op->body.nodes[id.index].type == DType::kBool, "a mask is b8");
    for (const SymExpr& e : s.indices) symbols_of(e, position);
  }

  void arithmetic(const Scalar& s) const {
    const auto type = [&](std::size_t k) { return op->body.nodes[s.operands[k].index].type; };
    rule(static_cast<int>(s.operands.size()) == arity(s.op), "an operator has as many operands as its row says");
    if (s.op == ScalarOp::select) {
      rule(type(0) == DType::kBool && type(1) == type(2) && s.type == type(1), "select takes a b8 and two of its type");
      return;
    }
    if (s.op == ScalarOp::cast || s.op == ScalarOp::philox) return;
    rule(!op::is_half(type(0)), "arithmetic is done in compute types");
    for (std::size_t k = 1; k < s.operands.size(); ++k) rule(type(k) == type(0), "operands have one type");
    const TypeRule by = type_rule(s.op);
    rule(s.type == (by == TypeRule::boolean ? DType::kBool : type(0)), "the type follows from the operator's rule");
    rule(by != TypeRule::floating || op::is_floating(s.type), "a floating operator has floating operands");
    rule(by != TypeRule::bits || !op::is_floating(s.type), "a bit operator has integral or b8 operands");
  }

  void body() const {
    const Body& b = op->body;
    for (std::size_t k = 0; k < b.nodes.size(); ++k) {
      const Scalar& s = b.nodes[k];
      for (const ScalarId id : s.operands) rule(id.index < k, "operands come before uses");
      if (s.op == ScalarOp::load) load(s, k);
      else if (s.op == ScalarOp::index) symbols_of(s.indices.at(0), k);
      else if (s.op != ScalarOp::constant) arithmetic(s);
    }
    rule(b.yields.size() == op->results.size(), "one yield per result");
    for (const ScalarId id : b.yields) rule(id.index < b.nodes.size(), "a yield names a scalar");
    for (const ScalarId id : b.checks)
      rule(id.index < b.nodes.size() && b.nodes[id.index].type == DType::kBool, "a check names a b8 scalar");
  }

  void result(TensorId t) {
    if (t.is_none()) return rule(op->kind == Kind::external, "only library calls have undefined results");
    rule(t.index < p.tensors.size() && !defined[t.index], "a result is a new tensor");
    const Tensor& tensor = p.tensors[t.index];
    rule(tensor.base.is_none(), "a result is no view");
    const bool over_space = op->kind == Kind::map || op->kind == Kind::reduce;
    rule(!over_space || tensor.type.sizes == op->space, "a result has the sizes of the space");
    defined[t.index] = true;
  }

  void operation(const LoopOp& o) {
    op = &o;
    if (o.kind == Kind::external) {
      graph::for_each_operand(o.node, [&](TensorId t) { rule(is_known(t), "operands are defined above"); });
      rule(o.node.results == o.results, "the node of a library call has the operation's results");
    } else {
      rule(o.kind == Kind::reduce ? !o.reduced.empty() : o.reduced.empty(), "reductions alone have reduced loops");
      body();
    }
    if (o.kind == Kind::scatter) {
      rule(o.init.is_none() || is_defined(o.init), "a scatter starts from a tensor that is no view");
      for (const SymExpr& e : o.targets) symbols_of(e, o.body.nodes.size());
      rule(o.results.size() == 1 && o.targets.size() == p.tensors[o.results[0].index].type.dim(),
           "a scatter has one result, and one target index per dimension");
    }
    for (const TensorId t : o.results) result(t);
  }

  void names() const {
    std::unordered_set<std::string_view> seen;
    for (const Tensor& t : p.tensors) rule(seen.insert(t.name).second, "names are unique");
  }
};

}  // namespace

void verify(const LoopProgram& p, std::string_view after) {
  Verifier v{p, after, std::vector<bool>(p.tensors.size())};
  for (const TensorId t : p.inputs) {
    v.rule(t.index < p.tensors.size() && !v.defined[t.index] && p.tensors[t.index].base.is_none(),
           "an input is a tensor of its own");
    v.defined[t.index] = true;
  }
  for (const LoopOp& op : p.ops) v.operation(op);
  v.op = nullptr;
  for (const TensorId t : p.outputs) v.rule(t.is_none() || v.is_known(t), "outputs are defined");
  v.names();
}

}  // namespace braze::loop
