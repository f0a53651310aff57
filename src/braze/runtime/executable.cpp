// Forward program, outputs with their histories, then the commit of what the segment writes.
#include "braze/runtime/executable.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>

#include "braze/aten/error.h"
#include "braze/aten/python_tensor.h"
#include "braze/aten/types.h"
#include "braze/py/gil.h"
#include "braze/runtime/backward_node.h"
#include "braze/support/check.h"

namespace braze::runtime {

using autograd::Edge;
using autograd::Output;
using autograd::Saved;

namespace {

using Tensors = std::vector<at::Tensor>;

/// False for most results: nobody else holds their memory, so nothing can alias it.
bool may_alias(const at::Tensor& t) { return t.defined() && (t.use_count() > 1 || t.storage().use_count() > 1); }

bool share_storage(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() && a.storage().unsafeGetStorageImpl() == b.storage().unsafeGetStorageImpl();
}

/// A view of `base` with the output's geometry; differentiable if the program made it so.
at::Tensor make_view(const at::Tensor& base, const Output& output) {
  const auto sizes = aten::to_ints(output.type.sizes), strides = aten::to_ints(output.type.strides);
  const at::AutoGradMode mode(output.requires_grad && !output.is_leaf);
  const at::Tensor source = output.requires_grad && !output.is_leaf ? base : base.detach();
  const at::ScalarType dtype = aten::to_scalar_type(output.type.dtype);
  const at::Tensor viewed = source.scalar_type() == dtype ? source : source.view(dtype);
  return viewed.as_strided(sizes, strides, viewed.storage_offset() + output.offset.constant());
}

/// In the commit nothing may fail: what copy_ would refuse is refused before anything is written.
void check_writable(const at::Tensor& to, const at::Tensor& value) {
  at::assert_no_internal_overlap(to);
  BRAZE_CHECK(to.sizes() == value.sizes(), "a mutation changes the size of its input");
}

/// Primals in, one tensor per segment output back, with the mutations committed.
class Runner {
 public:
  Runner(const autograd::Segment& segment, Tensors primals) : segment_(segment), primals_(std::move(primals)) {}

  /// `values`: the forward outputs, with their histories.
  Tensors finish(Tensors values) {
    values_ = std::move(values);
    for (const autograd::Mutation& m : segment_.mutations) check_writable(primals_[m.primal], values_[m.output]);
    commit();
    Tensors outputs(segment_.outputs.size());
    for (std::size_t i = 0; i < outputs.size(); i++)
      if (segment_.outputs[i].kind != Output::Kind::kViewOfOutput) outputs[i] = make(segment_.outputs[i]);
    for (std::size_t i = 0; i < outputs.size(); i++) {
      const Output& output = segment_.outputs[i];
      if (output.kind == Output::Kind::kViewOfOutput) outputs[i] = make_view(outputs[output.index], output);
    }
    return outputs;
  }

 private:
  void commit() {
    const at::NoGradGuard no_grad;
    for (const autograd::Mutation& m : segment_.mutations) primals_[m.primal].copy_(values_[m.output]);
  }

  at::Tensor make(const Output& output) const {
    switch (output.kind) {
      case Output::Kind::kGraph: return own(output);
      case Output::Kind::kInput: return primals_[output.index];
      case Output::Kind::kViewOfInput: return make_view(primals_[output.index], output);
      case Output::Kind::kViewOfOutput: break;
    }
    BRAZE_CHECK(false, "output is a view of output {}: made after the others", output.index);
    return {};
  }

  at::Tensor own(const Output& output) const {
    at::Tensor t = values_[output.index];
    if (output.is_leaf && output.requires_grad) {
      t = t.detach();
      t.set_requires_grad(true);
    } else if (!output.requires_grad && t.requires_grad()) {
      t = t.detach();
    }
    return t;
  }

  const autograd::Segment& segment_;
  Tensors primals_, values_;
};

/// Forward outputs that the user gets as tensors of their own.
std::vector<std::size_t> own_outputs(const autograd::Segment& segment) {
  std::set<std::size_t> own;
  for (const Output& o : segment.outputs)
    if (o.kind == Output::Kind::kGraph) own.insert(o.index);
  return {own.begin(), own.end()};
}

/// Those share memory neither with an input nor with each other, whatever rewriting made of the graph.
void make_own(Tensors& values, const std::vector<std::size_t>& own, const Tensors& primals) {
  for (std::size_t n = 0; n < own.size(); n++) {
    at::Tensor& value = values[own[n]];
    if (!may_alias(value)) continue;
    bool shared = std::ranges::any_of(primals, [&](const at::Tensor& p) { return share_storage(value, p); });
    for (std::size_t k = 0; k < n; k++) shared = shared || share_storage(value, values[own[k]]);
    if (shared) value = value.clone();
  }
}

/// The backends eager: PyTorch's autograd sees every operator of the forward.
class EagerExecutable final : public Executable {
 public:
  explicit EagerExecutable(autograd::Segment segment)
      : segment_(std::move(segment)), own_(own_outputs(segment_)), forward_(forward_graph()) {}

