// The kernel for the Functionalize key, where PyTorch has only a fallback for this operator.
#include "braze/trace/batch_norm.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/ops/_native_batch_norm_legit.h>
#include <ATen/ops/_native_batch_norm_legit_no_training.h>
#include <torch/library.h>

namespace braze::trace {

namespace {

using Result = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

Result batch_norm(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                  const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& mean,
                  const std::optional<at::Tensor>& var, bool training, double momentum, double eps) {
  const bool has_stats = mean && mean->defined() && var && var->defined();
  if (!has_stats) return at::_native_batch_norm_legit(input, weight, bias, training, momentum, eps);
  if (!training) return at::_native_batch_norm_legit_no_training(input, weight, bias, *mean, *var, momentum, eps);
  at::Tensor new_mean = *mean, new_var = *var;
  return at::_native_batch_norm_legit(input, weight, bias, new_mean, new_var, training, momentum, eps);
}

}  // namespace

void register_batch_norm() {
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::Functionalize, __FILE__, __LINE__);
  static const bool registered = [] {
    library.impl("native_batch_norm", TORCH_FN(batch_norm));
    return true;
  }();
  (void)registered;
}

}  // namespace braze::trace
