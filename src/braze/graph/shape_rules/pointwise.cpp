// Pointwise operators: one TensorIterator over the tensors, in the order in which eager's kernels add them.
#include <algorithm>

#include "braze/graph/shape_rules/call.h"

namespace braze::graph::shape_rules {
namespace {

/// torch.result_type, step by step: dimensioned tensors, then 0-dim tensors, then numbers.
class Promotion {
 public:
  explicit Promotion(DType default_dtype) : default_(default_dtype) {}

  void add(const TensorType& t) { merge(t.dim() ? dimensioned_ : zero_, t.dtype); }
  void add_scalar(const Arg& a) {
    if (std::holds_alternative<bool>(a)) merge(number_, DType::kBool);
    else if (std::holds_alternative<SymExpr>(a)) merge(number_, DType::kInt64);
    else if (std::holds_alternative<double>(a)) merge(number_, default_);
    else merge(number_, DType::kComplex64);
  }
  std::optional<DType> result() const { return combine(dimensioned_, combine(zero_, number_)); }

 private:
  static void merge(std::optional<DType>& into, DType t) { into = into ? op::promote(*into, t) : t; }
  static std::optional<DType> combine(std::optional<DType> high, std::optional<DType> low) {
    if (!high || !low) return high ? high : low;
    if (op::is_floating(*high)) return op::is_complex(*low) ? op::promote(*high, DType::kComplex64) : *high;
    if (op::is_complex(*high)) return high;
    if (*high == DType::kBool || op::is_floating(*low) || op::is_complex(*low)) return op::promote(*high, *low);
    return high;
  }
  DType default_;
  std::optional<DType> dimensioned_, zero_, number_;
};

/// The tensors among the arguments, in schema order, as a TensorIterator's operands.
struct Inputs {
  std::vector<Operand> operands;
  std::optional<Device> device;
  Promotion promotion;
  bool same_dtype = true;
  DType first = DType::kFloat32;

  explicit Inputs(Call& c) : promotion(c.default_dtype) {}

  void add(Call& c, const TensorType& t) {
    if (operands.empty()) first = t.dtype;
    same_dtype = same_dtype && t.dtype == first;
    operands.push_back({&t.sizes, &t.strides});
    promotion.add(t);
    add_device(c, t);
  }
  /// A number in a Tensor position or beside the tensors: a wrapped 0-dim operand.
  void add_number(const Arg& a) {
    static const Sizes kNone;
    operands.push_back({&kNone, &kNone});
    promotion.add_scalar(a);
  }
  TensorType iterate(Call& c, DType dtype) const {
    return shape_rules::iterate(c, operands, dtype, device.value_or(Device{}));
  }

