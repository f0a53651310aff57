// Native callables: which are torch operations, which are pure, and what methods of builtin types need.
#include "braze/capture/callbacks.h"
#include "braze/capture/interpreter.h"
#include "braze/capture/transaction.h"

namespace braze::capture {

namespace {

std::string native_name(Borrowed<> function) {
  return reinterpret_cast<PyCFunctionObject*>(function.get())->m_ml->ml_name;
}

/// The method descriptor that a bound native method came from: what its self's class has under its name may be another
/// one (super().get() of a class with its own get), even a Python function.
Borrowed<> descriptor_of(Borrowed<> bound, PyTypeObject* type) {
  const PyMethodDef* method = reinterpret_cast<PyCFunctionObject*>(bound.get())->m_ml;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    PyObject* found = PyDict_GetItemString(base->tp_dict, method->ml_name);
    if (found != nullptr && (Py_TYPE(found) == &PyMethodDescr_Type || Py_TYPE(found) == &PyClassMethodDescr_Type) &&
        reinterpret_cast<PyMethodDescrObject*>(found)->d_method == method)
      return borrow(found);
  }
  return {};
}

/// Methods of builtin containers that only move references.
const std::unordered_set<std::string>& structural_methods() {
  static const std::unordered_set<std::string> names = {
      "append",     "insert",           "pop",          "popleft",     "reverse", "copy",     "clear",
      "appendleft", "rotate",           "keys",         "values",      "items",   "popitem",  "move_to_end",
      "__len__",    "__iter__",         "__reversed__", "__getitem__", "__mul__", "__rmul__", "__length_hint__",
      "__copy__",   "__class_getitem__"};
  return names;
}

/// Methods whose arguments are iterables.
const std::unordered_set<std::string>& iterating_methods() {
  static const std::unordered_set<std::string> names = {"extend",
                                                        "extendleft",
                                                        "update",
                                                        "union",
                                                        "intersection",
                                                        "difference",
                                                        "symmetric_difference",
                                                        "issubset",
                                                        "issuperset",
                                                        "isdisjoint",
                                                        "intersection_update",
                                                        "difference_update",
                                                        "symmetric_difference_update",
                                                        "join",
                                                        "__init__",
                                                        "__iadd__"};
  return names;
}

bool is_container_type(PyTypeObject* t) {
  const Known& known = Known::get();
  return t == &PyList_Type || t == &PyTuple_Type || t == &PyDict_Type || t == &PySet_Type || t == &PyFrozenSet_Type ||
         t == known.deque || t == known.ordered_dict || t == known.default_dict || t == &PyDictKeys_Type ||
         t == &PyDictValues_Type || t == &PyDictItems_Type;
}

bool is_scalar_type(PyTypeObject* t) {
  const Known& known = Known::get();
  return t == &PyUnicode_Type || t == &PyBytes_Type || t == &PyLong_Type || t == &PyFloat_Type ||
         t == &PyComplex_Type || t == &PyBool_Type || t == &PyRange_Type || t == &PySlice_Type || t == known.size ||
         t == known.device || t == known.dtype;
}

}  // namespace

Borrowed<> Interpreter::keyword(const CallSite& site, const char* name) const {
  if (!site.names) return {};
  const Py_ssize_t n = PyTuple_GET_SIZE(site.names.get());
  for (Py_ssize_t i = 0; i < n; ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(site.names.get(), i), name) == 0)
      return site.args[site.args.size() - static_cast<std::size_t>(n - i)].borrow();
  return {};
}
std::size_t Interpreter::positional(const CallSite& site) const {
  return site.args.size() - (site.names ? static_cast<std::size_t>(PyTuple_GET_SIZE(site.names.get())) : 0);
}