  std::vector<Owned<>> run(std::span<PyObject* const> inputs) override;
  std::vector<KernelReport> kernels() const override { return {}; }
  std::size_t compiled_ops() const override { return 0; }
  std::size_t bytes_held() const override { return 0; }

 private:
  graph::Graph forward_graph() const {
    graph::Graph g = segment_.joint.graph;
    g.nodes.resize(segment_.joint.forward_nodes);
    g.inputs.resize(segment_.joint.primals);
    g.outputs.resize(segment_.joint.forward_outputs);
    return g;
  }

  const autograd::Segment segment_;
  const std::vector<std::size_t> own_;
  const aten::Replay forward_;
};

/// The backends aot_eager and braze.
class PartitionedExecutable final : public Executable {
 public:
  PartitionedExecutable(autograd::Segment segment, std::shared_ptr<PlanCompiler> compiler);

  std::vector<Owned<>> run(std::span<PyObject* const> inputs) override;
  std::vector<KernelReport> kernels() const override;
  std::size_t compiled_ops() const override { return forward_->is_planned() ? segment_.joint.forward_nodes : 0; }
  std::size_t compiled_backward_ops() const override;
  double replay_seconds() override;
  std::size_t bytes_held() const override;

 private:
  Tensors run_tensors(Tensors primals);
  void attach_histories(const Tensors& primals, Tensors& values) const;
  void attach_level(const std::shared_ptr<LevelPrograms>& level, const Tensors& primals, Tensors& values) const;
  at::Tensor to_save(const at::Tensor& t, bool is_extra, const Tensors& primals,
                     std::span<const at::Tensor> outputs) const;
  void remember(const Tensors& primals);
  Tensors remembered();

