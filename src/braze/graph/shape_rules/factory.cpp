// Tensors made from sizes and numbers, and random ones.
#include <cmath>

#include "braze/graph/shape_rules/call.h"

namespace braze::graph::shape_rules {
namespace {

/// The arguments dtype, layout, device, pin_memory stand together; `first` is dtype's position.
Device device_of(Call& c, std::size_t first, Device otherwise) {
  const auto* layout = std::get_if<Layout>(&c.args[first + 1]);
  c.require(!layout || *layout == Layout::kStrided);
  const auto* d = std::get_if<Device>(&c.args[first + 2]);
  if (!d) return otherwise;
  if (d->kind == Device::Kind::kCpu) return {};
  c.require(d->index >= 0);
  return *d;
}

DType scalar_dtype(Call& c, const Arg& a) {
  if (std::holds_alternative<bool>(a)) return DType::kBool;
  if (std::holds_alternative<SymExpr>(a)) return DType::kInt64;
  c.require(std::holds_alternative<double>(a));
  return c.default_dtype;
}

bool make(Call& c, const Sizes& sizes, std::size_t options, DType otherwise) {
  for (const SymExpr& s : sizes) c.require(!s.is_constant() || s.constant() >= 0);
  const Device device = device_of(c, options, {});
  return c.give(op::contiguous(c.dtype(options).value_or(otherwise), sizes, device));
}

bool make_like(Call& c, std::size_t options) {
  const TensorType& self = c.tensor(0);
  TensorType t = formatted(c, self, options + 4);
  t.dtype = c.dtype(options).value_or(self.dtype);
  t.device = device_of(c, options, self.device);
  return c.give(std::move(t));
}

bool make_new(Call& c, std::size_t options) {
  const TensorType& self = c.tensor(0);
  const Device device = device_of(c, options, self.device);
  return c.give(op::contiguous(c.dtype(options).value_or(self.dtype), c.exprs(1), device));
}

bool make_strided(Call& c, std::size_t sizes, DType otherwise, Device device) {
  TensorType t{.dtype = c.dtype(sizes + 2).value_or(otherwise),
               .sizes = c.exprs(sizes),
               .strides = c.exprs(sizes + 1),
               .device = {}};
  t.device = device_of(c, sizes + 2, device);
  return c.require(t.sizes.size() == t.strides.size()) && c.give(std::move(t));
}

double number(Call& c, const Arg& a) {
  if (const auto* d = std::get_if<double>(&a)) return *d;
  if (const auto* e = std::get_if<SymExpr>(&a); e && e->is_constant()) return static_cast<double>(e->constant());
  c.give_up();
  return 0;
}

/// arange: start and step may be missing.
bool arange(Call& c, std::optional<std::size_t> start, std::size_t end, std::optional<std::size_t> step,
            std::size_t options) {
  DType dtype = DType::kInt64;
  for (std::size_t i = 0; i < options; ++i)
    if (scalar_dtype(c, c.args[i]) != DType::kInt64) dtype = c.default_dtype;
  if (c.dtype(options)) dtype = *c.dtype(options);
  const SymExpr* whole = std::get_if<SymExpr>(&c.args[end]);
  if (!start && whole && !whole->is_constant()) return make(c, {*whole}, options, dtype);
  const double first = start ? number(c, c.args[*start]) : 0, last = number(c, c.args[end]);
  const double stride = step ? number(c, c.args[*step]) : 1;
  if (!c.require(std::isfinite(first) && std::isfinite(last) && stride != 0 && (last - first) / stride >= 0))
    return false;
  return make(c, {static_cast<std::int64_t>(std::ceil((last - first) / stride))}, options, dtype);
}

}  // namespace

bool factory(Call& c) {
  switch (c.op) {
    case Op::arange: return arange(c, std::nullopt, 0, std::nullopt, 1);
    case Op::arange_start: return arange(c, 0, 1, std::nullopt, 2);
    case Op::arange_start_step: return arange(c, 0, 1, 2, 3);
    case Op::full: return make(c, c.exprs(0), 2, scalar_dtype(c, c.args[1]));
    case Op::zeros:
    case Op::ones: return make(c, c.exprs(0), 1, c.default_dtype);
    case Op::empty_memory_format: c.require(c.is_none(5)); return make(c, c.exprs(0), 1, c.default_dtype);
    case Op::zeros_like:
    case Op::ones_like:
    case Op::empty_like: return make_like(c, 1);
    case Op::full_like: return make_like(c, 2);
    case Op::new_zeros:
    case Op::new_ones:
    case Op::new_empty: return make_new(c, 2);
    case Op::new_full: return make_new(c, 3);
    case Op::new_empty_strided: return make_strided(c, 1, c.tensor(0).dtype, c.tensor(0).device);
    case Op::empty_strided: return make_strided(c, 0, c.default_dtype, {});
    case Op::scalar_tensor: return make(c, {}, 1, c.default_dtype);
    case Op::eye: return make(c, {c.expr(0), c.expr(0)}, 1, c.default_dtype);
    case Op::linspace:
      for (std::size_t i : {0, 1}) c.require(!std::holds_alternative<Complex>(c.args[i]));
      return make(c, {c.expr(2)}, 3, c.default_dtype);
    default: return c.give_up();
  }
}

bool random(Call& c) {
  switch (c.op) {
    case Op::rand:
    case Op::randn: return make(c, c.exprs(0), 1, c.default_dtype);
    case Op::rand_like:
    case Op::randn_like: return make_like(c, 1) && c.require(op::is_floating(c.out[0]->dtype));
    case Op::randint: return make(c, c.exprs(1), 2, DType::kInt64);
    case Op::randint_low: return make(c, c.exprs(2), 3, DType::kInt64);
    case Op::randperm: return make(c, {c.expr(0)}, 1, DType::kInt64);
    case Op::multinomial: {
      const TensorType& self = c.tensor(0);
      c.require(op::is_floating(self.dtype) && (self.dim() == 1 || self.dim() == 2));
      if (!c.sure) return false;
      Sizes sizes(self.sizes.begin(), self.sizes.end() - 1);
      sizes.push_back(c.expr(1));
      return c.give(like(self, std::move(sizes), DType::kInt64));
    }
    default: break;
  }
  const TensorType& self = c.tensor(0);
  c.require(op::is_contiguous(self) && op::is_floating(self.dtype));
  c.give(like(self, self.sizes));
  if (c.op == Op::native_dropout) c.give(like(self, self.sizes, DType::kBool));
  return true;
}

}  // namespace braze::graph::shape_rules