/// A builtin function or a bound builtin method.
Owned<> Interpreter::call_native(CallSite& site) {
  const std::string name = native_name(site.callable.borrow());
  PyObject* self = reinterpret_cast<PyCFunctionObject*>(site.callable.get())->m_self;  // static methods have one too
  switch (Known::get().meaning(site.callable.borrow())) {
    case Meaning::kModel: return call_model(site);
    case Meaning::kValue: return call_value(site);
    case Meaning::kIterating: return call_iterating(site, name);
    case Meaning::kTorch:
    case Meaning::kTrusted:
      for (const Owned<>& arg : site.args)
        if (!is_native(arg.borrow())) world_.stop("a call of " + name + "() with a " + type_of(arg.borrow())->tp_name);
      return torch_transaction(site);
    case Meaning::kTorchQuery: return torch_transaction(site);
    case Meaning::kTorchState: return real_call(site);
    case Meaning::kBreak: world_.stop("a call of " + name + "()");
    default: break;
  }
  if (self == nullptr && Known::get().is_torch_function(site.callable.borrow(), name)) return call_torch(site, name);
  if (self == nullptr) world_.stop("a call of " + name + "()");
  if (PyType_Check(self)) {
    if (std::string_view(reinterpret_cast<PyTypeObject*>(self)->tp_name).ends_with("_VariableFunctionsClass"))
      return call_torch(site, name);
    if (name == "__new__") return call_new(site);
    if (name == "fromkeys" && self == as_object(&PyDict_Type)) {
      if (!site.args.empty()) site.args[0] = iterable_for_native(site.args[0].borrow());
      return real_call(site);
    }
    bool is_pure = is_scalar_type(reinterpret_cast<PyTypeObject*>(self));
    for (const Owned<>& arg : site.args) is_pure = is_pure && is_native(arg.borrow());
    if (is_pure) return real_call(site);
    world_.stop("a call of the class method " + name + "()");
  }
  if (PyModule_Check(self)) {
    const std::string module = utf8(take(PyModule_GetNameObject(self)).borrow());
    for (const char* torch_module :
         {"torch._C._nn", "torch._C._linalg", "torch._C._special", "torch._C._fft", "torch._C._VariableFunctions"})
      if (module == torch_module) return call_torch(site, name);
    world_.stop("a call of " + module + "." + name + "()");
  }
  Borrowed<> descriptor = descriptor_of(site.callable.borrow(), Py_TYPE(self));
  if (is_generator_object(borrow(self))) return real_call(site);
  if (!descriptor) world_.stop("a call of " + name + "()");
  CallSite inner{share(descriptor), std::move(site.args), site.names};
  inner.args.insert(inner.args.begin(), share(self));
  return call_method_of(descriptor, inner);
}

/// A method of a native type; its self is the first argument.
Owned<> Interpreter::call_method_of(Borrowed<> descriptor, CallSite& site) {
  PyTypeObject* owner = PyDescr_TYPE(descriptor.get());
  const std::string name = utf8(borrow(PyDescr_NAME(descriptor.get())));
  site.callable = share(descriptor);
  if (site.args.empty()) py::raise(PyExc_TypeError, "unbound method needs an argument");
  Borrowed<> self = site.args[0].borrow();
  if (is_tensor(self) || PyType_IsSubtype(owner, Known::get().tensor_base)) return call_torch(site, name);
  if (owner == &PyBaseObject_Type) return call_object_method(site, name);
  if (owner == &PyType_Type) {
    if (name == "__call__") {
      CallSite inner{site.args[0], {site.args.begin() + 1, site.args.end()}, site.names};
      return call_type(inner.callable.borrow(), inner);
    }
    world_.stop("a call of type." + name);
  }
  if (is_generator_object(self)) return real_call(site);
  if (is_old_opaque(self)) world_.stop("a call of " + name + "() of a " + type_of(self)->tp_name);
  if (is_container_type(owner)) return call_builtin_method(site, name);
  if (name == "__next__") {
    Owned<> item = next(self);
    if (item) return item;
    PyErr_SetNone(PyExc_StopIteration);
    throw py::PyError();
  }
  if (name == "__iter__") return get_iterator(self);
  if (PyExceptionInstance_Check(self.get())) {
    if (name == "__init__" || name == "with_traceback" || name == "add_note") return real_call(site);
    if (name == "__str__" && is_native(attribute(self, "args").borrow()) &&
        !is_fake_inside(attribute(self, "args").borrow()))
      return real_call(site);
    world_.stop("a call of " + name + "() of an exception");
  }
  bool is_pure = is_scalar_type(owner);
  const bool is_formatting =
      owner == &PyUnicode_Type && (name == "format" || name == "__mod__" || name == "join" || name == "format_map");
  if (is_pure && name == "join" && site.args.size() == 2) {
    Owned<> list = take(PyList_New(0));
    extend_list(list.borrow(), site.args[1].borrow());
    site.args[1] = std::move(list);
  }
  for (const Owned<>& arg : site.args)
    is_pure = is_pure && is_native(arg.borrow()) && !(is_formatting && is_fake_inside(arg.borrow()));
  if (!is_pure) world_.stop("a call of " + name + "() of a " + owner->tp_name);
  for (const Owned<>& arg : site.args) world_.fill_deep(arg.borrow());
  return real_call(site);
}

