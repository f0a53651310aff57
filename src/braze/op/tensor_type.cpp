// Text and strides of tensor types.
#include "braze/op/tensor_type.h"

#include <algorithm>

#include "braze/support/check.h"
#include "braze/support/error.h"

namespace braze::op {

std::vector<SymExpr> contiguous_strides(const std::vector<SymExpr>& sizes) {
  std::vector<SymExpr> strides(sizes.size());
  SymExpr next = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = next;
    if (!sizes[i].is_value(0)) next = next * sizes[i];
  }
  return strides;
}

bool is_contiguous(const TensorType& t) {
  if (std::ranges::any_of(t.sizes, [](const SymExpr& s) { return s.is_value(0); })) return true;
  SymExpr expected = 1;
  for (std::size_t i = t.sizes.size(); i-- > 0;) {
    if (t.sizes[i].is_value(1)) continue;
    if (!(t.strides[i] == expected)) return false;
    expected = expected * t.sizes[i];
  }
  return true;
}

TensorType contiguous(DType dtype, std::vector<SymExpr> sizes, Device device) {
  TensorType t{.dtype = dtype, .sizes = std::move(sizes), .strides = {}, .device = device};
  t.strides = contiguous_strides(t.sizes);
  return t;
}

namespace {

std::string list_text(const std::vector<SymExpr>& list) {
  std::string text;
  for (const SymExpr& e : list) text += (text.empty() ? "" : ", ") + sym::to_text(e);
  return text;
}

std::vector<SymExpr> parse_list(support::Scanner& in, std::string_view close) {
  std::vector<SymExpr> list;
  while (!in.accept(close)) {
    if (!list.empty()) in.expect(",");
    list.push_back(sym::parse_expr(in));
  }
  return list;
}

constexpr std::string_view kDeviceNames[] = {"cpu", "cuda", "meta"};

}  // namespace

std::string to_text(Device d) {
  std::string text(kDeviceNames[static_cast<int>(d.kind)]);
  return d.index < 0 ? text : text + ":" + std::to_string(d.index);
}

// Strides that differ from the row-major ones only where a size is 1 are printed too: they are part of the type.
std::string to_text(const TensorType& t) {
  std::string text = support::format("{}[{}]", to_text(t.dtype), list_text(t.sizes));
  if (t.strides != contiguous_strides(t.sizes)) text += "{" + list_text(t.strides) + "}";
  if (t.device != Device{}) text += " " + to_text(t.device);
  return text;
}

Device parse_device(support::Scanner& in) {
  Device d;
  const std::string_view word = in.identifier();
  const auto* found = std::ranges::find(kDeviceNames, word);
  if (found == std::end(kDeviceNames)) in.fail("a device");
  d.kind = static_cast<Device::Kind>(found - kDeviceNames);
  if (in.accept(":")) d.index = static_cast<int>(in.integer());
  return d;
}

TensorType parse_type(support::Scanner& in) {
  const auto dtype = parse_dtype(in.identifier());
  if (!dtype) in.fail("an element type");
  in.expect("[");
  TensorType t = contiguous(*dtype, parse_list(in, "]"));
  if (in.accept_here('{')) t.strides = parse_list(in, "}");
  if (t.strides.size() != t.sizes.size()) in.fail("as many strides as sizes");
  for (std::string_view name : kDeviceNames)
    if (in.peek(name)) t.device = parse_device(in);
  return t;
}

TensorType parse_type(std::string_view text) {
  support::Scanner in(text);
  TensorType t = parse_type(in);
  if (!in.at_end()) in.fail("the end of the type");
  return t;
}

}  // namespace braze::op
