// Reads PyTorch's settings. One table gives each field its bits and its name, so that packing and wording agree.
#include "braze/aten/torch_state.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <algorithm>

#include "braze/support/text.h"

namespace braze::aten {
namespace {

struct Field {
  int word, shift, bits;
  const char* name;
};

constexpr Field kGradMode{2, 0, 1, "grad mode"};
constexpr Field kInferenceMode{2, 1, 1, "inference mode"};
constexpr Field kForwardGradMode{2, 2, 1, "forward grad mode"};
constexpr Field kAutocastCpu{2, 3, 1, "autocast on cpu"};
constexpr Field kAutocastCuda{2, 4, 1, "autocast on cuda"};
constexpr Field kAutocastCache{2, 5, 1, "autocast's weight cache"};
constexpr Field kFunctionModes{2, 6, 1, "torch function modes"};
constexpr Field kSavedTensorHooks{2, 7, 1, "saved-tensor hooks"};
constexpr Field kFunctionDisabled{2, 8, 2, "disabled torch functions"};
constexpr Field kAnomaly{2, 10, 1, "anomaly detection"};
constexpr Field kDefaultDtype{2, 16, 8, "default dtype"};
constexpr Field kAutocastCpuDtype{2, 24, 8, "autocast dtype on cpu"};
constexpr Field kAutocastCudaDtype{2, 32, 8, "autocast dtype on cuda"};
constexpr Field kDeterministic{3, 0, 1, "deterministic algorithms"};
constexpr Field kDeterministicWarn{3, 1, 1, "deterministic algorithms (warn only)"};
constexpr Field kDeterministicFill{3, 2, 1, "filling of uninitialised memory"};
constexpr Field kMkldnn{3, 3, 1, "oneDNN"};
constexpr Field kMkldnnDeterministic{3, 4, 1, "deterministic oneDNN"};
constexpr Field kNnpack{3, 5, 1, "NNPACK"};
constexpr Field kCudnn{3, 6, 1, "cuDNN"};
constexpr Field kCudnnBenchmark{3, 7, 1, "cuDNN benchmark"};
constexpr Field kCudnnDeterministic{3, 8, 1, "deterministic cuDNN"};
constexpr Field kFlash{3, 9, 1, "flash attention"};
constexpr Field kMemoryEfficient{3, 10, 1, "memory-efficient attention"};
constexpr Field kMathAttention{3, 11, 1, "math attention"};
constexpr Field kCudnnAttention{3, 12, 1, "cuDNN attention"};
constexpr Field kHalfReductionCpu{3, 13, 1, "half-precision reductions on cpu"};
constexpr Field kHalfReductionCuda{3, 14, 2, "float16 reductions in cuBLAS"};
constexpr Field kBfloatReductionCuda{3, 16, 2, "bfloat16 reductions in cuBLAS"};
constexpr Field kHalfAccumulation{3, 18, 1, "float16 accumulation in cuBLAS"};
constexpr Field kHalfMathAttention{3, 19, 1, "half-precision reductions in math attention"};
constexpr Field kPrecisionCudaMatmul{3, 20, 3, "float32 matmul precision on cuda"};
constexpr Field kPrecisionCpuMatmul{3, 29, 3, "float32 matmul precision of oneDNN"};
constexpr Field kThreads{3, 44, 20, "number of threads"};

constexpr Field kFields[] = {
    kGradMode,
    kInferenceMode,
    kForwardGradMode,
    kAutocastCpu,
    kAutocastCuda,
    kAutocastCache,
    kFunctionModes,
    kSavedTensorHooks,
    kFunctionDisabled,
    kAnomaly,
    kDefaultDtype,
    kAutocastCpuDtype,
    kAutocastCudaDtype,
    kDeterministic,
    kDeterministicWarn,
    kDeterministicFill,
    kMkldnn,
    kMkldnnDeterministic,
    kNnpack,
    kCudnn,
    kCudnnBenchmark,
    kCudnnDeterministic,
    kFlash,
    kMemoryEfficient,
    kMathAttention,
    kCudnnAttention,
    kHalfReductionCpu,
    kHalfReductionCuda,
    kBfloatReductionCuda,
    kHalfAccumulation,
    kHalfMathAttention,
    kPrecisionCudaMatmul,
    kPrecisionCpuMatmul,
    kThreads,
};

constexpr std::uint64_t mask_of(Field f) { return (std::uint64_t{1} << f.bits) - 1; }

/// The dispatch keys under which a compiled callable runs the original.
c10::DispatchKeySet foreign_keys() {
  using c10::DispatchKey;
  return c10::DispatchKeySet({DispatchKey::Python, DispatchKey::PreDispatch, DispatchKey::Functionalize,
                              DispatchKey::FuncTorchDynamicLayerFrontMode, DispatchKey::FuncTorchDynamicLayerBackMode,
                              DispatchKey::FuncTorchBatched, DispatchKey::FuncTorchGradWrapper, DispatchKey::Tracer,
                              DispatchKey::PythonDispatcher});
}

class Packer {
 public:
  template <class T>
  void put(Field f, T value) {
    state.words[f.word] |= (static_cast<std::uint64_t>(value) & mask_of(f)) << f.shift;
  }
  TorchState state;
};

void put_thread_state(Packer& p) {
  const auto keys = c10::impl::tls_local_dispatch_key_set();
  p.state.words[0] = keys.included_.raw_repr();
  p.state.words[1] = keys.excluded_.raw_repr();
  const auto& autograd = c10::AutogradState::get_tls_state();
  p.put(kGradMode, autograd.get_grad_mode());
  p.put(kInferenceMode, autograd.get_inference_mode());
  p.put(kForwardGradMode, autograd.get_fw_grad_mode());
  p.put(kFunctionModes, at::impl::PythonTorchFunctionTLS::stack_len() != 0);
  p.put(kFunctionDisabled, at::impl::PythonTorchFunctionTLS::get_disabled_state());
  p.put(kSavedTensorHooks, !at::SavedTensorDefaultHooks::get_tls_state().stack.empty());
  p.put(kAnomaly, torch::autograd::AnomalyMode::is_enabled());
  p.put(kDefaultDtype, c10::get_default_dtype_as_scalartype());
}

void put_autocast(Packer& p) {
  // is_autocast_enabled(), read off the keys that are at hand
  const c10::DispatchKeySet excluded(c10::DispatchKeySet::RAW, p.state.words[1]);
  const bool cpu = !excluded.has(c10::DispatchKey::AutocastCPU);
  const bool cuda = !excluded.has(c10::DispatchKey::AutocastCUDA);
  if (!cpu && !cuda) return;  // dtypes and cache mean nothing then
  p.put(kAutocastCache, at::autocast::is_autocast_cache_enabled());
  if (cpu) {
    p.put(kAutocastCpu, true);
    p.put(kAutocastCpuDtype, at::autocast::get_autocast_dtype(at::kCPU));
  }
  if (cuda) {
    p.put(kAutocastCuda, true);
    p.put(kAutocastCudaDtype, at::autocast::get_autocast_dtype(at::kCUDA));
  }
}

/// Each costs a search in a hash table. Convolutions and RNNs have settings too, which only library kernels read, on
/// every call.
void put_precisions(Packer& p, const at::Context& context) {
  using at::Float32Backend;
  using at::Float32Op;
  p.put(kPrecisionCpuMatmul, context.float32Precision(Float32Backend::MKLDNN, Float32Op::MATMUL));
  static const bool has_cuda = at::hasCUDA();
  if (has_cuda) p.put(kPrecisionCudaMatmul, context.float32Precision(Float32Backend::CUDA, Float32Op::MATMUL));
}

void put_process_state(Packer& p) {
  const at::Context& context = at::globalContext();
  p.put(kDeterministic, context.deterministicAlgorithms());
  p.put(kDeterministicWarn, context.deterministicAlgorithmsWarnOnly());
  p.put(kDeterministicFill, context.deterministicFillUninitializedMemory());
  p.put(kMkldnn, context.userEnabledMkldnn());
  p.put(kMkldnnDeterministic, context.deterministicMkldnn());
  p.put(kNnpack, context.userEnabledNNPACK());
  p.put(kCudnn, context.userEnabledCuDNN());
  p.put(kCudnnBenchmark, context.benchmarkCuDNN());
  p.put(kCudnnDeterministic, context.deterministicCuDNN());
  p.put(kFlash, context.userEnabledFlashSDP());
  p.put(kMemoryEfficient, context.userEnabledMemEfficientSDP());
  p.put(kMathAttention, context.userEnabledMathSDP());
  p.put(kCudnnAttention, context.userEnabledCuDNNSDP());
  p.put(kHalfReductionCpu, context.allowFP16ReductionCPU());
  p.put(kHalfReductionCuda, context.allowFP16ReductionCuBLAS());
  p.put(kBfloatReductionCuda, context.allowBF16ReductionCuBLAS());
  p.put(kHalfAccumulation, context.allowFP16AccumulationCuBLAS());
  p.put(kHalfMathAttention, context.allowFP16BF16ReductionMathSDP());
  put_precisions(p, context);
  p.put(kThreads, at::get_num_threads());
}

std::uint64_t get(const TorchState& s, Field f) { return (s.words[f.word] >> f.shift) & mask_of(f); }

bool is_dtype(Field f) {
  return f.word == 2 &&
         (f.shift == kDefaultDtype.shift || f.shift == kAutocastCpuDtype.shift || f.shift == kAutocastCudaDtype.shift);
}

std::string value_text(Field f, std::uint64_t value) {
  if (is_dtype(f)) return c10::toString(static_cast<c10::ScalarType>(value));
  if (f.bits == 1) return value != 0 ? "on" : "off";
  return support::format("{}", value);
}

}  // namespace

TorchState TorchState::current() noexcept {
  Packer p;
  put_thread_state(p);
  put_autocast(p);
  put_process_state(p);
  return p.state;
}

bool TorchState::has_foreign_modes() const noexcept {
  static const std::uint64_t foreign = foreign_keys().raw_repr() & ~c10::full_backend_mask;
  return (words[0] & foreign) != 0 || get(*this, kFunctionModes) != 0 || get(*this, kSavedTensorHooks) != 0;
}

std::string TorchState::difference(const TorchState& expected) const {
  std::string text;
  for (const Field f : kFields) {
    if (get(*this, f) == get(expected, f)) continue;
    text += text.empty() ? "" : "; ";
    text += support::format("{} is {}, was {}", f.name, value_text(f, get(*this, f)), value_text(f, get(expected, f)));
  }
  if (text.empty() && *this != expected) text = "this thread's dispatch keys (active modes) differ";
  return text;
}

}  // namespace braze::aten
