// Kernels from text; the inverse of text.cpp.
#include "braze/kernel/kernel.h"

namespace braze::kernel {
namespace {

using Kind = Statement::Kind;

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text) {}

  Kernel parse() {
    in_.expect("kernel");
    in_.expect("@");
    k_.name = in_.peek("(") ? "" : in_.word();
    in_.expect("(");
    while (!in_.accept(")")) {
      if (!k_.buffers.empty() || !k_.integers.empty()) in_.expect(",");
      argument();
    }
    in_.expect("{");
    k_.body = statements();
    if (in_.accept("fold")) {
      in_.expect("{");
      k_.fold = statements();
    }
    if (!in_.at_end()) in_.fail("the end of the kernel");
    return std::move(k_);
  }

 private:
  void argument() {
    const std::string_view name = in_.identifier();
    if (!in_.accept(":")) return k_.integers.emplace_back(name), void();
    Buffer b;
    b.type = dtype();
    b.written = in_.accept("out");
    if (in_.accept("local")) b.local = in_.integer();
    b.flag = in_.accept("flag");
    k_.buffers.push_back(b);
  }

  DType dtype() {
    const auto type = op::parse_dtype(in_.identifier());
    if (!type) in_.fail("a type");
    return *type;
  }

  std::size_t number_after(char letter) {
    const std::string_view word = in_.identifier();
    if (word.size() < 2 || word[0] != letter || word.find_first_not_of("0123456789", 1) != word.npos)
      in_.fail(support::format("{} and a number", letter));
    return std::stoul(std::string(word.substr(1)));
  }
  BufferId buffer() {
    const BufferId b(number_after('b'));
    if (b.index >= k_.buffers.size()) in_.fail("a buffer");
    return b;
  }
  ValueId value() {
    in_.expect("%");
    const ValueId v(static_cast<std::size_t>(in_.integer()));
    if (v.index >= k_.values.size()) k_.values.resize(v.index + 1);
    return v;
  }
  SymExpr subscript() {
    in_.expect("[");
    SymExpr e = sym::parse_expr(in_);
    in_.expect("]");
    return e;
  }
  ScalarOp scalar_op() {
    const auto op = loop::find_scalar_op(in_.identifier());
    if (!op) in_.fail("a scalar operator");
    return *op;
  }
  Fold fold() {
    const std::string_view word = in_.identifier();
    for (int f = 0; f <= static_cast<int>(Fold::all); ++f)
      if (loop::to_text(static_cast<Fold>(f)) == word) return static_cast<Fold>(f);
    in_.fail("a fold");
  }

  std::vector<Statement> statements() {
    std::vector<Statement> body;
    while (!in_.accept("}")) body.push_back(statement());
    return body;
  }

  Statement statement() {
    Statement s;
    if (in_.peek("%")) name(s);
    else if (in_.accept("accumulate")) accumulate(s);
    else if (in_.accept("update")) update(s);
    else if (in_.accept("store")) store(s);
    else if (in_.accept("check")) check(s);
    else if (in_.accept("define")) define(s);
    else if (in_.accept("when")) when(s);
    else loop(s);
    return s;
  }

  void name(Statement& s) {
    s.value = value();
    if (in_.accept("=")) {
      s.kind = Kind::reload;
      in_.expect("reload");
      s.buffer = buffer();
      s.index = subscript();
      return;
    }
    in_.expect(":");
    Value v;
    v.type = dtype();
    in_.expect("=");
    definition(v);
    k_.values[s.value.index] = std::move(v);
  }

  void definition(Value& v) {
    if (in_.accept("load")) {
      v.form = Value::Form::load;
      v.buffer = buffer();
      v.index = subscript();
      if (in_.accept("if")) v.operands.push_back(value());
    } else if (in_.accept("result")) {
      v.form = Value::Form::result;
      v.accumulator = AccumulatorId(number_after('a'));
    } else if (in_.accept("index")) {
      v.op = ScalarOp::index;
      v.index = sym::parse_expr(in_);
    } else if (is_number()) {
      if (op::is_floating(v.type)) v.number = in_.number();
      else v.integer = in_.integer();
    } else {
      operation(v);
    }
  }

  bool is_number() {
    if (in_.peek("-") || in_.number_is_double()) return true;
    const std::size_t here = in_.position();
    const char first = in_.identifier()[0];
    in_.rewind(here);
    return first >= '0' && first <= '9';
  }

  void operation(Value& v) {
    v.op = scalar_op();
    in_.expect("(");
    do v.operands.push_back(value());
    while (in_.accept(","));
    in_.expect(")");
    if (loop::arity(v.op) != static_cast<int>(v.operands.size()))
      in_.fail(support::format("{} operands", loop::arity(v.op)));
  }

  void accumulate(Statement& s) {
    s.kind = Kind::accumulate;
    s.accumulator = AccumulatorId(number_after('a'));
    in_.expect("=");
    const Fold f = fold();
    if (s.accumulator.index >= k_.accumulators.size()) k_.accumulators.resize(s.accumulator.index + 1);
    k_.accumulators[s.accumulator.index] = {f, dtype()};
  }
  void update(Statement& s) {
    s.kind = Kind::update;
    s.accumulator = AccumulatorId(number_after('a'));
    in_.expect(",");
    s.value = value();
    if (in_.accept("at")) s.index = sym::parse_expr(in_);
  }
  void store(Statement& s) {
    s.kind = Kind::store;
    s.buffer = buffer();
    s.index = subscript();
    in_.expect(",");
    s.value = value();
    s.accumulates = in_.accept("by");
    if (s.accumulates) s.combine = scalar_op();
  }
  void check(Statement& s) {
    s.kind = Kind::check;
    s.buffer = buffer();
    in_.expect(",");
    s.value = value();
  }
  void define(Statement& s) {
    s.kind = Kind::define;
    s.axis = in_.identifier();
    in_.expect("=");
    s.begin = sym::parse_expr(in_);
  }
  void when(Statement& s) {
    s.kind = Kind::when;
    s.value = value();
    in_.expect("{");
    s.body = statements();
  }
  void loop(Statement& s) {
    s.kind = Kind::loop;
    s.grid = in_.accept("grid");
    s.vector = in_.accept("vector");
    if (!s.vector) in_.expect("serial");
    s.axis = in_.identifier();
    if (!s.grid) {
      in_.expect("in");
      s.begin = sym::parse_expr(in_);
      in_.expect("..");
      s.end = sym::parse_expr(in_);
    }
    s.unrolled = in_.accept("unrolled");
    in_.expect("{");
    s.body = statements();
  }

  support::Scanner in_;
  Kernel k_;
};

}  // namespace

Kernel parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace braze::kernel
