#include "braze/runtime/backward_node.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/graph_task.h>

#include "braze/aten/operator_counter.h"
#include "braze/py/gil.h"
#include "braze/py/py_error.h"

namespace braze::runtime {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

graph::Graph LevelPrograms::specialised(const std::vector<bool>& defined, const std::vector<bool>& needed) const {
  const PhaseClock clock(compiler_.get(), "partition");
  return autograd::specialise(backward_, defined, needed);
}

std::shared_ptr<const CompiledGraph> LevelPrograms::find(const std::vector<bool>& defined,
                                                         const std::vector<bool>& needed) {
  const std::lock_guard lock(mutex_);
  auto& program = programs_[{defined, needed}];
  if (!program) program = std::make_shared<const CompiledGraph>(specialised(defined, needed), compiler_.get());
  return program;
}

void LevelPrograms::add_kernels(std::vector<KernelReport>& reports) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [mask, program] : programs_)
    if (program) program->add_kernels(reports);
}

std::size_t LevelPrograms::bytes_held() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [mask, program] : programs_) bytes += program ? program->bytes_held() : 0;
  return bytes;
}

void BackwardNode::save(const std::vector<at::Tensor>& saved, const std::vector<bool>& is_output) {
  saved_.reserve(saved.size());
  for (std::size_t i = 0; i < saved.size(); i++) saved_.emplace_back(saved[i], is_output[i]);
}

std::vector<at::Tensor> BackwardNode::unpack(const CompiledGraph& program) {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(!released_, torch::autograd::ERR_BACKWARD_TWICE);
  std::vector<at::Tensor> inputs(program.graph().inputs.size());
  for (std::size_t i = 0; i < saved_.size(); i++)
    if (program.reads(i)) inputs[i] = saved_[i].unpack(getptr());
  // Freed one by one while the program runs, as eager frees them node by node.
  if (!torch::autograd::get_current_graph_task_keep_graph()) forget();
  return inputs;
}

void BackwardNode::forget() {
  released_ = true;
  for (SavedVariable& s : saved_) s.reset_data();
}

variable_list BackwardNode::apply(variable_list&& tangents) try {
  const aten::OperatorCounter::Pause pause;  // what a plan calls was not left over
  TORCH_CHECK(
      !at::GradMode::is_enabled(),
      "create_graph=True through a region compiled by braze is not supported yet. Compute this derivative outside "
      "of braze.compile, or wrap the function with braze.disable");
  const std::size_t edges = level_->backward().edges.size();
  std::vector<bool> defined, needed;
  for (const at::Tensor& t : tangents) defined.push_back(t.defined());
  for (std::size_t j = 0; j < edges; j++) needed.push_back(task_should_compute_output(j));
  const auto program = level_->find(defined, needed);
  std::vector<at::Tensor> inputs = unpack(*program);
  for (std::size_t i = 0; i < tangents.size(); i++) inputs[saved_.size() + i] = std::move(tangents[i]);
  variable_list gradients = program->run(std::move(inputs));
  level_->count_run(*program);
  return gradients;
} catch (const py::PyError&) {  // the engine carries exceptions to the thread that waits
  const py::GilHold gil;
  python_error error;
  error.persist();
  throw error;
}

void BackwardNode::release_variables() {
  const std::lock_guard lock(mutex_);
  forget();
}

}  // namespace braze::runtime