Owned<> Interpreter::call_object_method(CallSite& site, const std::string& name) {
  Borrowed<> self = site.args[0].borrow();
  const std::size_t n = site.args.size();
  if (name == "__init__" || name == "__init_subclass__") return none();
  if (name == "__getattribute__" && n == 2 && PyUnicode_Check(site.args[1].get()) && !is_tensor(self) &&
      !PyType_Check(self.get()) && !PyModule_Check(self.get()))
    return attribute_of_instance(self, site.args[1].borrow(), nullptr, true);
  if (name == "__setattr__" && n == 3) {
    if (is_tensor(self) || PyType_Check(self.get())) world_.stop("object.__setattr__ on a tensor or a class");
    set_instance_attribute(self, site.args[1].borrow(), site.args[2].borrow());
    return none();
  }
  if (name == "__delattr__" && n == 2) {
    Owned<> dict = world_.dict_of(self);
    if (!dict || !world_.dict_remove(dict.borrow(), site.args[1].borrow()))
      missing_attribute(self, site.args[1].borrow());
    return none();
  }
  if ((name == "__eq__" || name == "__ne__") && n == 2) {
    if (!is_same(self, site.args[1].borrow())) return share(Py_NotImplemented);
    return boolean(name == "__eq__");
  }
  world_.stop("a call of object." + name);
}

Owned<> Interpreter::call_dict_method(CallSite& site, const std::string& name) {
  Borrowed<> self = site.args[0].borrow();
  const std::size_t n = site.args.size();
  auto key = [&] {
    Borrowed<> k = site.args[1].borrow();
    note_hash(k);
    return k;
  };
  if (name == "get" && (n == 2 || n == 3) && !site.names) {
    Owned<> value = world_.dict_get(self, key());
    return value ? value : n == 3 ? site.args[2] : none();
  }
  if (name == "__contains__" && n == 2) return boolean(static_cast<bool>(world_.dict_get(self, key())));
  if (name == "__getitem__" && n == 2) {
    if (Owned<> value = world_.dict_get(self, key())) return value;
    if (look_up(type_of(self), "__missing__")) world_.stop("dict.__getitem__ with a missing key");
    _PyErr_SetKeyError(site.args[1].get());
    throw py::PyError();
  }
  if (name == "__setitem__" && n == 3) {
    world_.dict_set(self, key(), site.args[2].borrow());
    return none();
  }
  if (name == "setdefault" && n >= 2 && !site.names) {
    if (Owned<> value = world_.dict_get(self, key())) return value;
    Owned<> value = n == 3 ? site.args[2] : none();
    world_.dict_set(self, site.args[1].borrow(), value.borrow());
    return value;
  }
  if ((name == "pop" || name == "__delitem__") && n >= 2) {
    Owned<> value = world_.dict_get(self, key());
    if (!value) {
      if (name == "pop" && n == 3) return site.args[2];
      if (Borrowed<> fallback = keyword(site, "default")) return share(fallback);
      _PyErr_SetKeyError(site.args[1].get());
      throw py::PyError();
    }
    world_.dict_remove(self, site.args[1].borrow());
    return name == "pop" ? value : none();
  }
  if (name == "update" || name == "__init__") {
    const std::size_t given = positional(site);
    if (given > 2) py::raise(PyExc_TypeError, "update expected at most 1 argument");
    if (given == 2) {
      Borrowed<> other = site.args[1].borrow();
      if (PyDict_Check(other.get()) || look_up(type_of(other), "keys")) {
        merge_dict(self, other, false, {});
      } else {
        Owned<> list = take(PyList_New(0));
        extend_list(list.borrow(), other);
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
          std::vector<Owned<>> pair = unpack(borrow(PyList_GET_ITEM(list.get(), i)), 2, -1);
          note_hash(pair[0].borrow());
          world_.dict_set(self, pair[0].borrow(), pair[1].borrow());
        }
      }
    }
    for (std::size_t i = given; i < site.args.size(); ++i)
      world_.dict_set(self, borrow(PyTuple_GET_ITEM(site.names.get(), static_cast<Py_ssize_t>(i - given))),
                      site.args[i].borrow());
    return none();
  }
  return {};
}

