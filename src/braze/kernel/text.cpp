// Text of kernels, for dumps, explain and golden tests.
#include "braze/kernel/kernel.h"

namespace braze::kernel {
namespace {

using support::format;

struct Printer {
  const Kernel& k;
  std::string out;

  void line(int depth, const std::string& text) {
    out += std::string(static_cast<std::size_t>(depth) * 2, ' ') + text + "\n";
  }

  std::string value_text(const Value& v) const {
    std::string operands;
    for (ValueId o : v.operands) operands += format("{}%{}", operands.empty() ? "" : ", ", o.index);
    if (v.form == Value::Form::result) return format("result a{}", v.accumulator.index);
    if (v.form == Value::Form::load)
      return format("load b{}[{}]{}{}", v.buffer.index, to_text(v.index), operands.empty() ? "" : " if ", operands);
    if (v.op == ScalarOp::constant)
      return op::is_floating(v.type) ? support::double_text(v.number) : std::to_string(v.integer);
    if (v.op == ScalarOp::index) return format("index {}", to_text(v.index));
    return format("{}({})", loop::to_text(v.op), operands);
  }

  void print(const Statement& s, int depth) {
    using Kind = Statement::Kind;
    switch (s.kind) {
      case Kind::let: {
        const Value& v = k.values[s.value.index];
        return line(depth, format("%{}: {} = {}", s.value.index, op::to_text(v.type), value_text(v)));
      }
      case Kind::reload:
        return line(depth, format("%{} = reload b{}[{}]", s.value.index, s.buffer.index, to_text(s.index)));
      case Kind::accumulate: {
        const Accumulator& a = k.accumulators[s.accumulator.index];
        return line(depth,
                    format("accumulate a{} = {} {}", s.accumulator.index, loop::to_text(a.fold), op::to_text(a.type)));
      }
      case Kind::update:
        return line(depth, format("update a{}, %{}{}", s.accumulator.index, s.value.index,
                                  s.index.is_value(0) ? "" : " at " + to_text(s.index)));
      case Kind::store:
        return line(depth, format("store b{}[{}], %{}{}", s.buffer.index, to_text(s.index), s.value.index,
                                  s.accumulates ? format(" by {}", loop::to_text(s.combine)) : std::string()));
      case Kind::check: return line(depth, format("check b{}, %{}", s.buffer.index, s.value.index));
      case Kind::define: return line(depth, format("define {} = {}", s.axis, to_text(s.begin)));
      case Kind::when: line(depth, format("when %{} {{", s.value.index)); break;
      case Kind::loop:
        line(depth, format("{}{} {}{}{} {{", s.grid ? "grid " : "", s.vector ? "vector" : "serial", s.axis,
                           s.grid ? "" : format(" in {}..{}", to_text(s.begin), to_text(s.end)),
                           s.unrolled ? " unrolled" : ""));
        break;
    }
    for (const Statement& inner : s.body) print(inner, depth + 1);
    line(depth, "}");
  }
};

}  // namespace

std::string to_text(const Kernel& k) {
  Printer p{k, format("kernel @{}(", k.name)};
  for (std::size_t b = 0; b < k.buffers.size(); ++b) {
    const Buffer& buffer = k.buffers[b];
    p.out += format("{}b{}: {}{}{}{}", b ? ", " : "", b, op::to_text(buffer.type), buffer.written ? " out" : "",
                    buffer.local ? format(" local {}", buffer.local) : std::string(), buffer.flag ? " flag" : "");
  }
  for (const std::string& i : k.integers) p.out += (p.out.ends_with("(") ? "" : ", ") + i;
  p.out += ") {\n";
  for (const Statement& s : k.body) p.print(s, 1);
  if (!k.fold.empty()) {
    p.out += "} fold {\n";
    for (const Statement& s : k.fold) p.print(s, 1);
  }
  return p.out + "}\n";
}

}  // namespace braze::kernel
