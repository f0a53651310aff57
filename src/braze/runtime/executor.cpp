#include "braze/runtime/executor.h"

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <atomic>
#include <map>
#include <mutex>

#include "braze/runtime/prepare.h"
#include "braze/support/check.h"
#include "braze/support/options.h"

namespace braze::runtime {

namespace {

constexpr std::size_t kSizesKept = 64;  // combinations of symbol values with a prepared plan

/// The chunks go to torch's own pool; a single one runs here without entering a parallel region.
void launch(const PreparedLaunch& l, void* const* buffers) {
  if (l.extent <= l.grain) return l.kernel(buffers, l.arguments.data(), 0, l.extent);
  at::parallel_for(0, l.extent, l.grain,
                   [&](std::int64_t begin, std::int64_t end) { l.kernel(buffers, l.arguments.data(), begin, end); });
}

/// A prepared plan and the memory its last run left for the next.
class FixedPlan {
 public:
  explicit FixedPlan(Prepared prepared) : prepared_(std::move(prepared)) {
    std::size_t most = 0;
    for (const PreparedLaunch& l : prepared_.launches) most = std::max(most, l.operands.size());
    pointers_ = most + 1;
  }
  ~FixedPlan() { delete spare_.load(); }
  FixedPlan(const FixedPlan&) = delete;

  std::vector<at::Tensor> run(std::vector<at::Tensor> inputs) const {
    const Lease lease(*this);
    Buffers& buffers = *lease.buffers;
    buffers.begin();
    for (std::size_t i = 0; i < inputs.size(); i++)
      bind_input(buffers, prepared_.inputs[i].index, std::move(inputs[i]));
    for (const PreparedStep step : prepared_.steps) execute(step, buffers);
    std::vector<at::Tensor> outputs;
    outputs.reserve(prepared_.outputs.size());
    for (const plan::BufferId b : prepared_.outputs) outputs.push_back(output(buffers, b));
    return outputs;
  }
  std::size_t bytes_held() const { return held_.load(); }

 private:
  /// Takes the spare buffers, or makes some; gives them back clean, also after an exception.
  struct Lease {
    explicit Lease(const FixedPlan& p) : program(p), buffers(p.spare_.exchange(nullptr)) {
      if (!buffers) buffers = std::make_unique<Buffers>(p.prepared_.layouts, p.prepared_.used, p.prepared_.arena_bytes);
    }
    Lease(const Lease&) = delete;
    ~Lease() {
      buffers->end();
      program.held_ = buffers->bytes_held();
      delete program.spare_.exchange(buffers.release());
    }
    const FixedPlan& program;
    std::unique_ptr<Buffers> buffers;
  };

  void bind_input(Buffers& buffers, std::uint32_t b, at::Tensor t) const {
    if (t.defined() && !has_layout(t, prepared_.layouts[b])) t = in_layout(t, prepared_.layouts[b]);
    buffers.bind(b, std::move(t));
  }

  void execute(PreparedStep step, Buffers& buffers) const {
    switch (step.kind) {
      case PreparedStep::Kind::kLaunch: return run_kernel(prepared_.launches[step.index], buffers);
      case PreparedStep::Kind::kCall: return prepared_.calls[step.index].run(buffers);
      case PreparedStep::Kind::kAllocate: return buffers.allocate(step.index);
      case PreparedStep::Kind::kFree: return buffers.free(step.index);
    }
  }

  void run_kernel(const PreparedLaunch& l, const Buffers& buffers) const {
    c10::SmallVector<void*, 32> p(pointers_);
    for (std::size_t i = 0; i < l.operands.size(); i++)
      p[i] = static_cast<char*>(buffers.data(l.operands[i].root)) + l.operands[i].byte_offset;
    std::int32_t failed = 0;
    if (l.checks) p[l.operands.size()] = &failed;
    launch(l, p.data());
    if (failed != 0) throw ChecksFailed();
  }

