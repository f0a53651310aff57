// Loop programs as text. Scalars nest where each is used once and in order; others are named by their number: @2.
#include <algorithm>

#include "braze/graph/args.h"
#include "braze/loop/loop.h"

namespace braze::loop {
namespace {

using support::format;

/// How often each scalar is used, by scalars, indices, checks and yields.
std::vector<int> count_uses(const LoopOp& op) {
  std::vector<int> uses(op.body.nodes.size());
  std::vector<std::string> names;
  for (const Scalar& node : op.body.nodes) {
    for (const ScalarId id : node.operands) ++uses[id.index];
    for (const SymExpr& e : node.indices) sym::collect_symbols(e, names);
  }
  for (const SymExpr& e : op.targets) sym::collect_symbols(e, names);
  for (const std::string& name : names) {
    if (name[0] == '@') uses[std::stoul(name.substr(1))] += 2;  // an index names it
  }
  for (const ScalarId id : op.body.checks) uses[id.index] += 2;  // these have lines of their own
  for (const ScalarId id : op.body.yields) uses[id.index] += op.body.yields.size() > 1 ? 2 : 1;
  return uses;
}

struct BodyPrinter {
  const LoopProgram& p;
  const LoopOp& op;
  std::vector<bool> named;
  std::size_t next = 0;  ///< the number that a parser gives to the next scalar
  bool in_order = true;  ///< parsing the text gives the same numbers
  std::string text;

  std::string indices(const std::vector<SymExpr>& list) const {
    std::string s;
    for (const SymExpr& e : list) s += (s.empty() ? "" : ", ") + sym::to_text(e);
    return "[" + s + "]";
  }

  std::string constant(const Scalar& n) const {
    const bool floating = op::is_floating(n.type);
    return format("{} {}", op::to_text(n.type), floating ? support::double_text(n.number) : std::to_string(n.integer));
  }

  std::string definition(ScalarId id) {
    const Scalar& n = op.body.nodes[id.index];
    std::string operands;
    for (const ScalarId operand : n.operands) operands += (operands.empty() ? "" : ", ") + use(operand);
    in_order = in_order && next == id.index;
    ++next;
    switch (n.op) {
      case ScalarOp::constant: return constant(n);
      case ScalarOp::index: return format("index({})", sym::to_text(n.indices[0]));
      case ScalarOp::load:
        return format("load %{}{}{}", p.tensors[n.tensor.index].name, indices(n.indices),
                      operands.empty() ? "" : " if " + operands);
      case ScalarOp::cast: return format("{}({})", op::to_text(n.type), operands);
      default: return format("{}({})", to_text(n.op), operands);
    }
  }

  std::string use(ScalarId id) { return named[id.index] ? format("@{}", id.index) : definition(id); }

  void print() {
    for (std::size_t k = 0; k < named.size(); ++k) {
      if (named[k]) text += format("    @{} = {}\n", k, definition(ScalarId(k)));
    }
    for (const ScalarId id : op.body.checks) text += "    check " + use(id) + "\n";
    text += "    yield ";
    for (std::size_t k = 0; k < op.body.yields.size(); ++k) text += (k ? ", " : "") + use(op.body.yields[k]);
    text += " }\n";
  }
};

struct Printer {
  const LoopProgram& p;

  std::string name(TensorId t) const { return t.is_none() ? "none" : "%" + p.tensors[t.index].name; }
  std::string typed(TensorId t) const {
    return t.is_none() ? "none" : name(t) + ": " + op::to_text(p.tensors[t.index].type);
  }

  std::string space(const LoopOp& op) const {
    std::string text;
    for (std::size_t k = 0; k < op.space.size(); ++k)
      text += format("{}i{} < {}", k ? ", " : "", k, sym::to_text(op.space[k]));
    if (op.kind != Kind::reduce) return "[" + text + "]";
    text += text.empty() ? "| " : " | ";
    for (std::size_t k = 0; k < op.reduced.size(); ++k)
      text += format("{}r{} < {}", k ? ", " : "", k, sym::to_text(op.reduced[k]));
    return "[" + text + "]";
  }

