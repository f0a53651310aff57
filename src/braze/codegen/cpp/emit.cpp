// A fold over the statements. A value is a vector if it depends on a vector axis; a single value meets vectors by
// splat.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "braze/codegen/cpp/index_text.h"
#include "braze/codegen/emit.h"
#include "braze/schedule/access.h"
#include "braze/support/check.h"

namespace braze::codegen {
namespace {

using kernel::Kernel;
using kernel::Statement;
using kernel::Value;
using kernel::ValueId;
using loop::Fold;
using loop::ScalarOp;
using op::DType;
using support::format;
using sym::SymExpr;
using Kind = Statement::Kind;

constexpr std::string_view kPatterns[] = {
    "",
    "",
    "",
#define SCALAR(id, arity, type, cpp) cpp,
#include "braze/op/scalar_ops.def"
#undef SCALAR
};

constexpr std::size_t kMaskedOnly = 300;  // statements in a loop body that is printed once
constexpr std::int64_t kBlocked = 65536;  // elements of a sum that is folded in blocks

std::string_view memory_type(DType t) {
  switch (t) {
    case DType::kBool: return "b8";
    case DType::kUInt8: return "u8";
    case DType::kInt8: return "i8";
    case DType::kInt16: return "i16";
    case DType::kInt32: return "i32";
    case DType::kInt64: return "i64";
    case DType::kFloat16: return "f16";
    case DType::kBFloat16: return "bf16";
    case DType::kFloat32: return "float";
    case DType::kFloat64: return "double";
    default: break;
  }
  BRAZE_CHECK(false, "kernels do not know {}", op::to_text(t));
}

bool is_small_integer(DType t) { return op::is_integral(t) && op::bytes(t) < 4; }
bool is_wide(DType t) { return op::bytes(t) == 8; }
bool is_arg(Fold f) { return f == Fold::argmax || f == Fold::argmin; }

std::string number_text(double v, DType t) {
  const bool single = t != DType::kFloat64;
  if (std::isnan(v)) return single ? "__builtin_nanf(\"\")" : "__builtin_nan(\"\")";
  if (std::isinf(v)) return format("{}__builtin_inf{}()", v < 0 ? "-" : "", single ? "f" : "");
  return format("{:a}{}", single ? static_cast<double>(static_cast<float>(v)) : v, single ? "f" : "");
}

class Emitter {
 public:
  explicit Emitter(const Kernel& k) : k_(k), vector_(k.values.size()) {
    for (const auto* body : {&k.body, &k.fold}) {
      scan(*body);
      for (const auto& [a, depth] : declared_)
        if (depth > 0) lane_accumulators_.insert(a);
    }
    find_vectors();
  }

