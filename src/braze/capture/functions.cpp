// Functions, with blocks and imports of interpreted code.
#include "braze/capture/interpreter.h"

namespace braze::capture {

Owned<> Interpreter::make_function(Borrowed<> code) {
  return take(PyFunction_New(code.get(), frame().function->func_globals));
}

std::pair<Owned<>, Owned<>> Interpreter::enter_with(Borrowed<> manager) {
  if (is_tensor(manager) || PyType_Check(manager.get())) world_.stop("a with statement on an unusual object");
  auto bound = [&](const char* name) -> Owned<> {
    Borrowed<> method = world_.type_look_up(type_of(manager), interned(name));
    if (!method) {
      PyErr_Format(PyExc_TypeError, "'%.200s' object does not support the context manager protocol",
                   type_of(manager)->tp_name);
      throw py::PyError();
    }
    if (!PyFunction_Check(method.get())) world_.stop(std::string("a with statement on a ") + type_of(manager)->tp_name);
    return take(PyMethod_New(method.get(), manager.get()));
  };
  Owned<> enter = bound("__enter__"), leave = bound("__exit__");
  Owned<> value = call_now(enter.borrow(), {});
  return {std::move(leave), std::move(value)};
}

Owned<> Interpreter::import_name(Borrowed<> name, Borrowed<> from_list, Borrowed<> level) {
  std::string full = utf8(name);
  const long up = PyLong_AsLong(level.get());
  if (up > 0) {
    Owned<> package = load_global(interned("__package__"));
    std::string base = utf8(package.borrow());
    for (long i = 1; i < up; ++i) base = base.substr(0, base.rfind('.') == std::string::npos ? 0 : base.rfind('.'));
    full = full.empty() ? base : base + "." + full;
  }
  const Owned<>& modules = Known::get().sys_modules;
  PyObject* module = PyDict_GetItemString(modules.get(), full.c_str());
  if (module == nullptr || module == Py_None)
    world_.stop("the first import of " + full, "import it before the compiled function");
  const bool has_list =
      from_list.get() != Py_None && PyTuple_Check(from_list.get()) && PyTuple_GET_SIZE(from_list.get()) > 0;
  if (!has_list) {
    if (up > 0) world_.stop("an unusual import");
    module = PyDict_GetItemString(modules.get(), full.substr(0, full.find('.')).c_str());
  }
  if (!PyModule_Check(module)) world_.stop("an import of something that is no module");
  world_.pin(borrow(module));
  return share(module);
}

Owned<> Interpreter::import_from(Borrowed<> module, Borrowed<> name) {
  try {
    return get_attribute(module, name);
  } catch (const py::PyError&) {
    if (world_.pending || !PyErr_ExceptionMatches(PyExc_AttributeError)) throw;
    PyErr_Clear();
  }
  world_.stop("an import of a submodule: " + utf8(name), "import it before the compiled function");
}

Owned<> Interpreter::guard_result(Owned<> result) { return result; }

}  // namespace braze::capture
