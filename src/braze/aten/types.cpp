// Conversions of types are tables: one row per element type.
#include "braze/aten/types.h"

#include "braze/support/check.h"

namespace braze::aten {

using op::DType;

namespace {

constexpr std::pair<at::ScalarType, DType> kTypes[] = {
    {at::kBool, DType::kBool},
    {at::kByte, DType::kUInt8},
    {at::kChar, DType::kInt8},
    {at::kShort, DType::kInt16},
    {at::kInt, DType::kInt32},
    {at::kLong, DType::kInt64},
    {at::kHalf, DType::kFloat16},
    {at::kBFloat16, DType::kBFloat16},
    {at::kFloat, DType::kFloat32},
    {at::kDouble, DType::kFloat64},
    {at::kComplexFloat, DType::kComplex64},
    {at::kComplexDouble, DType::kComplex128},
};

}  // namespace

std::optional<DType> to_dtype(at::ScalarType t) {
  for (const auto& [theirs, ours] : kTypes)
    if (theirs == t) return ours;
  return std::nullopt;
}

at::ScalarType to_scalar_type(DType t) {
  for (const auto& [theirs, ours] : kTypes)
    if (ours == t) return theirs;
  BRAZE_CHECK(false, "element type {} has no counterpart in PyTorch", op::to_text(t));
  return at::kFloat;
}

op::Device to_device(at::Device d) {
  if (d.is_cpu()) return {op::Device::Kind::kCpu, -1};
  if (d.is_cuda()) return {op::Device::Kind::kCuda, d.index()};
  BRAZE_CHECK(d.is_meta(), "device {} is neither cpu, cuda nor meta", d.str());
  return {op::Device::Kind::kMeta, -1};
}

at::Device to_c10_device(op::Device d) {
  switch (d.kind) {
    case op::Device::Kind::kCpu: return at::Device(at::kCPU);
    case op::Device::Kind::kCuda: return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(d.index));
    case op::Device::Kind::kMeta: break;
  }
  return at::Device(at::kMeta);
}

op::TensorType type_of(const at::Tensor& t) {
  const auto dtype = to_dtype(t.scalar_type());
  BRAZE_CHECK(dtype.has_value(), "element type {} is unknown", c10::toString(t.scalar_type()));
  return {*dtype, to_exprs(t.sizes()), to_exprs(t.strides()), to_device(t.device())};
}

std::vector<std::int64_t> to_ints(const std::vector<sym::SymExpr>& values) {
  std::vector<std::int64_t> out;
  out.reserve(values.size());
  for (const auto& v : values) out.push_back(v.constant());
  return out;
}

std::vector<sym::SymExpr> to_exprs(at::IntArrayRef values) { return {values.begin(), values.end()}; }

}  // namespace braze::aten