  at::Tensor output(Buffers& buffers, plan::BufferId b) const {
    if (b.is_none()) return {};
    const at::Tensor& t = buffers.tensor(b.index);
    BRAZE_CHECK(!buffers.in_arena(t), "output {} lies in the arena", b.index);
    return t;
  }

  const Prepared prepared_;
  std::size_t pointers_;
  mutable std::atomic<Buffers*> spare_ = nullptr;
  mutable std::atomic<std::size_t> held_ = 0;
};

std::vector<LoadedKernel> load(std::span<const plan::Kernel> kernels, KernelLibrary& library) {
  std::vector<LoadedKernel> loaded;
  if (support::options().interpret_kernels) {
    for (const plan::Kernel& k : kernels)
      loaded.push_back({nullptr, std::make_shared<const kernel::Kernel>(kernel::parse(k.summary))});
    return loaded;
  }
  for (const KernelFunction f : library.load(kernels)) loaded.push_back({f, nullptr});
  return loaded;
}

}  // namespace

struct Executor::State {
  plan::Plan plan;
  std::vector<LoadedKernel> kernels;
  std::shared_ptr<const FixedPlan> fixed;  ///< of a plan without symbols
  std::mutex mutex;
  std::map<std::vector<std::int64_t>, std::shared_ptr<const FixedPlan>> by_size;

  std::shared_ptr<const FixedPlan> program_for(const std::vector<at::Tensor>& inputs);
  std::vector<std::int64_t> symbol_values(const std::vector<at::Tensor>& inputs) const;
};

/// A symbol is some input's size or stride, literally.
std::vector<std::int64_t> Executor::State::symbol_values(const std::vector<at::Tensor>& inputs) const {
  std::vector<std::int64_t> values(plan.symbols.size(), -1);
  const auto match = [&](const std::vector<sym::SymExpr>& exprs, at::IntArrayRef actual) {
    for (std::size_t d = 0; d < exprs.size(); d++) {
      if (exprs[d].is_constant()) continue;
      for (std::size_t s = 0; s < values.size(); s++)
        if (exprs[d] == sym::SymExpr::symbol(plan.symbols[s].name)) values[s] = actual[d];
    }
  };
  for (std::size_t i = 0; i < inputs.size(); i++) {
    if (!inputs[i].defined()) continue;
    const plan::TensorType& type = plan.buffers[plan.inputs[i].index].type;
    match(type.strides, inputs[i].strides());
    match(type.sizes, inputs[i].sizes());
  }
  for (std::size_t s = 0; s < values.size(); s++)
    BRAZE_CHECK(values[s] >= 0, "symbol {} of plan {} is no size of an input", plan.symbols[s].name, plan.name);
  return values;
}

std::shared_ptr<const FixedPlan> Executor::State::program_for(const std::vector<at::Tensor>& inputs) {
  if (fixed) return fixed;
  const std::vector<std::int64_t> values = symbol_values(inputs);
  const std::lock_guard lock(mutex);
  if (const auto found = by_size.find(values); found != by_size.end()) return found->second;
  if (by_size.size() >= kSizesKept) by_size.clear();
  return by_size[values] = std::make_shared<const FixedPlan>(prepare(bind_symbols(plan, values), kernels));
}

Executor::Executor(plan::Plan plan, KernelLibrary& library) : state_(std::make_unique<State>()) {
  state_->kernels = load(plan.kernels, library);
  state_->plan = std::move(plan);
  if (state_->plan.symbols.empty())
    state_->fixed = std::make_shared<const FixedPlan>(prepare(state_->plan, state_->kernels));
}
Executor::~Executor() = default;

std::vector<at::Tensor> Executor::run(std::vector<at::Tensor> inputs) const {
  BRAZE_CHECK(inputs.size() == state_->plan.inputs.size(), "plan {} has {} inputs, got {}", state_->plan.name,
              state_->plan.inputs.size(), inputs.size());
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  return state_->program_for(inputs)->run(std::move(inputs));
}

const plan::Plan& Executor::plan() const { return state_->plan; }

std::size_t Executor::bytes_held() const { return state_->fixed ? state_->fixed->bytes_held() : 0; }

}  // namespace braze::runtime
