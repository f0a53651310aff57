// Both directions of the argument conversion.
#include "braze/aten/argument.h"

#include <ATen/ScalarOps.h>

#include "braze/aten/types.h"
#include "braze/support/check.h"

namespace braze::aten {

using graph::Arg;

namespace {

ArgKind kind_of_list(const c10::Type& element) {
  switch (element.kind()) {
    case c10::TypeKind::TensorType: return ArgKind::kTensorList;
    case c10::TypeKind::OptionalType:
      return element.containedType(0)->kind() == c10::TypeKind::TensorType ? ArgKind::kOptionalTensorList
                                                                           : ArgKind::kOther;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType: return ArgKind::kIntList;
    case c10::TypeKind::FloatType: return ArgKind::kDoubleList;
    case c10::TypeKind::BoolType: return ArgKind::kBoolList;
    default: return ArgKind::kOther;
  }
}

std::optional<Arg> ints_to_arg(const c10::IValue& value) {
  std::vector<sym::SymExpr> out;
  if (value.isIntList()) {
    for (const std::int64_t i : value.toIntList()) out.emplace_back(i);
    return out;
  }
  for (const c10::IValue& element : value.toListRef()) {
    const auto i = element.isInt() ? element.toInt() : element.toSymInt().maybe_as_int();
    if (!i) return std::nullopt;
    out.emplace_back(*i);
  }
  return out;
}

std::optional<Arg> layout_to_arg(at::Layout layout) {
  return layout == at::kStrided ? graph::Layout::kStrided : graph::Layout::kOther;
}

std::optional<Arg> memory_format_to_arg(at::MemoryFormat format) {
  switch (format) {
    case at::MemoryFormat::Contiguous: return graph::MemoryFormat::kContiguous;
    case at::MemoryFormat::Preserve: return graph::MemoryFormat::kPreserve;
    case at::MemoryFormat::ChannelsLast: return graph::MemoryFormat::kChannelsLast;
    case at::MemoryFormat::ChannelsLast3d: return graph::MemoryFormat::kChannelsLast3d;
    default: return std::nullopt;
  }
}

std::optional<Arg> dtype_to_arg(at::ScalarType t) {
  if (const auto dtype = to_dtype(t)) return *dtype;
  return std::nullopt;
}

std::optional<Arg> device_to_arg(at::Device d) {
  if (d.is_cpu() || d.is_cuda() || d.is_meta()) return to_device(d);
  return std::nullopt;
}

at::MemoryFormat to_memory_format(graph::MemoryFormat f) {
  switch (f) {
    case graph::MemoryFormat::kContiguous: return at::MemoryFormat::Contiguous;
    case graph::MemoryFormat::kPreserve: return at::MemoryFormat::Preserve;
    case graph::MemoryFormat::kChannelsLast: return at::MemoryFormat::ChannelsLast;
    case graph::MemoryFormat::kChannelsLast3d: break;
  }
  return at::MemoryFormat::ChannelsLast3d;
}

at::Tensor tensor_of(graph::ValueId id, std::span<const at::Tensor> tensors) {
  return id.is_none() ? at::Tensor() : tensors[id.index];
}

c10::IValue tensor_list(const Arg& arg, std::span<const at::Tensor> tensors) {
  c10::List<at::Tensor> list;
  for (const graph::ValueId id : std::get<std::vector<graph::ValueId>>(arg)) list.push_back(tensor_of(id, tensors));
  return list;
}

c10::IValue optional_tensor_list(const Arg& arg, std::span<const at::Tensor> tensors) {
  c10::List<std::optional<at::Tensor>> list;
  for (const graph::ValueId id : std::get<std::vector<graph::ValueId>>(arg))
    list.push_back(id.is_none() ? std::nullopt : std::optional(tensors[id.index]));
  return list;
}

c10::IValue tensor_value(const Arg& arg, std::span<const at::Tensor> tensors) {
  if (const auto* id = std::get_if<graph::ValueId>(&arg)) return tensor_of(*id, tensors);
  return wrapped_number(to_scalar(arg));
}

}  // namespace

ArgKind kind_of(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::OptionalType: return kind_of(*type.containedType(0));
    case c10::TypeKind::ListType: return kind_of_list(*type.containedType(0));
    case c10::TypeKind::TensorType: return ArgKind::kTensor;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType: return ArgKind::kInt;
    case c10::TypeKind::FloatType: return ArgKind::kDouble;
    case c10::TypeKind::BoolType: return ArgKind::kBool;
    case c10::TypeKind::NumberType: return ArgKind::kScalar;
    case c10::TypeKind::StringType: return ArgKind::kString;
    case c10::TypeKind::ScalarTypeType: return ArgKind::kDType;
    case c10::TypeKind::LayoutType: return ArgKind::kLayout;
    case c10::TypeKind::MemoryFormatType: return ArgKind::kMemoryFormat;
    case c10::TypeKind::DeviceObjType: return ArgKind::kDevice;
    default: return ArgKind::kOther;
  }
}

