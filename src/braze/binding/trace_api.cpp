// For tests: trace a Python callable on fakes of given tensors, look at the segment, run it on real tensors.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>

#include "braze/aten/error.h"
#include "braze/trace/attributes.h"
#include "braze/trace/eager_oracle.h"
#include "braze/trace/tracer.h"

namespace braze::binding {

namespace py11 = pybind11;
using py::Borrowed;
using py::Owned;

namespace {

/// Everything that a test may ask of a trace.
struct Traced {
  std::string poison;  ///< "" if the trace holds
  autograd::Segment segment;
  std::vector<Owned<>> primals;
  std::vector<bool> constants;
  std::size_t nodes = 0;
  double forward_ms = 0, finish_ms = 0;
  std::unique_ptr<trace::EagerOracle> oracle;
};

py11::object share(const Owned<>& o) { return py11::reinterpret_borrow<py11::object>(o.get()); }

py11::list to_list(const std::vector<Owned<>>& objects) {
  py11::list out;
  for (const Owned<>& o : objects) out.append(share(o));
  return out;
}

std::vector<Borrowed<>> borrow_all(const py11::sequence& objects) {
  std::vector<Borrowed<>> out;
  for (const py11::handle o : objects) out.push_back(Borrowed<>::of(o.ptr()));
  return out;
}

/// What the callable gave back, as a list that owns it.
py11::list outputs_of(const py11::object& result) {
  if (py11::isinstance<py11::tuple>(result) || py11::isinstance<py11::list>(result)) return py11::list(result);
  py11::list out;
  if (!result.is_none()) out.append(result);
  return out;
}

bool note_poison(trace::Tracer& tracer, Traced& out) {
  const auto poison = tracer.take_poison();
  if (poison) out.poison = poison->reason;
  return poison.has_value();
}

py11::tuple make_fakes(trace::Tracer& tracer, const py11::sequence& inputs, Traced& out) {
  py11::tuple fakes(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Owned<> fake = tracer.fake_of(Borrowed<>::of(py11::object(inputs[i]).ptr()));
    if (!fake && note_poison(tracer, out)) return fakes;
    fakes[i] = share(fake);
  }
  return fakes;
}

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

void run_program(trace::Tracer& tracer, const py11::function& f, const py11::tuple& fakes, Traced& out,
                 py11::list& outputs) {
  try {
    outputs = outputs_of(f(*fakes));
  } catch (const py11::error_already_set&) {
    if (!note_poison(tracer, out)) throw;
  }
}

Traced trace_callable(const py11::function& f, const py11::sequence& inputs) {
  Traced out;
  py11::list outputs;  // dies after the tracer's state of this thread is gone
  trace::Tracer tracer;
  const auto start = std::chrono::steady_clock::now();
  const py11::tuple fakes = make_fakes(tracer, inputs, out);
  if (!out.poison.empty()) return out;
  run_program(tracer, f, fakes, out, outputs);
  if (!out.poison.empty() || note_poison(tracer, out)) return out;
  out.forward_ms = since(start);
  const auto middle = std::chrono::steady_clock::now();
  const std::vector<Borrowed<>> borrowed = borrow_all(outputs);
  out.segment = tracer.finish(borrowed);
  out.finish_ms = since(middle);
  out.nodes = tracer.node_count();
  if (note_poison(tracer, out)) return out;
  out.primals.assign(tracer.primals().begin(), tracer.primals().end());
  for (std::size_t i = 0; i < out.primals.size(); ++i) out.constants.push_back(tracer.is_constant(i));
  graph::verify(out.segment.joint.graph, "trace");
  out.oracle = std::make_unique<trace::EagerOracle>(out.segment);
  return out;
}

py11::dict describe(const autograd::Output& o) {
  constexpr const char* kKinds[] = {"graph", "input", "view_of_input", "view_of_output"};
  py11::dict d;
  d["kind"] = kKinds[static_cast<int>(o.kind)];
  d["index"] = o.index;
  d["type"] = op::to_text(o.type);
  d["offset"] = o.offset.constant();
  d["requires_grad"] = o.requires_grad;
  d["is_leaf"] = o.is_leaf;
  return d;
}

py11::list describe_outputs(const Traced& t) {
  py11::list out;
  for (const autograd::Output& o : t.segment.outputs) out.append(describe(o));
  return out;
}

/// Per level: outputs, and (kind, index) of the edges that its gradients go to.
py11::list describe_levels(const Traced& t) {
  py11::list out;
  for (const autograd::Level& level : t.segment.joint.levels) {
    py11::list edges;
    for (const autograd::Edge& e : level.edges)
      edges.append(py11::make_tuple(e.kind == autograd::Edge::Kind::kPrimal ? "primal" : "output", e.index));
    out.append(py11::make_tuple(level.outputs, edges));
  }
  return out;
}

py11::list describe_mutations(const Traced& t) {
  py11::list out;
  for (const autograd::Mutation& m : t.segment.mutations) out.append(py11::make_tuple(m.primal, m.output));
  return out;
}

/// Runs a translator of the extension: PyError carries the error indicator already.
template <class F>
py11::list run_oracle(F&& f) {
  try {
    return to_list(f());
  } catch (const py::PyError&) {
    throw py11::error_already_set();
  }
}

}  // namespace

void register_trace(py11::module_& m) {
  py11::class_<Traced>(m, "Traced")
      .def_readonly("poison", &Traced::poison)
      .def_readonly("nodes", &Traced::nodes)
      .def_readonly("forward_ms", &Traced::forward_ms)
      .def_readonly("finish_ms", &Traced::finish_ms)
      .def_readonly("constants", &Traced::constants)
      .def_property_readonly("text", [](const Traced& t) { return graph::to_text(t.segment.joint.graph); })
      .def_property_readonly("primals", [](const Traced& t) { return to_list(t.primals); })
      .def_property_readonly("outputs", describe_outputs)
      .def_property_readonly("levels", describe_levels)
      .def_property_readonly("mutations", describe_mutations)
      .def_property_readonly("forward_outputs", [](const Traced& t) { return t.segment.joint.forward_outputs; })
      .def_property_readonly("draws_random", [](const Traced& t) { return t.segment.draws_random; })
      .def("run", [](const Traced& t,
                     const py11::sequence& in) { return run_oracle([&] { return t.oracle->run(borrow_all(in)); }); })
      .def("run_forward", [](const Traced& t, const py11::sequence& in) {
        return run_oracle([&] { return t.oracle->run_forward(borrow_all(in)); });
      });
  m.def("seal", [](const py11::handle& o) { trace::seal(Borrowed<>::of(o.ptr())); });
  m.def("is_refused_attribute", &trace::is_refused_attribute);
  m.def("trace", &trace_callable, py11::arg("f"), py11::arg("inputs"));
}

}  // namespace braze::binding