  const autograd::Segment segment_;
  const std::vector<std::size_t> own_;
  std::size_t forward_outputs_ = 0;
  std::unique_ptr<const CompiledGraph> forward_;
  std::vector<std::shared_ptr<LevelPrograms>> levels_;
  std::atomic<std::size_t> runs_ = 0;
  std::mutex mutex_;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> last_;  ///< inputs of the last run, for replay_seconds
};

Tensors unwrap_all(std::span<PyObject* const> inputs) {
  Tensors tensors;
  tensors.reserve(inputs.size());
  for (PyObject* p : inputs) tensors.push_back(aten::unwrap(py::Borrowed<>::of(p)));
  return tensors;
}

/// Inputs that are outputs keep their Python object: wrap finds it.
std::vector<Owned<>> wrap_all(const Tensors& tensors) {
  std::vector<Owned<>> objects;
  objects.reserve(tensors.size());
  for (const at::Tensor& t : tensors) objects.push_back(aten::wrap(t));
  return objects;
}

template <class F>
auto without_gil(F&& f) {
  const py::GilRelease released;
  return f();
}

std::vector<Owned<>> EagerExecutable::run(std::span<PyObject* const> inputs) {
  Tensors primals = unwrap_all(inputs);
  return wrap_all(aten::translated([&] {
    return without_gil([&] {
      Tensors values = forward_.run(primals);
      make_own(values, own_, primals);
      return Runner(segment_, std::move(primals)).finish(std::move(values));
    });
  }));
}

autograd::Partitioned partitioned(const autograd::JointGraph& joint, PlanCompiler* compiler) {
  const PhaseClock clock(compiler, "partition");
  return autograd::partition(joint);
}

PartitionedExecutable::PartitionedExecutable(autograd::Segment segment, std::shared_ptr<PlanCompiler> compiler)
    : segment_(std::move(segment)), own_(own_outputs(segment_)) {
  autograd::Partitioned parts = partitioned(segment_.joint, compiler.get());
  forward_outputs_ = parts.forward_outputs;
  for (const autograd::Mutation& m : segment_.mutations)
    for (const autograd::Backward& b : parts.backwards)
      for (const std::uint32_t output : b.outputs)
        BRAZE_CHECK(output != m.output, "input {} is written with a value that has a gradient", m.primal);
  forward_ = std::make_unique<const CompiledGraph>(std::move(parts.forward), compiler.get());
  for (autograd::Backward& b : parts.backwards)
    levels_.push_back(std::make_shared<LevelPrograms>(std::move(b), compiler));
}

std::vector<Owned<>> PartitionedExecutable::run(std::span<PyObject* const> inputs) {
  Tensors primals = unwrap_all(inputs);
  return wrap_all(aten::translated([&] { return without_gil([&] { return run_tensors(std::move(primals)); }); }));
}

Tensors PartitionedExecutable::run_tensors(Tensors primals) {
  remember(primals);
  Tensors values = forward_->run(primals);
  make_own(values, own_, primals);
  attach_histories(primals, values);
  return Runner(segment_, std::move(primals)).finish(std::move(values));
}

void PartitionedExecutable::attach_histories(const Tensors& primals, Tensors& values) const {
  for (const auto& level : levels_) attach_level(level, primals, values);
}

/// The tensor among `candidates` whose memory `saved` shares, or null.
const at::Tensor* find_base(const at::Tensor& saved, std::span<const at::Tensor> candidates) {
  if (!may_alias(saved)) return nullptr;
  for (const at::Tensor& c : candidates)
    if (share_storage(saved, c)) return &c;
  return nullptr;
}

/// A saved input, or a view of one, that this segment itself writes in its commit is saved as it was before. A view of
/// another input or of an output shares its version counter, as eager's views do: who writes there is found out.
at::Tensor PartitionedExecutable::to_save(const at::Tensor& t, bool is_extra, const Tensors& primals,
                                          std::span<const at::Tensor> outputs) const {
  for (const autograd::Mutation& m : segment_.mutations)
    if (share_storage(t, primals[m.primal])) return t.detach().clone();
  if (!is_extra) return t;
  const at::Tensor* base = find_base(t, primals);
  if (base == nullptr) base = find_base(t, outputs);
  if (base != nullptr) torch::autograd::impl::set_version_counter(t, torch::autograd::impl::version_counter(*base));
  return t;
}

void PartitionedExecutable::attach_level(const std::shared_ptr<LevelPrograms>& level, const Tensors& primals,
                                         Tensors& values) const {
  const autograd::Backward& b = level->backward();
  const NodePointer<BackwardNode> node = make_node<BackwardNode>(level);
  torch::autograd::edge_list edges;
  for (const Edge& e : b.edges) {
    const at::Tensor& to = e.kind == Edge::Kind::kPrimal ? primals[e.index] : values[e.index];
    edges.push_back(to.requires_grad() ? torch::autograd::impl::gradient_edge(to) : torch::autograd::Edge());
  }
  node->set_next_edges(std::move(edges));
  for (const std::uint32_t output : b.outputs) torch::autograd::set_history(values[output], node);
  Tensors saved;
  std::vector<bool> is_output;
  for (const Saved& s : b.saved) {
    const bool is_extra = s.kind == Saved::Kind::kExtra;
    const at::Tensor& t =
        s.kind == Saved::Kind::kPrimal ? primals[s.index] : values[s.index + (is_extra ? forward_outputs_ : 0)];
    saved.push_back(to_save(t, is_extra, primals, std::span(values).first(forward_outputs_)));
    is_output.push_back(s.kind == Saved::Kind::kOutput && std::ranges::find(b.outputs, s.index) != b.outputs.end());
  }
  node->save(saved, is_output);
}

std::vector<KernelReport> PartitionedExecutable::kernels() const {
  return without_gil([&] {  // a level that compiles holds its lock and may ask for the GIL
    std::vector<KernelReport> reports;
    forward_->add_kernels(reports);
    for (const auto& level : levels_) level->add_kernels(reports);
    return reports;
  });
}

std::size_t PartitionedExecutable::compiled_backward_ops() const {
  std::size_t ops = 0;
  for (const auto& level : levels_) ops += level->planned_calls();
  return ops;
}

std::size_t PartitionedExecutable::bytes_held() const {
  return without_gil([&] {
    std::size_t bytes = forward_->bytes_held();
    for (const auto& level : levels_) bytes += level->bytes_held();
    return bytes;
  });
}

/// Runs 1, 2, 4, 8, ... only: the references cost more than a small plan.
void PartitionedExecutable::remember(const Tensors& primals) {
  const std::size_t run = ++runs_;
  if ((run & (run - 1)) != 0) return;
  const std::lock_guard lock(mutex_);
  last_.clear();
  for (const at::Tensor& p : primals) last_.emplace_back(p.getIntrusivePtr());
}

/// The remembered inputs; zeros of the same type for those that are gone.
Tensors PartitionedExecutable::remembered() {
  const std::lock_guard lock(mutex_);
  Tensors primals;
  for (std::size_t i = 0; i < last_.size(); i++) {
    const graph::TensorType& type = forward_->graph().type(forward_->graph().inputs[i]);
    auto strong = last_[i].lock();
    primals.push_back(strong ? at::Tensor(std::move(strong))
                             : at::empty_strided(aten::to_ints(type.sizes), aten::to_ints(type.strides),
                                                 at::dtype(aten::to_scalar_type(type.dtype)))
                                   .zero_());
  }
  return primals;
}

/// The fastest of three runs, without commit.
double PartitionedExecutable::replay_seconds() {
  return aten::translated([&] {
    return without_gil([&] {
      const Tensors primals = remembered();
      if (primals.size() != forward_->graph().inputs.size()) return 0.0;
      double best = 1e9;
      for (int i = 0; i < 3; i++) {
        const auto start = std::chrono::steady_clock::now();
        forward_->run(primals);
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      }
      return best;
    });
  });
}

}  // namespace

std::unique_ptr<Executable> make_executable(autograd::Segment segment, Backend backend,
                                            std::shared_ptr<PlanCompiler> compiler) {
  const py::GilRelease released;
  if (backend == Backend::kEager) return std::make_unique<EagerExecutable>(std::move(segment));
  if (backend == Backend::kAotEager) compiler = nullptr;
  return std::make_unique<PartitionedExecutable>(std::move(segment), std::move(compiler));
}

}  // namespace braze::runtime
