// Builtin functions that need to know what the capture sees: getattr, isinstance, super, len ...
#include "braze/capture/interpreter.h"
#include "braze/capture/transaction.h"

namespace braze::capture {

Owned<> Interpreter::call_model(CallSite& site) {
  const std::string name = utf8(attribute(site.callable.borrow(), "__name__").borrow());
  const std::size_t n = site.args.size();
  auto arg = [&](std::size_t i) { return site.args[i].borrow(); };
  if (site.names && name != "dict" && name != "str") world_.stop("a call of " + name + "() with keywords");
  if ((name == "isinstance" || name == "issubclass") && n == 2)
    return boolean(is_instance(arg(0), arg(1), name == "issubclass"));
  if (name == "len" && n == 1) return take(PyLong_FromSsize_t(length(arg(0))));
  if ((name == "getattr" || name == "hasattr") && (n == 2 || n == 3)) {
    try {
      Owned<> value = get_attribute(arg(0), arg(1));
      return name == "hasattr" ? boolean(true) : value;
    } catch (const py::PyError&) {
      if (world_.pending || !PyErr_ExceptionMatches(PyExc_AttributeError) || (name == "getattr" && n == 2)) throw;
      PyErr_Clear();
    }
    return name == "hasattr" ? boolean(false) : site.args[2];
  }
  if (name == "setattr" && n == 3) {
    set_attribute(arg(0), arg(1), arg(2));
    return none();
  }
  if (name == "delattr" && n == 2) {
    delete_attribute(arg(0), arg(1));
    return none();
  }
  if (name == "iter" && n == 1) return get_iterator(arg(0));
  if (name == "next" && (n == 1 || n == 2)) {
    if (Owned<> item = next(arg(0))) return item;
    if (n == 2) return site.args[1];
    PyErr_SetNone(PyExc_StopIteration);
    throw py::PyError();
  }
  if (name == "callable" && n == 1) return boolean(PyCallable_Check(arg(0).get()) != 0);
  if (name == "super") return make_super(site);
  if (name == "type" && n == 1) return share(as_object(type_of(arg(0))));
  if (name == "object" && n == 0) return real_call(site);
  if (name == "bool" && n <= 1) return boolean(n == 1 && truth(arg(0)));
  if (name == "dict") {
    Owned<> dict = take(PyDict_New());
    site.args.insert(site.args.begin(), dict);
    call_dict_method(site, "update");
    return dict;
  }
  if (name == "vars" && n == 1) {
    Owned<> dict = world_.dict_of(arg(0));
    if (!dict) py::raise(PyExc_TypeError, "vars() argument must have __dict__ attribute");
    return dict;
  }
  if (name == "abs" && n == 1) {
    if (is_tensor(arg(0))) return transaction("abs", [&] { return take(PyNumber_Absolute(arg(0).get())); });
    if (is_plain_constant(arg(0))) return real_call(site);
  }
  if (name == "property" || name == "classmethod" || name == "staticmethod") return real_call(site);
  if (name == "pow" && n == 2) return binary(8, arg(0), arg(1));
  bool is_pure = name == "str" || name == "repr" || name == "format" || name == "divmod" || name == "pow";
  for (const Owned<>& a : site.args) is_pure = is_pure && is_native(a.borrow()) && !is_fake_inside(a.borrow());
  if (!is_pure)
    world_.stop("a call of " + name + "()" + (n > 0 ? std::string(" with a ") + type_of(arg(0))->tp_name : ""));
  for (const Owned<>& a : site.args) world_.fill_deep(a.borrow());
  return real_call(site);
}

bool Interpreter::is_instance(Borrowed<> object, Borrowed<> classes, bool is_subclass_check) {
  world_.fill_deep(classes);
  Owned<> types = PyTuple_Check(classes.get()) ? share(classes) : take(PyTuple_Pack(1, classes.get()));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types.get()); ++i) {
    Borrowed<> check = look_up(Py_TYPE(PyTuple_GET_ITEM(types.get(), i)),
                               is_subclass_check ? "__subclasscheck__" : "__instancecheck__");
    if (!check || !PyFunction_Check(check.get())) continue;
    const std::string module =
        utf8(borrow(PyDict_GetItemString(check.as<PyFunctionObject>()->func_globals, "__name__")));
    if (module != "abc" && module != "typing" && module.rfind("torch.", 0) != 0)
      world_.stop("isinstance with a class that has checks of its own");
  }
  return py::check(is_subclass_check ? PyObject_IsSubclass(object.get(), classes.get())
                                     : PyObject_IsInstance(object.get(), classes.get())) != 0;
}

/// super() with or without arguments.
Owned<> Interpreter::make_super(CallSite& site) {
  if (site.args.size() == 2)
    return take(
        PyObject_CallFunctionObjArgs(as_object(&PySuper_Type), site.args[0].get(), site.args[1].get(), nullptr));
  if (!site.args.empty()) world_.stop("super() with one argument");
  PyCodeObject* code = frame().code.get();
  if (code->co_argcount == 0) py::raise(PyExc_RuntimeError, "super(): no arguments");
  Owned<> self = share(local(0));
  if (self && PyCell_Check(self.get())) self = world_.cell_get(self.borrow());
  for (int i = code->co_nlocalsplus - code->co_nfreevars; i < code->co_nlocalsplus; ++i) {
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_localsplusnames, i), "__class__") != 0) continue;
    Owned<> type = world_.cell_get(local(i));
    if (!type || !self) break;
    return take(PyObject_CallFunctionObjArgs(as_object(&PySuper_Type), type.get(), self.get(), nullptr));
  }
  py::raise(PyExc_RuntimeError, "super(): __class__ cell not found");
}

}  // namespace braze::capture