Arg to_arg(const c10::Scalar& value) {
  if (value.isBoolean()) return value.toBool();
  if (value.isIntegral(false)) return sym::SymExpr(value.toLong());
  if (value.isFloatingPoint()) return value.toDouble();
  const auto c = value.toComplexDouble();
  return graph::Complex{c.real(), c.imag()};
}

std::optional<Arg> to_arg(const c10::IValue& value, ArgKind kind) {
  if (value.isNone()) return graph::None{};
  switch (kind) {
    case ArgKind::kInt: {
      const auto i = value.isInt() ? std::optional(value.toInt()) : value.toSymInt().maybe_as_int();
      if (!i) return std::nullopt;
      return sym::SymExpr(*i);
    }
    case ArgKind::kIntList: return ints_to_arg(value);
    case ArgKind::kDouble: return value.toDouble();
    case ArgKind::kDoubleList: return value.toDoubleVector();
    case ArgKind::kBool: return value.toBool();
    case ArgKind::kBoolList: {
      const auto list = value.toBoolList();
      return std::vector<bool>(list.begin(), list.end());
    }
    case ArgKind::kScalar: {
      const c10::Scalar s = value.toScalar();
      if (s.isSymbolic()) return std::nullopt;
      return to_arg(s);
    }
    case ArgKind::kString: return value.toStringRef();
    case ArgKind::kDType: return dtype_to_arg(value.toScalarType());
    case ArgKind::kLayout: return layout_to_arg(value.toLayout());
    case ArgKind::kMemoryFormat: return memory_format_to_arg(value.toMemoryFormat());
    case ArgKind::kDevice: return device_to_arg(value.toDevice());
    case ArgKind::kTensor:
    case ArgKind::kTensorList:
    case ArgKind::kOptionalTensorList:
    case ArgKind::kOther: break;
  }
  return std::nullopt;
}

c10::Scalar to_scalar(const Arg& arg) {
  if (const auto* b = std::get_if<bool>(&arg)) return *b;
  if (const auto* i = std::get_if<sym::SymExpr>(&arg)) return i->constant();
  if (const auto* d = std::get_if<double>(&arg)) return *d;
  const auto* c = std::get_if<graph::Complex>(&arg);
  BRAZE_CHECK(c != nullptr, "argument of kind {} is not a number", arg.index());
  return c10::complex<double>(c->real, c->imag);
}

at::Tensor wrapped_number(const c10::Scalar& value) {
  at::Tensor t = at::detail::scalar_tensor_static(value, value.type(), at::kCPU);
  t.unsafeGetTensorImpl()->set_wrapped_number(true);
  return t;
}

c10::IValue to_ivalue(const Arg& arg, ArgKind kind, std::span<const at::Tensor> tensors) {
  if (std::holds_alternative<graph::None>(arg)) return {};
  switch (kind) {
    case ArgKind::kTensor: return tensor_value(arg, tensors);
    case ArgKind::kTensorList: return tensor_list(arg, tensors);
    case ArgKind::kOptionalTensorList: return optional_tensor_list(arg, tensors);
    case ArgKind::kInt: return std::get<sym::SymExpr>(arg).constant();
    case ArgKind::kIntList: return to_ints(std::get<std::vector<sym::SymExpr>>(arg));
    case ArgKind::kDouble: return std::get<double>(arg);
    case ArgKind::kDoubleList: return std::get<std::vector<double>>(arg);
    case ArgKind::kBool: return std::get<bool>(arg);
    case ArgKind::kBoolList: {
      c10::List<bool> list;
      for (const bool b : std::get<std::vector<bool>>(arg)) list.push_back(b);
      return list;
    }
    case ArgKind::kScalar: return to_scalar(arg);
    case ArgKind::kString: return std::get<std::string>(arg);
    case ArgKind::kDType: return to_scalar_type(std::get<op::DType>(arg));
    case ArgKind::kLayout:
      BRAZE_CHECK(std::get<graph::Layout>(arg) == graph::Layout::kStrided, "only strided layouts can be replayed");
      return at::kStrided;
    case ArgKind::kMemoryFormat: return to_memory_format(std::get<graph::MemoryFormat>(arg));
    case ArgKind::kDevice: return to_c10_device(std::get<op::Device>(arg));
    case ArgKind::kOther: break;
  }
  BRAZE_CHECK(false, "argument of kind {} cannot be passed to an operator", arg.index());
  return {};
}

}  // namespace braze::aten
