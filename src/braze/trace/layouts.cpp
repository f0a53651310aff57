// An in-place operator keeps the strides of what it writes; its functional form may give others. They are put right
// after the call: by viewing the written base again, by a copy in the old order of dimensions, or not at all (poison).
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "braze/aten/python_tensor.h"
#include "braze/trace/tracer_state.h"

namespace braze::trace {

namespace fn = at::functionalization::impl;

namespace {

using Strides = std::vector<std::int64_t>;

/// Strides of dimensions of one element say nothing.
bool has_layout(const at::Tensor& t, const Strides& strides) {
  for (std::int64_t d = 0; d < t.dim(); ++d)
    if (t.size(d) > 1 && t.stride(d) != strides[static_cast<std::size_t>(d)]) return false;
  return true;
}

/// The order of dimensions in which the strides are those of contiguous memory.
std::optional<Strides> dense_order(const at::Tensor& t, const Strides& strides) {
  auto at = [&](std::int64_t d) { return strides[static_cast<std::size_t>(d)]; };
  Strides order(strides.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
    return std::pair(t.size(a) > 1 ? at(a) : 0, a) > std::pair(t.size(b) > 1 ? at(b) : 0, b);
  });
  std::int64_t expected = 1;
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    if (t.size(*d) > 1 && at(*d) != expected) return std::nullopt;
    expected *= t.size(*d);
  }
  return order;
}

at::Tensor copy_in_order(const at::Tensor& value, const Strides& order) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard below_functionalization(c10::DispatchKey::Functionalize);
  Strides inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return value.permute(order).clone(at::MemoryFormat::Contiguous).permute(inverse);
}

void restore_layout(Recorder& r, const at::Tensor& t, const Strides& strides) {
  fn::sync(t);
  auto* wrapper = fn::unsafeGetFunctionalWrapper(t);
  if (!wrapper->isBaseTensor()) wrapper->regenerate_from_base();
  if (has_layout(t, strides)) return;
  if (const auto order = dense_order(t, strides)) {
    fn::replace_(t, copy_in_order(fn::from_functional_tensor(t), *order));
    fn::commit_update(t);
    fn::sync(t);
  }
  if (!has_layout(t, strides)) r.poison = "an in-place operator on a tensor with gaps in its memory";
}

}  // namespace

struct Tracer::Layouts::Noted {
  at::Tensor tensor;
  Strides sizes, strides;
};

Tracer::Layouts::Layouts(Tracer& tracer, std::span<const Owned<>> objects) : tracer_(tracer) {
  for (const Owned<>& object : objects) {
    if (!object || !tracer.is_fake(object.borrow())) continue;
    const at::Tensor& t = aten::unwrap(object.borrow());
    if (fn::isFunctionalTensor(t)) noted_.push_back({t, t.sizes().vec(), t.strides().vec()});
  }
}

Tracer::Layouts::~Layouts() = default;

void Tracer::Layouts::restore() {
  for (const Noted& n : noted_)
    if (n.tensor.sizes() == at::IntArrayRef(n.sizes) && !has_layout(n.tensor, n.strides))
      restore_layout(tracer_.state_->recorder, n.tensor, n.strides);
}

}  // namespace braze::trace
