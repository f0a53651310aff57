// Loop programs from text; the inverse of text.cpp.
#include <charconv>
#include <unordered_map>

#include "braze/graph/args.h"
#include "braze/loop/loop.h"

namespace braze::loop {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text) {}

  LoopProgram parse() {
    in_.expect("loops");
    in_.expect("@");
    p_.name = in_.word("$<>");
    in_.expect("(");
    while (!in_.accept(")")) {
      if (!p_.inputs.empty()) in_.expect(",");
      p_.inputs.push_back(definition());
    }
    in_.expect("->");
    const std::size_t outputs_at = in_.position();
    in_.until("{");
    in_.expect("{");
    if (in_.accept("symbols")) symbols();
    while (!in_.peek("}")) operation();
    in_.expect("}");
    if (!in_.at_end()) in_.fail("the end of the program");
    in_.rewind(outputs_at);  // outputs name tensors that are defined by now
    outputs();
    return std::move(p_);
  }

 private:
  void symbols() {
    do {
      graph::Symbol s;
      s.name = in_.identifier();
      in_.expect("in");
      in_.expect("[");
      s.low = in_.integer();
      in_.expect(",");
      s.high = in_.accept("inf") ? INT64_MAX : in_.integer();
      in_.expect("]");
      if (in_.accept("hint")) s.hint = in_.integer();
      p_.symbols.push_back(s);
    } while (in_.accept(","));
  }

  void outputs() {
    in_.expect("(");
    while (!in_.accept(")")) {
      if (!p_.outputs.empty()) in_.expect(",");
      p_.outputs.push_back(in_.accept("none") ? TensorId() : tensor());
    }
  }

  TensorId definition() {
    in_.expect("%");
    const std::string_view name = in_.word();
    in_.expect(":");
    const TensorId id(p_.tensors.size());
    if (!ids_.emplace(name, id).second) in_.fail("a new name");
    Tensor t;
    t.name = name;
    t.type = op::parse_type(in_);
    p_.tensors.push_back(std::move(t));
    return id;
  }

  TensorId find(std::string_view name) {
    const auto found = ids_.find(name);
    if (found == ids_.end()) in_.fail("a tensor defined above");
    return found->second;
  }
  TensorId tensor() {
    in_.expect("%");
    return find(in_.word());
  }

  void results(LoopOp& op) {
    if (in_.peek("external")) return;
    op.node.returns_list = in_.accept("[");
    if (!in_.peek("]")) {
      do op.results.push_back(in_.accept("none") ? TensorId() : definition());
      while (in_.accept(","));
    }
    if (op.node.returns_list) in_.expect("]");
    in_.expect("=");
  }

  void operation() {
    LoopOp op;
    results(op);
    if (in_.accept("view")) return view(op.results.at(0));
    if (in_.accept("map")) op.kind = Kind::map;
    else if (in_.accept("reduce")) op.kind = Kind::reduce;
    else if (in_.accept("scatter")) op.kind = Kind::scatter;
    else if (in_.accept("external")) return external(std::move(op));
    else in_.fail("view, map, reduce, scatter or external");
    if (op.kind == Kind::reduce) op.fold = fold();
    if (op.kind == Kind::scatter) start(op);
    space(op);
    if (op.kind == Kind::scatter) {
      in_.expect("to");
      op.targets = expressions();
    }
    in_.expect("{");
    comment(op);
    body(op.body);
    p_.ops.push_back(std::move(op));
  }

  void view(TensorId t) {
    const TensorId base = tensor();
    in_.expect("+");
    p_.tensors[t.index].base = base;
    p_.tensors[t.index].offset = sym::parse_expr(in_);
  }

  Fold fold() {
    const std::string_view word = in_.identifier();
    for (int f = 0; f <= static_cast<int>(Fold::all); ++f)
      if (to_text(static_cast<Fold>(f)) == word) return static_cast<Fold>(f);
    in_.fail("a fold");
  }

  void start(LoopOp& op) {
    op.accumulate = in_.accept("add");
    if (!op.accumulate) in_.expect("set");
    if (!in_.accept("zeros")) op.init = tensor();
  }

  void extents(std::vector<SymExpr>& list) {
    do {
      in_.identifier();
      in_.expect("<");
      list.push_back(sym::parse_expr(in_));
    } while (in_.accept(","));
  }
  void space(LoopOp& op) {
    in_.expect("[");
    if (!in_.peek("]") && !in_.peek("|")) extents(op.space);
    if (in_.accept("|") && !in_.peek("]")) extents(op.reduced);
    in_.expect("]");
  }

  std::vector<SymExpr> expressions() {
    std::vector<SymExpr> list;
    in_.expect("[");
    while (!in_.accept("]")) {
      if (!list.empty()) in_.expect(",");
      list.push_back(sym::parse_expr(in_));
    }
    return list;
  }

  /// `// origin file:line`, either may be missing.
  void comment(LoopOp& op) {
    const std::string_view text = in_.comment();
    const std::size_t space = text.rfind(' '), colon = text.rfind(':');
    const std::size_t file = space == text.npos ? 0 : space + 1;
    int line = 0;
    const char* end = text.data() + text.size();
    if (colon != text.npos && colon >= file && colon + 1 < text.size() &&
        std::from_chars(text.data() + colon + 1, end, line).ptr == end) {
      op.at = {std::string(text.substr(file, colon - file)), line};
      op.origin = file == 0 ? "" : text.substr(0, space);
    } else {
      op.origin = text;
    }
  }

  void external(LoopOp op) {
    op.kind = Kind::external;
    op.node.name = in_.word(":");
    op.node.op = op::find_op(op.node.name);
    in_.expect("(");
    while (!in_.accept(")")) {
      if (!op.node.args.empty()) in_.expect(",");
      op.node.args.push_back(graph::parse_arg(in_, [this](std::string_view name) { return find(name); }));
    }
    comment(op);
    op.node.at = op.at;
    op.node.results = op.results;
    p_.ops.push_back(std::move(op));
  }

  void body(Body& b) {
    while (in_.accept("@")) {
      const std::int64_t number = in_.integer();
      in_.expect("=");
      if (scalar(b).index != number) in_.fail("scalars numbered in order");
    }
    while (in_.accept("check")) b.checks.push_back(scalar(b));
    in_.expect("yield");
    do b.yields.push_back(scalar(b));
    while (in_.accept(","));
    in_.expect("}");
  }

  ScalarId push(Body& b, Scalar s) {
    b.nodes.push_back(std::move(s));
    return ScalarId(b.nodes.size() - 1);
  }

  ScalarId scalar(Body& b) {
    if (in_.accept("@")) {
      const std::int64_t number = in_.integer();
      if (number < 0 || static_cast<std::size_t>(number) >= b.nodes.size()) in_.fail("a scalar defined above");
      return ScalarId(static_cast<std::size_t>(number));
    }
    const std::string_view word = in_.identifier();
    if (word == "load") return load(b);
    if (word == "index") return index(b);
    if (const auto type = op::parse_dtype(word)) return typed(b, *type);
    const auto op = find_scalar_op(word);
    if (!op) in_.fail("a scalar operator");
    Scalar s;
    s.op = *op;
    in_.expect("(");
    do s.operands.push_back(scalar(b));
    while (in_.accept(","));
    in_.expect(")");
    if (arity(*op) != static_cast<int>(s.operands.size())) in_.fail(support::format("{} operands", arity(*op)));
    const std::size_t model = *op == ScalarOp::select ? 1 : 0;
    s.type = type_rule(*op) == TypeRule::boolean ? DType::kBool : b.nodes[s.operands[model].index].type;
    return push(b, std::move(s));
  }

  ScalarId load(Body& b) {
    Scalar s;
    s.op = ScalarOp::load;
    s.tensor = tensor();
    s.type = op::compute_type(p_.tensors[s.tensor.index].type.dtype);
    s.indices = expressions();
    if (in_.accept("if")) s.operands.push_back(scalar(b));
    return push(b, std::move(s));
  }

  ScalarId index(Body& b) {
    Scalar s;
    s.op = ScalarOp::index;
    s.type = DType::kInt64;
    in_.expect("(");
    s.indices.push_back(sym::parse_expr(in_));
    in_.expect(")");
    return push(b, std::move(s));
  }

  /// f32(x) is a cast, f32 0.5 a constant.
  ScalarId typed(Body& b, DType type) {
    Scalar s;
    s.type = type;
    if (in_.accept("(")) {
      s.op = ScalarOp::cast;
      s.operands.push_back(scalar(b));
      in_.expect(")");
    } else if (op::is_floating(type)) {
      s.number = in_.number();
    } else {
      s.integer = in_.integer();
    }
    return push(b, std::move(s));
  }

  support::Scanner in_;
  LoopProgram p_;
  std::unordered_map<std::string_view, TensorId> ids_;
};

}  // namespace

LoopProgram parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace braze::loop
