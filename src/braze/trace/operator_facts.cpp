// Tags and alias annotations of PyTorch's schemas answer most questions; the lists below hold what they do not say.
#include "braze/trace/operator_facts.h"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <unordered_map>

#include "braze/support/text.h"

namespace braze::trace {

namespace {

struct Refusal {
  std::string_view name, reason;
};
constexpr Refusal kRefusals[] = {
    {"aten::mkldnn_rnn_layer", "oneDNN's LSTM needs a workspace that only the kernel can size"},
    {"aten::cudnn_batch_norm", "writes to its statistics without saying so"},
    {"aten::miopen_batch_norm", "writes to its statistics without saying so"},
    {"aten::_cudnn_rnn", "keeps a reserve that only the kernel can size"},
    {"aten::_local_scalar_dense", "reads a tensor's value"},
    {"aten::equal", "reads a tensor's value"},
    {"aten::is_set_to", "compares storages"},
    {"aten::_pin_memory", "pins memory"},
    {"aten::is_pinned", "asks where memory is"},
};

std::string qualified_name(const c10::FunctionSchema& schema) {
  return schema.overload_name().empty() ? schema.name() : schema.name() + "." + schema.overload_name();
}

std::string find_refusal(const c10::OperatorHandle& op, const std::string& name) {
  for (const Refusal& r : kRefusals)
    if (name == r.name) return support::format("{}: {}", name, r.reason);
  if (op::find_op(name) == op::Op::index_Tensor) return "";  // dynamic with masks only: decided per call
  if (op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::dynamic_output_shape))
    return support::format("{}: data-dependent", name);
  if (op.schema().is_mutable()) return support::format("{}: writes in place", name);
  const auto& returns = op.schema().returns();
  for (const auto& r : returns)
    if (returns.size() > 1 && aten::kind_of(*r.real_type()) == aten::ArgKind::kTensorList)
      return support::format("{}: returns several lists", name);
  return "";
}

/// The fallback for the key Meta only raises, so "computed" does not tell.
bool has_meta_kernel(const c10::OperatorHandle& op) {
  using c10::DispatchKey;
  return op.hasKernelForDispatchKey(DispatchKey::Meta) ||
         op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional) ||
         op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd);
}

OperatorFacts find_facts(const c10::OperatorHandle& op) {
  OperatorFacts f;
  f.name = qualified_name(op.schema());
  f.op = op::find_op(f.name);
  f.refusal = find_refusal(op, f.name);
  f.is_random = op.hasTag(at::Tag::nondeterministic_seeded);
  f.has_meta_kernel = has_meta_kernel(op);
  f.is_foreach = f.name.starts_with("aten::_foreach_");
  const auto& parameters = op.schema().arguments();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    f.kinds.push_back(aten::kind_of(*parameters[i].real_type()));
    if (parameters[i].name() == "dropout_p") f.dropout = static_cast<int>(i);
  }
  const auto& returns = op.schema().returns();
  f.returns_tensors = std::all_of(returns.begin(), returns.end(), [](const c10::Argument& r) {
    const auto kind = aten::kind_of(*r.real_type());
    return kind == aten::ArgKind::kTensor || kind == aten::ArgKind::kTensorList;
  });
  f.returns_list = returns.size() == 1 && aten::kind_of(*returns[0].real_type()) == aten::ArgKind::kTensorList;
  return f;
}

}  // namespace

const OperatorFacts& facts_of(const c10::OperatorHandle& op) {
  thread_local std::unordered_map<c10::OperatorHandle, OperatorFacts> cache;
  const auto found = cache.find(op);
  return found != cache.end() ? found->second : cache.emplace(op, find_facts(op)).first->second;
}

}  // namespace braze::trace
