// The end of a trace: outputs, written inputs, backward, one graph.
#include <ATen/FunctionalTensorWrapper.h>

#include "braze/aten/error.h"
#include "braze/aten/python_tensor.h"
#include "braze/trace/fake_tensor.h"
#include "braze/trace/levels.h"
#include "braze/trace/outputs.h"
#include "braze/trace/tracer_state.h"

namespace braze::trace {

using autograd::Segment;

namespace {

std::vector<at::Tensor> unwrap_all(std::span<const Borrowed<>> objects) {
  std::vector<at::Tensor> out;
  for (const Borrowed<> o : objects) out.push_back(aten::unwrap(o));
  return out;
}

/// The final values of written inputs become forward outputs.
void add_mutations(Recorder& r, Inputs& inputs, Outputs& outputs, Segment& segment) {
  for (const Input& input : inputs.all()) {
    if (!input.written) continue;
    at::Tensor fake = final_fake(r, input.wrapper);
    if (as_fake(fake)->value() == input.value) continue;
    const void* storage = fake.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    if (r.input_storages.contains(storage)) fake = own_copy(r, fake);
    segment.mutations.push_back({input.primal, static_cast<std::uint32_t>(outputs.graph.size())});
    outputs.graph.push_back({{}, fake});
  }
}

Segment build(Recorder& r, Inputs& inputs, std::span<const at::Tensor> tensors) {
  Segment segment;
  Outputs outputs = classify_outputs(r, inputs, tensors);
  add_mutations(r, inputs, outputs, segment);
  segment.outputs = std::move(outputs.outputs);
  autograd::JointGraph& joint = segment.joint;
  joint.primals = r.graph.inputs.size();
  joint.forward_outputs = outputs.graph.size();
  joint.forward_nodes = r.graph.nodes.size();
  for (const GraphOutput& o : outputs.graph) r.graph.outputs.push_back(as_fake(o.fake)->value());
  for (const graph::ValueId g : trace_backward(r, inputs, outputs.graph, joint)) r.graph.outputs.push_back(g);
  segment.draws_random = r.draws_random;
  joint.graph = r.graph;
  return segment;
}

}  // namespace

Segment Tracer::finish(std::span<const Borrowed<>> outputs) {
  Recorder& r = state_->recorder;
  if (!r.poison) r.poison = state_->inputs.check();
  Segment segment;
  if (r.poison) return segment;
  const std::vector<at::Tensor> tensors = unwrap_all(outputs);
  const auto failure = aten::failure_of([&] { segment = build(r, state_->inputs, tensors); });
  if (failure && !r.poison) r.poison = "the end of the trace: " + *failure;
  state_->collect_primals();
  return segment;
}

}  // namespace braze::trace