 private:
  // A 0-dim CPU tensor goes along with tensors of any device.
  void add_device(Call& c, const TensorType& t) {
    const bool is_guest = t.dim() == 0 && t.device.kind == Device::Kind::kCpu;
    if (!device || (guest_ && !is_guest)) {
      device = t.device;
      guest_ = is_guest;
    } else if (!is_guest) {
      c.require(*device == t.device);
    }
  }
  bool guest_ = false;
};

bool is_tensor_position(const Call& c, std::size_t i) { return op::parameters(c.op)[i].type.starts_with("Tensor"); }

Inputs inputs_of(Call& c) {
  Inputs in(c);
  for (std::size_t i = 0; i < c.args.size(); ++i) {
    if (const TensorType* t = c.maybe_tensor(i)) in.add(c, *t);
    else if (is_tensor_position(c, i) && c.is_scalar(i)) in.add_number(c.args[i]);
    else if (is_tensor_position(c, i) && !c.is_none(i)) c.give_up();
  }
  c.require(in.device.has_value());
  return in;
}

DType common(Call& c, const Inputs& in) {
  const auto t = in.promotion.result();
  c.require(t && !op::is_complex(*t));
  return t.value_or(DType::kFloat32);
}

DType to_float(const Call& c, DType t) { return op::is_floating(t) ? t : c.default_dtype; }

bool has_double(const Call& c, std::size_t i) {
  return std::holds_alternative<double>(c.args[i]) || std::holds_alternative<Complex>(c.args[i]);
}

bool give_common(Call& c, const Inputs& in, DType dtype) { return c.give(in.iterate(c, dtype)); }

/// add, sub and their kin: a floating alpha needs a floating result, subtraction refuses bools.
bool additive(Call& c, const Inputs& in, std::size_t alpha) {
  const DType t = common(c, in);
  c.require(!std::holds_alternative<bool>(c.args[alpha]) && (op::is_floating(t) || !has_double(c, alpha)));
  const bool subtracts = c.op == Op::sub_Tensor || c.op == Op::sub_Scalar || c.op == Op::rsub_Scalar;
  for (std::size_t i = 0; subtracts && i < 2; ++i) {
    const TensorType* tensor = c.maybe_tensor(i);
    c.require(!(tensor && tensor->dtype == DType::kBool) && !std::holds_alternative<bool>(c.args[i]));
  }
  return give_common(c, in, t);
}

bool clamp(Call& c) {
  Inputs in(c);
  const TensorType& self = c.tensor(0);
  in.add(c, self);
  for (std::size_t i = 1; i < c.args.size(); ++i)
    if (c.is_scalar(i)) in.promotion.add_scalar(c.args[i]);
  const DType t = common(c, in);
  c.require(t != DType::kBool && self.dtype != DType::kBool);
  c.require(c.args.size() == 2 || !c.is_none(1) || !c.is_none(2));
  return give_common(c, in, t);
}

bool pow_scalar(Call& c) {
  Inputs in(c);
  in.add(c, c.tensor(0));
  in.promotion.add_scalar(c.args[1]);
  const DType t = common(c, in);
  const auto* e = std::get_if<SymExpr>(&c.args[1]);
  const bool integral = !op::is_floating(t);
  c.require(!integral || (e && e->is_constant() && e->constant() >= 0));
  if (t != c.tensor(0).dtype) c.require(is_dense(c, c.tensor(0)));  // eager converts the base first
  return give_common(c, in, t);
}

bool scalar_pow(Call& c) {
  Promotion p(c.default_dtype);
  p.add(c.tensor(1));
  p.add_scalar(c.args[0]);
  const auto t = p.result();
  c.require(t && !op::is_complex(*t) && *t != DType::kBool && op::is_contiguous(c.tensor(1)));
  return c.sure && c.give(like(c.tensor(1), c.tensor(1).sizes, *t));
}

bool where(Call& c) {
  Inputs in = inputs_of(c);
  Promotion p(c.default_dtype);
  for (std::size_t i : {1, 2}) {
    if (const TensorType* t = c.maybe_tensor(i)) p.add(*t);
    else p.add_scalar(c.args[i]);
  }
  const auto t = p.result();
  c.require(c.tensor(0).dtype == DType::kBool && t && !op::is_complex(*t));
  for (std::size_t i : {1, 2})  // eager converts an operand of another type first, which keeps dense layouts only
    if (const TensorType* x = c.maybe_tensor(i); x && t && x->dtype != *t) c.require(is_dense(c, *x));
  return c.sure && give_common(c, in, *t);
}

/// self expanded to the mask, copied densely in row-major order.
bool masked_fill(Call& c) {
  const TensorType &self = c.tensor(0), &mask = c.tensor(1);
  c.require(mask.dtype == DType::kBool);
  if (const TensorType* value = c.maybe_tensor(2)) c.require(value->dim() == 0 && value->dtype == self.dtype);
  else c.require(c.is_scalar(2) && (op::is_floating(self.dtype) || !has_double(c, 2)) && self.dtype != DType::kBool);
  c.require(!std::holds_alternative<Complex>(c.args[2]));
  return c.give(like(self, broadcast(c, self.sizes, mask.sizes)));
}

bool two_in_order(Call& c, std::size_t first, std::size_t second) {
  Inputs in(c);
  in.add(c, c.tensor(first));
  in.add(c, c.tensor(second));
  c.require(in.same_dtype && op::is_floating(in.first));
  return give_common(c, in, in.first);
}

bool dropout_backward(Call& c) {
  Inputs in(c);
  in.add(c, c.tensor(0));
  in.add(c, c.tensor(1));
  c.require(op::is_floating(c.tensor(0).dtype) && c.tensor(1).dtype == DType::kBool);
  const TensorType product = in.iterate(c, in.first);
  Inputs scaled(c);
  scaled.add(c, product);
  scaled.add_number(c.args[2]);
  return give_common(c, scaled, in.first);
}

bool needs_floating(Op op) {
  switch (op) {
    case Op::frac:
    case Op::leaky_relu:
    case Op::elu:
    case Op::gelu:
    case Op::silu:
    case Op::mish:
    case Op::hardswish:
    case Op::hardsigmoid:
    case Op::softplus:
    case Op::celu:
    case Op::hardtanh: return true;
    default: return false;
  }
}

}  // namespace

bool pointwise(Call& c) {
  switch (c.op) {
    case Op::clamp:
    case Op::clamp_min:
    case Op::clamp_max: return clamp(c);
    case Op::pow_Tensor_Scalar: return pow_scalar(c);
    case Op::pow_Scalar: return scalar_pow(c);
    case Op::where_self: return where(c);
    case Op::masked_fill_Scalar:
    case Op::masked_fill_Tensor: return masked_fill(c);
    case Op::threshold_backward:
    case Op::leaky_relu_backward: return two_in_order(c, 1, 0);
    case Op::native_dropout_backward: return dropout_backward(c);
    default: break;
  }
  Inputs in = inputs_of(c);
  if (!c.sure) return false;
  switch (c.op) {
    case Op::add_Scalar:
    case Op::sub_Scalar:
    case Op::rsub_Scalar: in.add_number(c.args[1]); return additive(c, in, 2);
    case Op::add_Tensor:
    case Op::sub_Tensor: return additive(c, in, 2);
    case Op::mul_Tensor: return give_common(c, in, common(c, in));
    case Op::mul_Scalar: in.add_number(c.args[1]); return give_common(c, in, common(c, in));
    case Op::div_Scalar: in.add_number(c.args[1]); [[fallthrough]];
    case Op::div_Tensor:
    case Op::atan2:
    case Op::copysign_Tensor: return give_common(c, in, to_float(c, common(c, in)));
    case Op::div_Tensor_mode: {
      const DType t = common(c, in);
      c.require(c.is_none(2) || t != DType::kBool);
      return give_common(c, in, c.is_none(2) ? to_float(c, t) : t);
    }
    case Op::remainder_Scalar:
    case Op::fmod_Scalar: in.add_number(c.args[1]); [[fallthrough]];
    case Op::remainder_Tensor:
    case Op::fmod_Tensor:
    case Op::floor_divide:
    case Op::pow_Tensor_Tensor: {
      for (std::size_t i = 0; i < 2; ++i) {
        const TensorType* tensor = c.maybe_tensor(i);
        c.require(!(tensor && tensor->dtype == DType::kBool) && !std::holds_alternative<bool>(c.args[i]));
      }
      return give_common(c, in, common(c, in));
    }
    case Op::maximum:
    case Op::minimum:
    case Op::fmax:
    case Op::fmin: return give_common(c, in, common(c, in));
    case Op::hypot:
    case Op::logaddexp:
    case Op::clamp_Tensor:
    case Op::lerp_Tensor:
    case Op::addcmul:
    case Op::addcdiv:
      c.require(in.same_dtype && op::is_floating(common(c, in)) && in.operands.size() > 1);
      return give_common(c, in, common(c, in));
    case Op::bitwise_and_Scalar:
    case Op::bitwise_or_Scalar: in.add_number(c.args[1]); [[fallthrough]];
    case Op::bitwise_and_Tensor:
    case Op::bitwise_or_Tensor:
    case Op::bitwise_xor_Tensor:
    case Op::bitwise_not: c.require(!op::is_floating(common(c, in))); return give_common(c, in, common(c, in));
    default: c.require(in.same_dtype && op::is_floating(in.first)); return give_common(c, in, in.first);
  }
}

bool compare(Call& c) {
  Inputs in = inputs_of(c);
  if (!c.sure) return false;
  const auto parameters = op::parameters(c.op);
  if (parameters.size() > 1 && parameters[1].type == "Scalar") in.add_number(c.args[1]);
  common(c, in);
  if (c.op == Op::isinf) {
    const TensorType absolute = in.iterate(c, in.first);
    Inputs compared(c);
    compared.add(c, absolute);
    compared.add_number(1.0);
    c.require(op::is_floating(in.first));
    return give_common(c, compared, DType::kBool);
  }
  return give_common(c, in, DType::kBool);
}

bool same(Call& c) {
  const TensorType& self = c.tensor(0);
  c.require(self.dtype != DType::kBool && !op::is_complex(self.dtype));
  c.require(!needs_floating(c.op) || op::is_floating(self.dtype));
  if (c.op == Op::positive) return c.give(self);
  if (c.op == Op::threshold) c.require(op::is_floating(self.dtype) || (!has_double(c, 1) && !has_double(c, 2)));
  Inputs in(c);
  in.add(c, self);
  return give_common(c, in, self.dtype);
}

bool same_float(Call& c) {
  const TensorType& self = c.tensor(0);
  c.require(!op::is_complex(self.dtype));
  Inputs in(c);
  in.add(c, self);
  if (c.op == Op::log_sigmoid_forward) {
    c.require(op::is_floating(self.dtype) && self.device.kind == Device::Kind::kCpu && op::is_contiguous(self));
    c.give(like(self, self.sizes));
    return c.give(like(self, self.sizes));
  }
  return give_common(c, in, to_float(c, self.dtype));
}

bool to_copy(Call& c) {
  const TensorType& self = c.tensor(0);
  TensorType t = formatted(c, self, 6);
  t.dtype = c.dtype(1).value_or(self.dtype);
  if (const auto* d = std::get_if<Device>(&c.args[3])) {
    t.device = *d;
    c.require(d->kind == Device::Kind::kCpu || d->index >= 0);
    if (d->kind == Device::Kind::kCpu) t.device.index = -1;
  }
  const auto* layout = std::get_if<Layout>(&c.args[2]);
  c.require(!layout || *layout == Layout::kStrided);
  return c.give(std::move(t));
}

bool clone(Call& c) {
  const TensorType& self = c.tensor(0);
  if (c.op == Op::copy) {  // self's layout, whatever it is
    const TensorType& source = c.tensor(1);
    c.require(c.equal(broadcast(c, self.sizes, source.sizes), self.sizes) && !has_overlap(self));
    return c.give(self);
  }
  if (c.op == Op::clone) return c.give(formatted(c, self, 1));
  c.require(op::is_contiguous(self));
  return c.give(self);
}

}  // namespace braze::graph::shape_rules
