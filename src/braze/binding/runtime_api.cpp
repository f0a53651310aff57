// Executables made from graph texts: the oracle of tests, which need no capture and no trace.
//
//   e = _C.GraphExecutable(text, backend="braze", forward_nodes=2, forward_outputs=1,
//                          levels=[([0], [("primal", 0)])], mutations=[(1, 0)])
//   outputs = e(tensors)
// The text is a joint graph: inputs are primals, then tangents level by level; outputs are forward outputs, then one
// gradient per edge. Without levels it is a forward.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "braze/compile/compile.h"
#include "braze/py/py_error.h"
#include "braze/runtime/executable.h"
#include "braze/support/options.h"
#include "braze/toolchain/cpu_features.h"

namespace braze::binding {

namespace {

namespace py = pybind11;
using LevelSpec = std::pair<std::vector<std::uint32_t>, std::vector<std::pair<std::string, std::uint32_t>>>;

struct GraphCompiler final : runtime::PlanCompiler {
  plan::Plan compile(const graph::Graph& graph) override {
    compile::Target target;
    target.features = toolchain::cpu_features();
    target.strict = support::options().strict;
    target.checks = true;
    support::Observer observer;
    return compile::compile(graph, target, observer);
  }
};

runtime::Backend parse_backend(const std::string& name) {
  if (name == "braze") return runtime::Backend::kBraze;
  if (name == "aot_eager") return runtime::Backend::kAotEager;
  if (name == "eager") return runtime::Backend::kEager;
  throw py::value_error("unknown backend " + name + ": braze, aot_eager or eager");
}

autograd::Segment make_segment(const std::string& text, std::size_t forward_nodes, std::size_t forward_outputs,
                               const std::vector<LevelSpec>& levels,
                               const std::vector<std::pair<std::uint32_t, std::uint32_t>>& mutations) {
  autograd::Segment s;
  autograd::JointGraph& joint = s.joint;
  joint.graph = graph::parse(text);
  std::size_t tangents = 0;
  for (const LevelSpec& l : levels) tangents += l.first.size();
  joint.primals = joint.graph.inputs.size() - tangents;
  joint.forward_outputs = levels.empty() ? joint.graph.outputs.size() : forward_outputs;
  joint.forward_nodes = levels.empty() ? joint.graph.nodes.size() : forward_nodes;
  std::size_t input = joint.primals, output = joint.forward_outputs;
  std::vector<bool> differentiable(joint.forward_outputs);
  for (const auto& [outputs, edges] : levels) {
    autograd::Level& level = joint.levels.emplace_back();
    for (const std::uint32_t o : outputs) {
      level.outputs.push_back(o);
      level.tangents.push_back(joint.graph.inputs[input++]);
      differentiable.at(o) = true;
    }
    for (const auto& [kind, index] : edges) {
      level.edges.push_back({kind == "primal" ? autograd::Edge::Kind::kPrimal : autograd::Edge::Kind::kOutput, index});
      level.gradients.push_back(joint.graph.outputs.at(output++));
    }
  }
  for (std::uint32_t o = 0; o < joint.forward_outputs; o++) {
    autograd::Output out;
    out.index = o;
    out.type = joint.graph.type(joint.graph.outputs[o]);
    out.requires_grad = differentiable[o];
    s.outputs.push_back(out);
  }
  for (const auto& [primal, from] : mutations) s.mutations.push_back({primal, from});
  return s;
}

template <class F>
auto with_python_errors(F&& f) {
  try {
    return f();
  } catch (const braze::py::PyError&) {
    throw py::error_already_set();
  }
}

std::vector<py::object> call(runtime::Executable& e, const std::vector<py::object>& tensors) {
  std::vector<PyObject*> inputs;
  for (const py::object& t : tensors) inputs.push_back(t.ptr());
  std::vector<py::object> outputs;
  for (auto& o : with_python_errors([&] { return e.run(inputs); }))
    outputs.push_back(py::reinterpret_steal<py::object>(o.release()));
  return outputs;
}

}  // namespace

void register_runtime(py::module_& m) {
  py::class_<runtime::Executable>(m, "GraphExecutable")
      .def(py::init([](const std::string& text, const std::string& backend, std::size_t forward_nodes,
                       std::size_t forward_outputs, const std::vector<LevelSpec>& levels,
                       const std::vector<std::pair<std::uint32_t, std::uint32_t>>& mutations) {
             return with_python_errors([&] {
               return runtime::make_executable(make_segment(text, forward_nodes, forward_outputs, levels, mutations),
                                               parse_backend(backend), std::make_shared<GraphCompiler>());
             });
           }),
           py::arg("text"), py::kw_only(), py::arg("backend") = "braze", py::arg("forward_nodes") = 0,
           py::arg("forward_outputs") = 0, py::arg("levels") = std::vector<LevelSpec>(),
           py::arg("mutations") = std::vector<std::pair<std::uint32_t, std::uint32_t>>())
      .def("__call__", call)
      .def("kernels",
           [](const runtime::Executable& e) {
             py::list kernels;
             for (const auto& k : e.kernels()) kernels.append(py::make_tuple(k.name, k.source, k.summary, k.origins));
             return kernels;
           })
      .def("compiled_ops", &runtime::Executable::compiled_ops)
      .def("replay_seconds", &runtime::Executable::replay_seconds)
      .def("bytes_held", &runtime::Executable::bytes_held);
}

}  // namespace braze::binding