  std::string kind(const LoopOp& op) const {
    if (op.kind == Kind::reduce) return format("reduce {} {}", to_text(op.fold), space(op));
    if (op.kind == Kind::map) return "map " + space(op);
    std::string targets;
    for (const SymExpr& e : op.targets) targets += (targets.empty() ? "" : ", ") + sym::to_text(e);
    return format("scatter {} {} {} to [{}]", op.accumulate ? "add" : "set",
                  op.init.is_none() ? "zeros" : name(op.init), space(op), targets);
  }

  std::string comment(const LoopOp& op) const {
    std::string text = op.origin.empty() ? "" : "  // " + op.origin;
    if (!op.at.file.empty()) text += format("{}{}:{}", text.empty() ? "  // " : " ", op.at.file, op.at.line);
    return text + "\n";
  }

  std::string body(const LoopOp& op) const {
    BodyPrinter nested{p, op, {}, 0, true, {}};
    for (const int uses : count_uses(op)) nested.named.push_back(uses != 1);
    nested.print();
    if (nested.in_order) return nested.text;
    BodyPrinter flat{p, op, std::vector<bool>(op.body.nodes.size(), true), 0, true, {}};
    flat.print();
    return flat.text;
  }

  std::string external(const LoopOp& op) const {
    std::string args;
    for (const graph::Arg& a : op.node.args)
      args += (args.empty() ? "" : ", ") + graph::to_text(a, [this](TensorId t) { return name(t); });
    return format("external {}({})", op.node.name, args) + comment(op);
  }

  std::string operation(const LoopOp& op) const {
    std::string results;
    for (const TensorId t : op.results) results += (results.empty() ? "" : ", ") + typed(t);
    if (op.kind == Kind::external && op.node.returns_list) results = "[" + results + "]";
    if (!results.empty()) results += " = ";
    if (op.kind == Kind::external) return "  " + results + external(op);
    return "  " + results + kind(op) + " {" + comment(op) + body(op);
  }

  /// Views stand where their number puts them: before the first operation with a result of a higher number.
  void views(std::string& text, std::vector<bool>& printed, std::size_t before) const {
    for (std::size_t t = 0; t < before; ++t) {
      if (printed[t] || p.tensors[t].base.is_none()) continue;
      printed[t] = true;
      text += format("  {} = view {} + {}\n", typed(TensorId(t)), name(p.tensors[t].base),
                     sym::to_text(p.tensors[t].offset));
    }
  }

  /// A number above those of all tensors that the operation reads, and not above its results'.
  std::size_t first_after_reads(const LoopOp& op) const {
    for (const TensorId t : op.results)
      if (!t.is_none()) return t.index;
    std::size_t after = 0;
    graph::for_each_operand(op.node, [&](TensorId t) { after = std::max<std::size_t>(after, t.index + 1); });
    return after;
  }

  std::string symbols() const {
    std::string text;
    for (const graph::Symbol& s : p.symbols) {
      text += format("{}{} in [{}, {}]", text.empty() ? "  symbols " : ", ", s.name, s.low,
                     s.high == INT64_MAX ? "inf" : std::to_string(s.high));
      if (s.hint != 2) text += format(" hint {}", s.hint);
    }
    return text.empty() ? "" : text + "\n";
  }

  std::string print() const {
    std::string text = "loops @" + p.name + "(", outputs;
    for (std::size_t k = 0; k < p.inputs.size(); ++k) text += (k ? ", " : "") + typed(p.inputs[k]);
    for (const TensorId t : p.outputs) outputs += (outputs.empty() ? "" : ", ") + name(t);
    text += ") -> (" + outputs + ") {\n" + symbols();
    std::vector<bool> printed(p.tensors.size());
    for (const LoopOp& op : p.ops) {
      views(text, printed, first_after_reads(op));
      text += operation(op);
    }
    views(text, printed, p.tensors.size());
    return text + "}\n";
  }
};

}  // namespace

std::string to_text(const LoopProgram& p) { return Printer{p}.print(); }

}  // namespace braze::loop
