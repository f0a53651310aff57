// Graphs from text; the inverse of text.cpp.
#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "braze/graph/args.h"
#include "braze/graph/edit.h"

namespace braze::graph {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text) {}

  Graph parse() {
    in_.expect("graph");
    in_.expect("@");
    g_.name = in_.word("$<>");
    in_.expect("(");
    while (!in_.accept(")")) {
      if (!g_.inputs.empty()) in_.expect(",");
      g_.inputs.push_back(definition({}));
    }
    in_.expect("->");
    result_types();
    in_.expect("{");
    if (in_.accept("symbols")) symbols();
    while (!in_.accept("return")) node();
    outputs();
    in_.expect("}");
    if (!in_.at_end()) in_.fail("the end of the graph");
    return std::move(g_);
  }

 private:
  /// The types are those of the outputs: said again for the reader, not stored.
  void result_types() {
    const bool several = in_.accept("(");
    if (several && in_.accept(")")) return;
    do {
      if (!in_.accept("none")) op::parse_type(in_);
    } while (several && in_.accept(","));
    if (several) in_.expect(")");
  }

  void symbols() {
    do {
      Symbol s;
      s.name = in_.identifier();
      in_.expect("in");
      in_.expect("[");
      s.low = in_.integer();
      in_.expect(",");
      s.high = in_.accept("inf") ? INT64_MAX : in_.integer();
      in_.expect("]");
      if (in_.accept("hint")) s.hint = in_.integer();
      g_.symbols.push_back(s);
    } while (in_.accept(","));
  }

  ValueId definition(NodeId producer) {
    in_.expect("%");
    const std::string_view name = in_.word();
    in_.expect(":");
    const ValueId id(g_.values.size());
    if (!ids_.emplace(name, id).second) in_.fail("a new name");
    g_.values.push_back({.name = std::string(name), .type = op::parse_type(in_), .producer = producer});
    return id;
  }

  void results(Node& node, NodeId producer) {
    do node.results.push_back(in_.accept("none") ? ValueId{} : definition(producer));
    while (in_.accept(","));
  }

  void node() {
    Node node;
    const NodeId producer(g_.nodes.size());
    if (in_.accept("[]")) {
      node.returns_list = true;
      in_.expect("=");
    } else if (in_.accept("[")) {
      node.returns_list = true;
      results(node, producer);
      in_.expect("]");
      in_.expect("=");
    } else if (in_.peek("%") || in_.peek("none")) {
      results(node, producer);
      in_.expect("=");
    }
    node.name = in_.word();
    if (const std::size_t dot = node.name.find('.'); dot != node.name.npos) node.name.replace(dot, 1, "::");
    node.op = op::find_op(node.name);
    in_.expect("(");
    if (node.op == Op::kOther) positional(node);
    else by_schema(node);
    location(node);
    g_.nodes.push_back(std::move(node));
  }

  Arg arg() {
    return parse_arg(in_, [this](std::string_view name) {
      const auto found = ids_.find(name);
      if (found == ids_.end()) in_.fail("a value defined above");
      return found->second;
    });
  }

  void positional(Node& node) {
    if (in_.accept(")")) return;
    do node.args.push_back(arg());
    while (in_.accept(","));
    in_.expect(")");
  }

  /// The parameter that `name=` names, or `next` if what stands here is a value.
  std::size_t place(std::span<const op::Parameter> parameters, std::size_t next) {
    const std::size_t begin = in_.position();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (in_.accept(parameters[i].name) && in_.accept("=")) return i;
      in_.rewind(begin);
    }
    if (next >= parameters.size()) in_.fail("a parameter's name");
    return next;
  }

  void by_schema(Node& node) {
    const auto parameters = op::parameters(node.op);
    const auto defaults = default_args(node.op);
    std::vector<std::optional<Arg>> given(defaults.begin(), defaults.end());
    std::size_t next = 0;
    while (!in_.accept(")")) {
      if (next) in_.expect(",");
      const std::size_t i = place(parameters, next);
      given[i] = arg();
      if (const auto* e = std::get_if<SymExpr>(&*given[i]);
          e && e->is_constant() && parameters[i].type.starts_with("float"))
        given[i] = static_cast<double>(e->constant());
      next = i + 1;
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!given[i]) in_.fail(support::format("argument {} of {}", parameters[i].name, node.name));
      node.args.push_back(std::move(*given[i]));
    }
  }

  void location(Node& node) {
    const std::string_view comment = in_.comment();
    const std::size_t colon = comment.rfind(':');
    if (colon == comment.npos) return;
    int line = 0;
    const auto [end, error] = std::from_chars(comment.data() + colon + 1, comment.data() + comment.size(), line);
    if (error == std::errc{} && end == comment.data() + comment.size())
      node.at = {.file = std::string(comment.substr(0, colon)), .line = line};
  }

  void outputs() {
    if (in_.peek("}")) return;
    do {
      const Arg a = in_.accept("none") ? Arg(ValueId{}) : arg();
      if (!std::holds_alternative<ValueId>(a)) in_.fail("a value");
      g_.outputs.push_back(std::get<ValueId>(a));
    } while (in_.accept(","));
  }

  support::Scanner in_;
  Graph g_;
  std::unordered_map<std::string_view, ValueId> ids_;
};

}  // namespace

Graph parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace braze::graph
