// Through torch's own functions: the capture does not include ATen.
#include "braze/capture/native_state.h"

namespace braze::capture {

namespace {

constexpr const char* kDeviceTypes[] = {"cpu", "cuda"};

/// torch's and torch._C's functions by name, looked up once.
Owned<> function(const char* name) {
  for (const char* module : {"torch", "torch._C"})
    if (PyObject* found = PyDict_GetItemString(PyImport_GetModuleDict(), module))
      if (Owned<> f = attribute(borrow(found), name)) return f;
  py::raise(PyExc_RuntimeError, name);
}

Owned<> call(const char* name, const char* argument = nullptr) {
  return take(argument ? PyObject_CallFunction(function(name).get(), "s", argument)
                       : PyObject_CallNoArgs(function(name).get()));
}

}  // namespace

NativeState NativeState::current() {
  NativeState state;
  state.grad = call("is_grad_enabled").get() == Py_True;
  state.default_dtype = call("get_default_dtype");
  for (const char* device : kDeviceTypes)
    state.autocast.push_back(
        {call("is_autocast_enabled", device).get() == Py_True, call("get_autocast_dtype", device)});
  state.nesting = PyLong_AsLong(call("autocast_increment_nesting").get()) - 1;
  call("autocast_decrement_nesting");
  return state;
}

std::vector<std::pair<Owned<>, Owned<>>> NativeState::changes_to(const NativeState& after) const {
  std::vector<std::pair<Owned<>, Owned<>>> calls;
  auto add = [&](const char* name, Owned<> args) { calls.emplace_back(function(name), std::move(args)); };
  if (grad != after.grad) add("_set_grad_enabled", take(PyTuple_Pack(1, after.grad ? Py_True : Py_False)));
  if (default_dtype.get() != after.default_dtype.get())
    add("_set_default_dtype", take(PyTuple_Pack(1, after.default_dtype.get())));
  for (std::size_t i = 0; i < autocast.size(); ++i) {
    Owned<> device = take(PyUnicode_FromString(kDeviceTypes[i]));
    if (autocast[i].enabled != after.autocast[i].enabled)
      add("set_autocast_enabled", take(PyTuple_Pack(2, device.get(), after.autocast[i].enabled ? Py_True : Py_False)));
    if (autocast[i].dtype.get() != after.autocast[i].dtype.get())
      add("set_autocast_dtype", take(PyTuple_Pack(2, device.get(), after.autocast[i].dtype.get())));
  }
  for (long n = nesting; n < after.nesting; ++n) add("autocast_increment_nesting", take(PyTuple_New(0)));
  for (long n = nesting; n > after.nesting; --n) add("autocast_decrement_nesting", take(PyTuple_New(0)));
  return calls;
}

}  // namespace braze::capture