  std::string run(const std::string& name) {
    out_ = format("extern \"C\" void {}(void* const* p, const i64* s, i64 begin, i64 end) {{\n", name);
    head();
    if (!k_.fold.empty()) {
      out_ += format("if (s[{}]) {{\n", k_.integers.size() - 1);
      scan(k_.fold);
      statements(k_.fold);
      out_ += "return;\n}\n";
    }
    scan(k_.body);
    statements(k_.body);
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  // ---- what is a vector, and how many lanes there are

  /// Where accumulators of this body are declared and updated.
  void scan(const std::vector<Statement>& body) {
    declared_.clear();
    updated_.clear();
    find_vector_axes(body);
  }

  void find_vector_axes(const std::vector<Statement>& body) {
    for (const Statement& s : body) {
      if (s.kind == Kind::loop && s.vector) axes_.insert(s.axis);
      if (s.kind == Kind::accumulate) declared_[s.accumulator.index] = depth_;
      if (s.kind == Kind::update) updated_[s.accumulator.index] = depth_;
      if (s.kind == Kind::loop && s.vector) ++depth_;
      find_vector_axes(s.body);
      if (s.kind == Kind::loop && s.vector) --depth_;
    }
  }

  /// Kept per lane: declared and updated inside a vector axis.
  bool is_lane_accumulator(std::uint32_t a) const {
    const auto d = declared_.find(a);
    return d != declared_.end() && d->second > 0;
  }
  /// Folds lanes: updated deeper inside a vector axis than declared.
  bool folds_lanes(std::uint32_t a) const {
    const auto d = declared_.find(a), u = updated_.find(a);
    return d != declared_.end() && u != updated_.end() && u->second > d->second;
  }

  bool mentions_vector(const SymExpr& e) const {
    if (e.is_constant()) return false;
    std::vector<std::string> names;
    collect_symbols(e, names);
    return std::ranges::any_of(names, [&](const std::string& n) {
      return n[0] == '@' ? bool(vector_[std::stoul(n.substr(1))]) : axes_.contains(n);
    });
  }

  void find_vectors() {
    for (std::size_t v = 0; v < k_.values.size(); ++v) {
      const Value& value = k_.values[v];
      bool is = mentions_vector(value.index);
      for (ValueId o : value.operands) is = is || vector_[o.index];
      if (value.form == Value::Form::result) is = lane_accumulators_.contains(value.accumulator.index);
      vector_[v] = is;
    }
    for (const auto* body : {&k_.body, &k_.fold})
      kernel::for_each_statement(*body, [&](const Statement& s) {
        if (s.kind == Kind::let && vector_[s.value.index] && is_wide(k_.values[s.value.index].type)) lanes_ = 8;
      });
    for (const auto* body : {&k_.body, &k_.fold}) widen_stores(*body, false);
  }

  void widen_stores(const std::vector<Statement>& body, bool inside) {
    for (const Statement& s : body) {
      if (s.kind == Kind::store && inside && is_wide(k_.buffers[s.buffer.index].type)) lanes_ = 8;
      if (s.kind == Kind::update && inside && is_wide(k_.accumulators[s.accumulator.index].type)) lanes_ = 8;
      widen_stores(s.body, inside || s.vector);
    }
  }

  std::string_view type_text(DType t, bool vector) const {
    if (!vector) {
      if (t == DType::kBool) return "bool";
      if (t == DType::kFloat64) return "double";
      if (t == DType::kInt64) return "i64";
      return op::is_floating(t) ? "float" : "i32";
    }
    if (t == DType::kFloat64) return "vd";
    if (t == DType::kInt64) return "vl";
    if (op::is_floating(t)) return lanes_ == 16 ? "vf" : "hf";
    return lanes_ == 16 ? "vi" : "hi";
  }

  // ---- names

  std::string name_text(const std::string& n) const {
    if (n[0] == '@') return "v" + n.substr(1);
    const auto it = names_.find(n);
    return it == names_.end() ? n : it->second;
  }
  std::string text(const SymExpr& e) const {
    return index_text(e, [this](const std::string& n) { return name_text(n); });
  }
  /// The index of lane l.
  std::string lane_text(const SymExpr& e) const {
    return index_text(e, [this](const std::string& n) {
      if (n[0] == '@') return name_text(n) + (vector_[std::stoul(n.substr(1))] ? "[l]" : "");
      return axes_.contains(n) ? "(" + name_text(n) + " + l)" : name_text(n);
    });
  }
  void open_axis(const std::string& axis) { names_[axis] = format("x{}", next_axis_++); }

  /// The index of the first lane, if the lanes are contiguous.
  bool is_contiguous(const SymExpr& e) const {
    if (axis_.empty()) return false;
    const std::vector<std::string> names{axis_};
    const auto linear = schedule::linear_in(e, names);
    return linear && linear->coefficients[0].is_value(1) && !mentions_vector(linear->rest);
  }

  std::string operand(ValueId v, bool vector) const {
    const std::string name = format("v{}", v.index);
    if (!vector || vector_[v.index]) return name;
    const DType t = k_.values[v.index].type;
    return format("{}<{}>({})", t == DType::kBool ? "msplat" : "splat", type_text(t, true), name);
  }

  // ---- expressions

  std::string fill(std::string_view pattern, const std::vector<std::string>& operands, DType t) const {
    std::string text;
    for (std::size_t k = 0; k < pattern.size(); ++k) {
      if (pattern[k] != '$') {
        text += pattern[k];
        continue;
      }
      const char c = pattern[++k];
      if (c == 't') text += memory_type(t);
      else text += operands[static_cast<std::size_t>(c - '0')];
    }
    return text;
  }

  static std::string_view truth_pattern(ScalarOp op) {
    switch (op) {
      case ScalarOp::add:
      case ScalarOp::maximum:
      case ScalarOp::bit_or: return "$0 | $1";
      case ScalarOp::mul:
      case ScalarOp::minimum:
      case ScalarOp::bit_and: return "$0 & $1";
      case ScalarOp::sub:
      case ScalarOp::bit_xor: return "$0 ^ $1";
      default: return kPatterns[static_cast<int>(op)];
    }
  }

  std::string combine(ScalarOp op, DType t, const std::string& a, const std::string& b) const {
    const std::string e = fill(t == DType::kBool ? truth_pattern(op) : kPatterns[static_cast<int>(op)], {a, b}, t);
    return is_small_integer(t) ? format("wrap_<{}>({})", memory_type(t), e) : e;
  }

  std::string cast_text(ValueId from, DType to, bool vector) const {
    const DType source = k_.values[from.index].type;
    const std::string x = operand(from, vector);
    const std::string_view type = type_text(to, vector);
    if (to == DType::kBool) return source == to ? x : format("to_mask({})", x);
    std::string e = source == DType::kBool ? format("from_mask<{}>({})", type, x) : format("cast_<{}>({})", type, x);
    if (op::is_half(to)) e = format("round_to<{}>({})", memory_type(to), e);
    return is_small_integer(to) && source != DType::kBool ? format("wrap_<{}>({})", memory_type(to), e) : e;
  }

  std::string scalar_text(const Value& v, bool vector) const {
    if (v.op == ScalarOp::constant) {
      if (op::is_floating(v.type)) return number_text(v.number, v.type);
      if (v.type == DType::kBool) return v.integer ? "true" : "false";
      return v.integer == INT64_MIN ? "(-9223372036854775807l - 1)" : format("{}l", v.integer);
    }
    if (v.op == ScalarOp::index) return index_value(v, vector);
    if (v.op == ScalarOp::cast) return cast_text(v.operands[0], v.type, vector);
    std::vector<std::string> operands;
    const DType first = k_.values[v.operands[0].index].type;
    const bool ordered = v.op == ScalarOp::lt || v.op == ScalarOp::le || v.op == ScalarOp::gt || v.op == ScalarOp::ge;
    for (ValueId o : v.operands) {
      operands.push_back(operand(o, vector));
      if (ordered && first == DType::kBool)
        operands.back() = format("from_mask<{}>({})", type_text(DType::kInt32, vector), operands.back());
    }
    if (loop::type_rule(v.op) == loop::TypeRule::boolean)
      return format("msk({})", fill(kPatterns[static_cast<int>(v.op)], operands, first));
    const std::string e =
        fill(v.type == DType::kBool ? truth_pattern(v.op) : kPatterns[static_cast<int>(v.op)], operands, v.type);
    return is_small_integer(v.type) && v.op != ScalarOp::select ? format("wrap_<{}>({})", memory_type(v.type), e) : e;
  }

  std::string index_value(const Value& v, bool vector) const {
    if (!vector) return text(v.index);
    const std::string_view type = type_text(v.type, true);
    if (is_contiguous(v.index)) return format("iota<{0}>() + splat<{0}>({1})", type, text(v.index));
    return format("lanes<{}>([&](int l) BODY {{ return {}; }})", type, lane_text(v.index));
  }

  std::string load_text(const Value& v, bool vector) const {
    const std::string p = format("p{}", v.buffer.index);
    const std::string_view type = type_text(v.type, true);
    const bool masked = !v.operands.empty();
    if (!vector) {
      if (masked) return format("ld1m({} + {}, {})", p, text(v.index), operand(v.operands[0], false));
      return format("ld1({} + {})", p, text(v.index));
    }
    const std::string mask = masked ? operand(v.operands[0], true) : "";
    if (is_contiguous(v.index)) {
      if (masked) return format("ldm<{}>({} + {}, m, {})", type, p, text(v.index), mask);
      return format("ld({} + {}, m)", p, text(v.index));
    }
    const std::string at = format("[&](int l) BODY {{ return {}; }}", lane_text(v.index));
    if (masked) return format("ldxm<{}>({}, m, {}, {})", type, p, at, mask);
    return format("ldx<{}>({}, m, {})", type, p, at);
  }

  std::string value_text(const Value& v, bool vector) const {
    if (v.form == Value::Form::load) return load_text(v, vector);
    if (v.form == Value::Form::scalar) return scalar_text(v, vector);
    const Fold fold = k_.accumulators[v.accumulator.index].fold;
    const std::string get = format("a{}.get()", v.accumulator.index);
    return is_arg(fold) && vector ? format("cast_<vl>({})", get) : get;
  }

  // ---- statements

  void head() {
    std::size_t at = 0;
    for (std::size_t b = 0; b < k_.buffers.size(); ++b) {
      const kernel::Buffer& buffer = k_.buffers[b];
      const std::string_view constant = buffer.written ? "" : "const ", t = memory_type(buffer.type);
      if (buffer.local) out_ += format("alignas(64) {} p{}[{}];\n", t, b, buffer.local);
      else if (!buffer.flag) out_ += format("{0}{1}* R p{2} = ({0}{1}*)p[{3}];\n", constant, t, b, at++);
    }
    for (std::size_t b = 0; b < k_.buffers.size(); ++b)
      if (k_.buffers[b].flag) out_ += format("i32* p{} = (i32*)p[{}];\n", b, at);
    for (std::size_t i = 0; i < k_.integers.size(); ++i) {
      names_[k_.integers[i]] = format("n{}", i);
      if (k_.integers[i] != "fold") out_ += format("const i64 n{} = s[{}];\n", i, i);
    }
  }

  void statements(const std::vector<Statement>& body) {
    for (const Statement& s : body) statement(s);
  }

  void statement(const Statement& s) {
    switch (s.kind) {
      case Kind::let: return let(s);
      case Kind::reload:
        out_ += format("const {} v{} = ld(p{} + {}, m);\n", type_text(k_.values[s.value.index].type, true),
                       s.value.index, s.buffer.index, text(s.index));
        return;
      case Kind::accumulate: return accumulate(s);
      case Kind::update: return update(s);
      case Kind::store: return store(s);
      case Kind::check:
        if (vector_[s.value.index]) out_ += format("if (!holds(v{}, m)) *p{} = 1;\n", s.value.index, s.buffer.index);
        else out_ += format("if (!v{}) *p{} = 1;\n", s.value.index, s.buffer.index);
        return;
      case Kind::define: {
        const std::string at = text(s.begin);
        open_axis(s.axis);
        out_ += format("const i64 {} = {};\n", name_text(s.axis), at);
        return;
      }
      case Kind::when:
        out_ += format("if (v{}) {{\n", s.value.index);
        statements(s.body);
        out_ += "}\n";
        return;
      case Kind::loop: return loop(s);
    }
  }

  void let(const Statement& s) {
    const Value& v = k_.values[s.value.index];
    const bool vector = vector_[s.value.index];
    out_ += format("const {} v{} = {};\n", type_text(v.type, vector), s.value.index, value_text(v, vector));
  }

  static std::string_view fold_text(Fold f) {
    static constexpr std::string_view kNames[] = {"FSum", "FProd", "FMax", "FMin", "true", "false", "FAny", "FAll"};
    return kNames[static_cast<int>(f)];
  }

  void accumulate(const Statement& s) {
    const std::uint32_t a = s.accumulator.index;
    const kernel::Accumulator& acc = k_.accumulators[a];
    const bool lanes = is_lane_accumulator(a), folds = folds_lanes(a) && !lanes;
    std::string_view kind;
    if (is_arg(acc.fold)) kind = lanes ? "ArgV" : folds && is_contiguous_arg(a) ? "ArgAcc" : "Arg1";
    else kind = lanes ? "AccV" : !folds ? "Acc1" : acc.type == DType::kBool ? "MaskAcc" : "Acc";
    const bool vector = kind != "Acc1" && kind != "Arg1";
    out_ += format("{}<{}, {}> a{};\n", kind, type_text(acc.type, vector), fold_text(acc.fold), a);
    kind_[a] = kind;
  }

  bool is_contiguous_arg(std::uint32_t a) const {
    bool contiguous = false;
    find_update(k_.body, a, "", contiguous);
    return contiguous;
  }
  void find_update(const std::vector<Statement>& body, std::uint32_t a, const std::string& axis,
                   bool& contiguous) const {
    for (const Statement& s : body) {
      if (s.kind == Kind::update && s.accumulator.index == a) {
        const std::vector<std::string> names{axis};
        const auto linear = schedule::linear_in(s.index, names);
        contiguous = linear && linear->coefficients[0].is_value(1);
      }
      find_update(s.body, a, s.kind == Kind::loop && s.vector ? s.axis : axis, contiguous);
    }
  }

  void update(const Statement& s) {
    const std::uint32_t a = s.accumulator.index;
    const std::string_view kind = kind_[a];
    const std::string part = unrolled_ ? "k" : "0";
    if (kind == "Acc" || kind == "MaskAcc") out_ += format("a{}.up({}, {}, m);\n", a, part, operand(s.value, true));
    else if (kind == "ArgAcc")
      out_ += format("a{}.up({}, {}, {}, m);\n", a, part, operand(s.value, true), text(s.index));
    else if (kind == "AccV") out_ += format("a{}.up({});\n", a, operand(s.value, true));
    else if (kind == "ArgV") out_ += format("a{}.up({}, {});\n", a, operand(s.value, true), text(s.index));
    else if (kind == "Acc1") out_ += format("a{}.up({});\n", a, operand(s.value, false));
    else if (axis_.empty()) out_ += format("a{}.up({}, {});\n", a, operand(s.value, false), text(s.index));
    else
      out_ += format("for (int l = 0; l < (int)m.n; l++) a{}.up({}[l], {});\n", a, operand(s.value, true),
                     lane_text(s.index));
  }

  void store(const Statement& s) {
    const DType t = k_.buffers[s.buffer.index].type;
    const DType compute = op::compute_type(t);
    const std::string p = format("p{}", s.buffer.index);
    if (axis_.empty() || !(vector_[s.value.index] || mentions_vector(s.index))) {
      std::string value = operand(s.value, false);
      if (s.accumulates) value = combine(s.combine, compute, format("ld1({} + {})", p, text(s.index)), value);
      out_ += format("st1({} + {}, {});\n", p, text(s.index), value);
      return;
    }
    std::string value = operand(s.value, true);
    if (is_contiguous(s.index)) {
      if (s.accumulates) value = combine(s.combine, compute, format("ld({} + {}, m)", p, text(s.index)), value);
      out_ += format("st({} + {}, ({})({}), m);\n", p, text(s.index), type_text(compute, true), value);
      return;
    }
    BRAZE_CHECK(!s.accumulates, "an accumulating store with lanes that may meet");
    out_ += format("stx({}, {}, m, [&](int l) BODY {{ return {}; }});\n", p, value, lane_text(s.index));
  }

  static bool has_updates(const Statement& s) {
    bool found = false;
    kernel::for_each_statement(s.body, [&](const Statement& inner) { found = found || inner.kind == Kind::update; });
    return found;
  }

  void loop(const Statement& s) {
    const std::string begin = s.grid ? "begin" : text(s.begin), end = s.grid ? "end" : text(s.end);
    open_axis(s.axis);
    const std::string axis = name_text(s.axis);
    if (!s.vector) {
      out_ += format("for (i64 {0} = {1}; {0} < {2}; {0}++) {{\n", axis, begin, end);
      statements(s.body);
      out_ += "}\n";
      return;
    }
    const auto extent = s.grid ? std::nullopt : (s.end - s.begin).maybe_constant();
    const std::string form = loop_form(s, extent);
    const bool unrolled = form.starts_with("loop4");
    const bool blocked = unrolled && (!extent || *extent > kBlocked);
    std::string b = begin, e = end;
    if (blocked) {
      out_ += format("for (i64 b{0} = {1}; b{0} < {2}; b{0} += 4096) {{\n", axis, begin, end);
      b = "b" + axis;
      e = format("imin({} + 4096, {})", b, end);
    }
    out_ +=
        format("{}<{}>({}, {}, [&](i64 {}, auto m{}) BODY {{\n", form, lanes_, b, e, axis, unrolled ? ", int k" : "");
    const std::string outside = std::exchange(axis_, s.axis);
    const bool was = std::exchange(unrolled_, unrolled);
    statements(s.body);
    unrolled_ = was;
    axis_ = outside;
    out_ += "});\n";
    if (blocked) {
      flush(s);
      out_ += "}\n";
    }
  }

  void flush(const Statement& s) {
    kernel::for_each_statement(s.body, [&](const Statement& inner) {
      if (inner.kind == Kind::update && kind_[inner.accumulator.index] == "Acc")
        out_ += format("a{}.flush();\n", inner.accumulator.index);
    });
  }

  std::string loop_form(const Statement& s, std::optional<std::int64_t> extent) const {
    const std::int64_t n = lanes_;
    if (s.body.size() > kMaskedOnly || (extent && *extent < n)) return "loopp";
    if (s.unrolled && (!extent || *extent >= 4 * n))
      return extent && *extent % (4 * n) == 0 && s.begin.is_value(0) ? "loop4f" : "loop4";
    return extent && *extent % n == 0 && s.begin.is_constant() ? "loopf" : "loop";
  }

  const Kernel& k_;
  std::string out_;
  std::vector<bool> vector_;
  std::set<std::string> axes_;                       // vector axes
  std::map<std::uint32_t, int> declared_, updated_;  // number of vector axes around
  std::set<std::uint32_t> lane_accumulators_;
  std::map<std::uint32_t, std::string_view> kind_;
  std::map<std::string, std::string> names_;
  int depth_ = 0, next_axis_ = 0;
  int lanes_ = 16;
  std::string axis_;  // the vector axis around the current statement
  bool unrolled_ = false;
};

}  // namespace

std::string emit_cpp(const Kernel& k, const std::string& name) { return Emitter(k).run(name); }

}  // namespace braze::codegen
