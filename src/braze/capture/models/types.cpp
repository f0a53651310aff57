// Calls of classes: builtin ones by their models, Python ones by __new__ and __init__.
#include "braze/capture/interpreter.h"
#include "braze/capture/transaction.h"

namespace braze::capture {

namespace {

bool is_allocator(newfunc make) {
  const Known& known = Known::get();
  return make == PyBaseObject_Type.tp_new || make == PyDict_Type.tp_new || make == known.ordered_dict->tp_new ||
         make == PyList_Type.tp_new || make == PySet_Type.tp_new;
}

bool is_object_init(Borrowed<> init) {
  return init && Py_TYPE(init.get()) == &PyWrapperDescr_Type && PyDescr_TYPE(init.get()) == &PyBaseObject_Type;
}

}  // namespace

Owned<> Interpreter::call_type(Borrowed<> object, CallSite& site) {
  auto* type = reinterpret_cast<PyTypeObject*>(object.get());
  const Known& known = Known::get();
  const std::string short_name = utf8(attribute(object, "__name__").borrow());
  switch (known.meaning(object)) {
    case Meaning::kModel: return call_model(site);
    case Meaning::kValue:
    case Meaning::kTorchQuery: return call_value(site);
    case Meaning::kIterating: return call_iterating(site, short_name);
    case Meaning::kStructural: return real_call(site);
    case Meaning::kBreak: world_.stop("a call of " + short_name + "()");
    default: break;
  }
  PyTypeObject* meta = Py_TYPE(object.get());
  Borrowed<> meta_call = look_up(meta, "__call__");
  if (meta->tp_call != PyType_Type.tp_call || (meta_call && PyFunction_Check(meta_call.get()))) {
    bool is_pure = PyType_IsSubtype(meta, known.enum_type) != 0;
    for (const Owned<>& arg : site.args) is_pure = is_pure && is_plain_constant(arg.borrow());
    if (is_pure) return real_call(site);
    world_.stop("a call of the class " + short_name + ", whose metaclass has its own __call__");
  }
  if (PyType_IsSubtype(type, known.tensor_base)) world_.stop("a new " + short_name);
  if (PyType_IsSubtype(type, &PyType_Type)) world_.stop("a class made by a call");
  if (type->tp_finalize != nullptr || type->tp_del != nullptr) world_.stop("an object with __del__: " + short_name);
  if (PyExceptionClass_Check(object.get()) && !(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return real_call(site);
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) world_.stop("a new " + short_name);
  world_.pin(object);
  Owned<> result = allocate(type, site, short_name);
  if (!PyObject_TypeCheck(result.get(), type)) return result;
  Borrowed<> init = world_.type_look_up(type, interned("__init__"));
  if (init && PyFunction_Check(init.get())) {
    std::vector<Owned<>> args = site.args;
    args.insert(args.begin(), result);
    Owned<> returned = call_now(init, std::move(args), site.names.borrow());
    if (returned.get() != Py_None) py::raise(PyExc_TypeError, "__init__() should return None");
  } else if (init && Py_TYPE(init.get()) == &PyWrapperDescr_Type) {
    const bool is_value = PyType_IsSubtype(type, &PyTuple_Type) || PyType_IsSubtype(type, &PyLong_Type) ||
                          PyType_IsSubtype(type, &PyUnicode_Type);
    if (!is_object_init(init) && !is_value) {
      CallSite inner{share(init), site.args, site.names};
      inner.args.insert(inner.args.begin(), result);
      call_method_of(init, inner);
    }
  } else {
    world_.stop("a new " + short_name);
  }
  return result;
}

/// What the class's __new__ makes.
Owned<> Interpreter::allocate(PyTypeObject* type, CallSite& site, const std::string& short_name) {
  Borrowed<> make = world_.type_look_up(type, interned("__new__"));
  Borrowed<> python_new = make;
  if (make && Py_TYPE(make.get()) == &PyStaticMethod_Type) {
    Owned<> inner = attribute(make, "__func__");
    world_.pin(inner.borrow());
    python_new = inner.borrow();  // the static method keeps it
  }
  if (python_new && PyFunction_Check(python_new.get())) {
    std::vector<Owned<>> args = site.args;
    args.insert(args.begin(), share(as_object(type)));
    return call_now(python_new, std::move(args), site.names.borrow());
  }
  if (is_allocator(type->tp_new)) {
    if (type->tp_new == PyBaseObject_Type.tp_new && !site.args.empty() && is_object_init(look_up(type, "__init__"))) {
      PyErr_Format(PyExc_TypeError, "%.200s() takes no arguments", type->tp_name);
      throw py::PyError();
    }
    return take(type->tp_new(type, take(PyTuple_New(0)).get(), nullptr));
  }
  if (PyExceptionClass_Check(as_object(type))) {
    Owned<> args = take(PyTuple_New(static_cast<Py_ssize_t>(positional(site))));
    for (std::size_t i = 0; i < positional(site); ++i)
      PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), share(site.args[i]).release());
    return take(type->tp_new(type, args.get(), nullptr));
  }
  bool is_pure = PyType_IsSubtype(type, &PyLong_Type) || PyType_IsSubtype(type, &PyUnicode_Type) ||
                 PyType_IsSubtype(type, &PyFloat_Type) || PyType_IsSubtype(type, &PyTuple_Type);
  for (const Owned<>& arg : site.args) is_pure = is_pure && is_native(arg.borrow());
  Borrowed<> init = look_up(type, "__init__");
  if (!is_pure || (init && PyFunction_Check(init.get()))) world_.stop("a new " + short_name);
  for (const Owned<>& arg : site.args) world_.fill_deep(arg.borrow());
  return real_call(site);
}

/// object.__new__(cls), dict.__new__(cls), tuple.__new__(cls, items) ...
Owned<> Interpreter::call_new(CallSite& site) {
  if (site.args.empty() || !PyType_Check(site.args[0].get()))
    py::raise(PyExc_TypeError, "__new__(): not enough arguments");
  auto* type = reinterpret_cast<PyTypeObject*>(site.args[0].get());
  auto* base = reinterpret_cast<PyTypeObject*>(PyCFunction_GET_SELF(site.callable.get()));
  if (type->tp_finalize != nullptr || type->tp_del != nullptr)
    world_.stop(std::string("an object with __del__: ") + type->tp_name);
  if (PyType_IsSubtype(type, Known::get().tensor_base)) world_.stop("a new tensor object");
  if (is_allocator(base->tp_new)) {
    if (!PyType_IsSubtype(type, base)) world_.stop("an unusual __new__");
    return take(base->tp_new(type, take(PyTuple_New(0)).get(), nullptr));
  }
  if (base == &PyTuple_Type && site.args.size() == 2) {
    Owned<> list = take(PyList_New(0));
    extend_list(list.borrow(), site.args[1].borrow());
    site.args[1] = take(PyList_AsTuple(list.get()));
    return real_call(site);
  }
  bool is_pure = base == &PyLong_Type || base == &PyUnicode_Type || base == &PyFloat_Type;
  for (const Owned<>& arg : site.args) is_pure = is_pure && is_native(arg.borrow());
  if (is_pure || PyExceptionClass_Check(site.args[0].get())) return real_call(site);
  world_.stop(std::string("a call of ") + base->tp_name + ".__new__");
}

}  // namespace braze::capture
