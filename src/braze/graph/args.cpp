#include "braze/graph/args.h"

#include <algorithm>
#include <array>

#include "braze/support/check.h"

namespace braze::graph {
namespace {

constexpr std::array<std::string_view, 2> kLayouts = {"strided", "other_layout"};
constexpr std::array<std::string_view, 4> kFormats = {"contiguous_format", "preserve_format", "channels_last",
                                                      "channels_last_3d"};

template <class T, class Print>
std::string list_text(const std::vector<T>& list, std::string_view kind, Print print) {
  if (list.empty()) return std::string(kind) + "[]";
  std::string text = "[";
  for (const auto& item : list) {
    if (text.size() > 1) text += ", ";
    text += print(item);
  }
  return text + "]";
}

std::string bool_text(bool b) { return b ? "true" : "false"; }

struct Printer {
  const std::function<std::string(ValueId)>& name_of;

  std::string operator()(None) const { return "none"; }
  std::string operator()(ValueId v) const { return v.is_none() ? "undefined" : name_of(v); }
  std::string operator()(const std::vector<ValueId>& list) const {
    return list_text(list, "tensors", [&](ValueId v) { return v.is_none() ? "none" : name_of(v); });
  }
  std::string operator()(bool b) const { return bool_text(b); }
  std::string operator()(const SymExpr& e) const { return sym::to_text(e); }
  std::string operator()(double d) const { return support::double_text(d); }
  std::string operator()(Complex c) const {
    return support::format("complex({}, {})", support::double_text(c.real), support::double_text(c.imag));
  }
  std::string operator()(const std::string& s) const { return support::quoted_text(s); }
  std::string operator()(const std::vector<SymExpr>& list) const {
    return list_text(list, "", [](const SymExpr& e) { return sym::to_text(e); });
  }
  std::string operator()(const std::vector<double>& list) const {
    return list_text(list, "floats", support::double_text);
  }
  std::string operator()(const std::vector<bool>& list) const { return list_text(list, "bools", bool_text); }
  std::string operator()(DType t) const { return std::string(op::to_text(t)); }
  std::string operator()(Device d) const { return op::to_text(d); }
  std::string operator()(Layout l) const { return std::string(kLayouts[static_cast<int>(l)]); }
  std::string operator()(MemoryFormat f) const { return std::string(kFormats[static_cast<int>(f)]); }
  std::string operator()(Opaque o) const { return "opaque#" + std::to_string(o.index); }
};

template <class Read>
auto read_list(support::Scanner& in, Read read) {
  std::vector<decltype(read())> list;
  do list.push_back(read());
  while (in.accept(","));
  in.expect("]");
  return list;
}

bool read_bool(support::Scanner& in) {
  if (in.accept("true")) return true;
  in.expect("false");
  return false;
}

using Named = std::function<ValueId(std::string_view)>;

ValueId read_value(support::Scanner& in, const Named& named) {
  if (in.accept("none")) return {};
  in.expect("%");
  return named(in.word());
}

Arg read_list_arg(support::Scanner& in, const Named& named) {
  if (in.accept("]")) return std::vector<SymExpr>{};
  if (in.peek("%") || in.peek("none")) return read_list(in, [&] { return read_value(in, named); });
  if (in.peek("true") || in.peek("false")) return read_list(in, [&] { return read_bool(in); });
  if (in.number_is_double()) return read_list(in, [&] { return in.number(); });
  return read_list(in, [&] { return sym::parse_expr(in); });
}

Arg read_complex(support::Scanner& in) {
  Complex c;
  in.expect("(");
  c.real = in.number();
  in.expect(",");
  c.imag = in.number();
  in.expect(")");
  return c;
}

/// A word that is not an expression, or nothing (then nothing is consumed).
std::optional<Arg> read_keyword(support::Scanner& in) {
  if (in.accept("none")) return None{};
  if (in.accept("undefined")) return ValueId{};
  if (in.accept("true")) return true;
  if (in.accept("false")) return false;
  if (in.accept("complex")) return read_complex(in);
  if (in.accept("tensors[]")) return std::vector<ValueId>{};
  if (in.accept("floats[]")) return std::vector<double>{};
  if (in.accept("bools[]")) return std::vector<bool>{};
  if (in.accept("opaque#")) return Opaque{static_cast<std::uint32_t>(in.integer())};
  if (in.peek("cpu") || in.peek("cuda") || in.peek("meta")) return op::parse_device(in);
  for (std::size_t i = 0; i < kLayouts.size(); ++i)
    if (in.accept(kLayouts[i])) return static_cast<Layout>(i);
  for (std::size_t i = 0; i < kFormats.size(); ++i)
    if (in.accept(kFormats[i])) return static_cast<MemoryFormat>(i);
  for (const op::DTypeInfo& row : op::kDTypes)
    if (in.accept(row.text)) return *op::parse_dtype(row.text);
  return std::nullopt;
}

/// "int[2]" -> 2; 0 if there is no number.
std::size_t list_length(std::string_view type) {
  const std::size_t open = type.find('[');
  if (open == type.npos || type[open + 1] == ']') return 0;
  return static_cast<std::size_t>(type[open + 1] - '0');
}

Arg default_of(const op::Parameter& p) {
  const std::string& text = p.default_text;
  const std::string_view type = p.type;
  support::Scanner in(text);
  if (text == "None") return None{};
  if (text == "True" || text == "False") return text == "True";
  if (type.starts_with("ScalarType")) {
    BRAZE_CHECK(text == "4", "default {} of {} is not known", text, p.name);
    return DType::kInt64;
  }
  if (type.starts_with("MemoryFormat")) return *read_keyword(in);
  if (type.starts_with("str")) return in.quoted();
  if (type.starts_with("float") && type.find('[') == type.npos) return in.number();
  if (type.find('[') == type.npos) return in.number_is_double() ? Arg(in.number()) : Arg(SymExpr(in.integer()));
  if (in.accept("[")) return read_list_arg(in, [](std::string_view) { return ValueId{}; });
  return std::vector<SymExpr>(list_length(type), SymExpr(in.integer()));
}

}  // namespace

std::string to_text(const Arg& arg, const std::function<std::string(ValueId)>& name_of) {
  return std::visit(Printer{name_of}, arg);
}

Arg parse_arg(support::Scanner& in, const Named& value_named) {
  if (in.accept("[")) return read_list_arg(in, value_named);
  if (in.peek("%")) return read_value(in, value_named);
  if (in.peek("\"")) return in.quoted();
  if (in.number_is_double()) return in.number();
  if (auto keyword = read_keyword(in)) return std::move(*keyword);
  return sym::parse_expr(in);
}

std::span<const std::optional<Arg>> default_args(Op op) {
  static const auto kTable = [] {
    std::vector<std::vector<std::optional<Arg>>> table(static_cast<std::size_t>(Op::kCount));
    for (std::size_t i = 1; i < table.size(); ++i)
      for (const op::Parameter& p : op::parameters(static_cast<Op>(i)))
        table[i].push_back(p.has_default ? std::optional(default_of(p)) : std::nullopt);
    return table;
  }();
  return kTable[static_cast<std::size_t>(op)];
}

bool is_tensor_type(std::string_view type) { return type.starts_with("Tensor"); }

}  // namespace braze::graph
