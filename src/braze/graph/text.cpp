// Graphs as text. Arguments of operators with a row: leading tensors by position, the others by name, defaults left
// out.
#include "braze/graph/args.h"
#include "braze/graph/edit.h"
#include "braze/graph/graph.h"

namespace braze::graph {
namespace {

struct Printer {
  const Graph& g;
  std::function<std::string(ValueId)> name_of = [this](ValueId v) { return "%" + g.values[v.index].name; };

  std::string typed(ValueId v) const {
    return v.is_none() ? "none" : name_of(v) + ": " + op::to_text(g.values[v.index].type);
  }

  template <class Print>
  static std::string join(const std::vector<ValueId>& list, Print print) {
    std::string text;
    for (ValueId v : list) text += (text.empty() ? "" : ", ") + print(v);
    return text;
  }

  std::string args(const Node& node) const {
    std::string text;
    const auto add = [&](std::string_view prefix, const Arg& arg) {
      if (!text.empty()) text += ", ";
      (text += prefix) += to_text(arg, name_of);
    };
    if (node.op == Op::kOther) {
      for (const Arg& arg : node.args) add("", arg);
      return text;
    }
    const auto parameters = op::parameters(node.op);
    const auto defaults = default_args(node.op);
    bool leading = true;
    for (std::size_t i = 0; i < node.args.size() && i < parameters.size(); ++i) {
      const bool is_default = defaults[i] && *defaults[i] == node.args[i];
      leading = leading && !is_default && is_tensor_type(parameters[i].type);
      if (leading) add("", node.args[i]);
      else if (!is_default) add(parameters[i].name + "=", node.args[i]);
    }
    return text;
  }

  std::string node(const Node& node) const {
    std::string text = join(node.results, [&](ValueId v) { return typed(v); });
    if (node.returns_list) text = "[" + text + "]";
    if (!text.empty()) text += " = ";
    text += operator_text(node.name) + "(" + args(node) + ")";
    if (!node.at.file.empty()) text += support::format("  // {}:{}", node.at.file, node.at.line);
    return text;
  }

  std::string symbol(const Symbol& s) const {
    const std::string high = s.high == INT64_MAX ? "inf" : std::to_string(s.high);
    const std::string hint = s.hint == 2 ? "" : support::format(" hint {}", s.hint);
    return support::format("{} in [{}, {}]{}", s.name, s.low, high, hint);
  }

  std::string result_types() const {
    std::string text =
        join(g.outputs, [&](ValueId v) { return v.is_none() ? "none" : op::to_text(g.values[v.index].type); });
    return g.outputs.size() == 1 ? text : "(" + text + ")";
  }

  std::string print() const {
    std::string text = "graph @" + g.name + "(" + join(g.inputs, [&](ValueId v) { return typed(v); }) + ") -> " +
                       result_types() + " {\n";
    for (std::size_t i = 0; i < g.symbols.size(); ++i)
      text += (i ? ", " : "  symbols ") + symbol(g.symbols[i]) + (i + 1 == g.symbols.size() ? "\n" : "");
    for (const Node& n : g.nodes) text += "  " + node(n) + "\n";
    const std::string outputs = join(g.outputs, [&](ValueId v) { return v.is_none() ? "none" : name_of(v); });
    return text + "  return" + (outputs.empty() ? "" : " ") + outputs + " }\n";
  }
};

}  // namespace

// "aten::mul.Tensor" <-> "aten.mul.Tensor": a namespace has no dots.
std::string operator_text(std::string_view name) {
  std::string text(name);
  if (const std::size_t colons = text.find("::"); colons != text.npos) text.replace(colons, 2, ".");
  return text;
}

std::string to_text(const Graph& g) { return Printer{g}.print(); }

}  // namespace braze::graph
