// Captures a function on example arguments and shows the result as text: for golden tests.
#include <pybind11/pybind11.h>

#include "braze/capture/capture.h"
#include "braze/capture/perform.h"
#include "braze/frame/bind.h"
#include "braze/py/py_error.h"

namespace braze::binding {

namespace {

namespace pyb = pybind11;
using capture::FrameState;
using py::Borrowed;
using py::Owned;

FrameState start_state(Borrowed<PyFunctionObject> function, const pyb::tuple& args) {
  std::vector<PyObject*> values;
  for (const auto& arg : args) values.push_back(arg.ptr());
  frame::BoundArguments bound(function, nullptr, values.data(), values.size(), nullptr);
  if (!bound.is_bound()) throw pyb::type_error("the arguments do not fit the function");
  FrameState state;
  state.function = Owned<PyFunctionObject>::share(function);
  state.code = Owned<PyCodeObject>::share(reinterpret_cast<PyCodeObject*>(function->func_code));
  for (int i = 0; i < state.code->co_nlocalsplus; ++i) state.slots.push_back(Owned<>::share(bound.slots()[i]));
  return state;
}

std::string capture_text(const pyb::object& function, const pyb::tuple& args) {
  if (!PyFunction_Check(function.ptr())) throw pyb::type_error("capture_text needs a Python function");
  capture::Options options;
  options.wants_text = true;
  try {
    auto outcome = capture::capture(
        start_state(Borrowed<PyFunctionObject>::of(reinterpret_cast<PyFunctionObject*>(function.ptr())), args),
        options);
    if (auto* refused = std::get_if<capture::Refused>(&outcome)) return "refused: " + refused->reason.reason + "\n";
    return std::get<capture::Capture>(outcome).text;
  } catch (const py::PyError&) {
    throw pyb::error_already_set();
  }
}

}  // namespace

void register_capture(pyb::module_& m) {
  m.def("capture_text", &capture_text, pyb::arg("function"), pyb::arg("args"),
        "Captures function(*args) without running it: how it ended, guards, joint graph, recipe.");
}

}  // namespace braze::binding
