// A node becomes a step: handle, argument kinds, boxed constants. Values die after their last use.
#include "braze/aten/replay.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "braze/aten/argument.h"
#include "braze/support/check.h"

namespace braze::aten {

using graph::ValueId;
using torch::jit::Stack;

namespace {

struct Step {
  c10::OperatorHandle op;
  std::vector<ArgKind> kinds;
  std::vector<std::optional<c10::IValue>> constants;  ///< boxed ahead where no tensor is involved
  std::vector<std::uint32_t> dead;                    ///< values not used after this step
  bool is_batch_norm = false;
};

c10::OperatorHandle find_operator(std::string_view name) {
  const auto dot = name.find('.');
  const std::string base(name.substr(0, dot));
  const std::string overload(dot == std::string_view::npos ? std::string_view{} : name.substr(dot + 1));
  return c10::Dispatcher::singleton().findSchemaOrThrow(base.c_str(), overload.c_str());
}

bool holds_tensors(const graph::Arg& arg, ArgKind kind) {
  return kind == ArgKind::kTensor || std::holds_alternative<ValueId>(arg) ||
         std::holds_alternative<std::vector<ValueId>>(arg);
}

Step prepare(const graph::Node& node) {
  Step step{find_operator(node.name), {}, {}, {}, node.name == "aten::_native_batch_norm_legit_functional"};
  const auto& parameters = step.op.schema().arguments();
  BRAZE_CHECK(parameters.size() == node.args.size(), "{} has {} arguments, its schema {}", node.name, node.args.size(),
              parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    step.kinds.push_back(kind_of(*parameters[i].real_type()));
    const bool open = holds_tensors(node.args[i], step.kinds[i]);
    step.constants.push_back(open ? std::nullopt : std::optional(to_ivalue(node.args[i], step.kinds[i], {})));
  }
  return step;
}

void find_last_uses(const graph::Graph& g, std::vector<Step>& steps) {
  std::vector<bool> seen(g.values.size(), false);
  for (const ValueId v : g.outputs)
    if (!v.is_none()) seen[v.index] = true;
  const auto visit = [&](Step& step, ValueId v) {
    if (v.is_none() || seen[v.index]) return;
    seen[v.index] = true;
    step.dead.push_back(v.index);
  };
  for (std::size_t i = steps.size(); i-- > 0;) {
    for (const ValueId v : g.nodes[i].results) visit(steps[i], v);
    graph::for_each_operand(g.nodes[i], [&](const ValueId& v) { visit(steps[i], v); });
  }
}

void bind(std::vector<at::Tensor>& values, const graph::Node& node, Stack& stack) {
  std::size_t next = 0;
  const auto store = [&](at::Tensor t) {
    BRAZE_CHECK(next < node.results.size(), "{} returned more tensors than its node has results", node.name);
    const ValueId id = node.results[next++];
    if (!id.is_none()) values[id.index] = std::move(t);
  };
  for (c10::IValue& v : stack) {
    if (v.isTensorList())
      for (const at::Tensor& t : v.toTensorVector()) store(t);
    else if (v.isTensor()) store(std::move(v).toTensor());
    else if (v.isNone() && next < node.results.size()) store({});
  }
  BRAZE_CHECK(next == node.results.size(), "{} returned {} tensors, its node has {} results", node.name, next,
              node.results.size());
}

/// The functional form has no derivative; the form that writes to its statistics has one.
void call_batch_norm(Stack& stack) {
  static const auto op = find_operator("aten::_native_batch_norm_legit");
  const at::Tensor mean = stack[3].toTensor().clone(), var = stack[4].toTensor().clone();
  stack[3] = mean;
  stack[4] = var;
  op.callBoxed(&stack);
  stack.emplace_back(mean);
  stack.emplace_back(var);
}

}  // namespace

struct Replay::Prepared {
  graph::Graph g;
  std::vector<Step> steps;

  void run_step(std::size_t i, std::vector<at::Tensor>& values) const {
    const Step& step = steps[i];
    const graph::Node& node = g.nodes[i];
    Stack stack;
    stack.reserve(node.args.size());
    for (std::size_t a = 0; a < node.args.size(); ++a)
      stack.push_back(step.constants[a] ? *step.constants[a] : to_ivalue(node.args[a], step.kinds[a], values));
    if (step.is_batch_norm && at::GradMode::is_enabled()) call_batch_norm(stack);
    else step.op.callBoxed(&stack);
    bind(values, node, stack);
    for (const std::uint32_t dead : step.dead) values[dead].reset();
  }
};

Replay::Replay(graph::Graph g) {
  auto prepared = std::make_unique<Prepared>();
  prepared->steps.reserve(g.nodes.size());
  for (const graph::Node& node : g.nodes) prepared->steps.push_back(prepare(node));
  find_last_uses(g, prepared->steps);
  prepared->g = std::move(g);
  prepared_ = std::move(prepared);
}

Replay::~Replay() = default;
Replay::Replay(Replay&&) noexcept = default;

const graph::Graph& Replay::graph() const { return prepared_->g; }

std::vector<at::Tensor> Replay::run(std::span<const at::Tensor> inputs) const {
  const graph::Graph& g = prepared_->g;
  BRAZE_CHECK(inputs.size() == g.inputs.size(), "graph {} has {} inputs, got {}", g.name, g.inputs.size(),
              inputs.size());
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  std::vector<at::Tensor> values(g.values.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[g.inputs[i].index] = inputs[i];
  for (std::size_t i = 0; i < prepared_->steps.size(); ++i) prepared_->run_step(i, values);
  std::vector<at::Tensor> outputs;
  outputs.reserve(g.outputs.size());
  for (const ValueId v : g.outputs) outputs.push_back(v.is_none() ? at::Tensor() : values[v.index]);
  return outputs;
}

std::vector<at::Tensor> replay(const graph::Graph& g, std::span<const at::Tensor> inputs) {
  return Replay(g).run(inputs);
}

}  // namespace braze::aten