/// A method of a builtin container (or of a subclass's base).
Owned<> Interpreter::call_builtin_method(CallSite& site, const std::string& name) {
  Borrowed<> self = site.args[0].borrow();
  if (PyDict_Check(self.get()))
    if (Owned<> result = call_dict_method(site, name)) return result;
  world_.fill(self);
  const bool is_set = PyAnySet_Check(self.get());
  if (structural_methods().contains(name)) {
    for (std::size_t i = 1; i < site.args.size(); ++i)
      if (!PyList_Check(self.get()) && is_set) note_hash(site.args[i].borrow());
    if (name == "__getitem__" && !is_native(site.args.back().borrow())) world_.stop("an index that is an object");
    return real_call(site);
  }
  if (is_set && (name == "add" || name == "discard" || name == "remove" || name == "__contains__")) {
    note_hash(site.args.back().borrow());
    return real_call(site);
  }
  if (iterating_methods().contains(name)) {
    for (std::size_t i = 1; i < site.args.size(); ++i) {
      Owned<> items = take(PyList_New(0));
      extend_list(items.borrow(), site.args[i].borrow());
      if (is_set)
        for (Py_ssize_t k = 0; k < PyList_GET_SIZE(items.get()); ++k)
          note_hash(borrow(PyList_GET_ITEM(items.get(), k)));
      site.args[i] = std::move(items);
    }
    return real_call(site);
  }
  if (name == "sort" && PyList_Check(self.get())) return sort(site, self, true);
  if (name == "__contains__" && site.args.size() == 2) return boolean(contains(self, site.args[1].borrow()));
  if (name == "__setitem__" && site.args.size() == 3) {
    set_item(self, site.args[1].borrow(), site.args[2].borrow());
    return none();
  }
  for (const Owned<>& arg : site.args)
    if (!is_native(arg.borrow())) world_.stop("a call of " + name + "() of a container of objects");
  for (const Owned<>& arg : site.args) world_.fill_deep(arg.borrow());
  if (is_fake_inside(self)) return transaction(name.c_str(), [&] { return real_call(site); });
  return real_call(site);
}

/// Functions that look into their arguments.
Owned<> Interpreter::call_value(CallSite& site) {
  bool has_fakes = false;
  for (Owned<>& arg : site.args) {
    if (!is_native(arg.borrow())) {
      if (site.callable.get() == as_object(&PyRange_Type) || site.callable.get() == as_object(&PySlice_Type))
        world_.stop("a range over an object");
      Owned<> name = attribute(site.callable.borrow(), "__name__");
      bool found = false;
      for (auto [function, special] :
           {std::pair{"int", "__int__"}, {"float", "__float__"}, {"hash", "__hash__"}, {"round", "__round__"}})
        if (site.args.size() == 1 && utf8(name.borrow()) == function &&
            PyFunction_Check(look_up(type_of(arg.borrow()), special).get()
                                 ? look_up(type_of(arg.borrow()), special).get()
                                 : Py_None))
          return call_special(arg.borrow(), special, {}, found);
      world_.stop("a call of " + utf8(name.borrow()) + "() with a " + type_of(arg.borrow())->tp_name);
    }
    has_fakes |= is_fake_inside(arg.borrow());
  }
  if (has_fakes) {
    const Owned<> name = attribute(site.callable.borrow(), "__name__");
    const Owned<> module = attribute(site.callable.borrow(), "__module__");
    if (!module || utf8(module.borrow()) != "_operator")
      world_.stop("a call of " + utf8(name.borrow()) + "() with a tensor",
                  "it needs the tensor's value: use the torch function, or move it out of the compiled function");
    for (const char* reading :
         {"index", "truth", "not_", "contains", "indexOf", "countOf", "is_", "is_not", "length_hint"})
      if (utf8(name.borrow()) == reading) world_.stop(std::string("operator.") + reading + " on a tensor");
    return torch_transaction(site);
  }
  for (const Owned<>& arg : site.args) world_.fill_deep(arg.borrow());
  return real_call(site);
}

}  // namespace braze::capture
