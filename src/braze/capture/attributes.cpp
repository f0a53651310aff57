// Attribute look-up as CPython does it, each step guarded: type, instance dict, descriptors, __getattr__.
#include "braze/capture/interpreter.h"
#include "braze/capture/pending_number.h"
#include "braze/capture/transaction.h"
#include "braze/support/text.h"

namespace braze::capture {

namespace {

bool is_data_descriptor(Borrowed<> d) { return type_of(d)->tp_descr_set != nullptr; }
bool is_python_heap_type(PyTypeObject* t) { return (t->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0; }
bool is_dunder(Borrowed<> name, const char* text) { return PyUnicode_CompareWithASCIIString(name.get(), text) == 0; }

/// Attributes of functions, methods and native objects that are read natively: they follow from the object's identity.
bool is_fixed_attribute(Borrowed<> name) {
  for (const char* fixed :
       {"__name__", "__qualname__", "__module__", "__doc__", "__self__", "__func__", "__objclass__"})
    if (is_dunder(name, fixed)) return true;
  return false;
}

}  // namespace

Owned<> Interpreter::get_attribute(Borrowed<> object, Borrowed<> name) { return load_attribute(object, name, nullptr); }

std::pair<Owned<>, Owned<>> Interpreter::get_method(Borrowed<> object, Borrowed<> name) {
  Owned<> self;
  Owned<> value = load_attribute(object, name, &self);
  if (self) return {std::move(value), std::move(self)};
  return {Owned<>{}, std::move(value)};
}

/// `unbound_self`: if given, a method may be returned unbound, with its self there.
Owned<> Interpreter::load_attribute(Borrowed<> object, Borrowed<> name, Owned<>* unbound_self) {
  PyObject* p = object.get();
  if (is_tensor(object)) {
    if (Borrowed<> found = look_up(type_of(object), name);
        found && unbound_self != nullptr &&
        (Py_TYPE(found.get()) == &PyMethodDescr_Type || PyFunction_Check(found.get()))) {
      *unbound_self = share(object);
      world_.pin(found);
      return share(found);
    }
    return attribute_of_tensor(object, name);
  }
  if (PyType_Check(p)) return attribute_of_type(object, name);
  if (PyModule_Check(p)) return attribute_of_module(object, name);
  if (Py_TYPE(p) == &PySuper_Type) return attribute_of_super(object, name);
  return attribute_of_instance(object, name, unbound_self);
}

Owned<> Interpreter::missing_attribute(Borrowed<> object, Borrowed<> name) {
  PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'", type_of(object)->tp_name, name.get());
  throw py::PyError();
}

Owned<> Interpreter::attribute_of_tensor(Borrowed<> tensor, Borrowed<> name) {
  const std::string text = utf8(name);
  Record* record = world_.record_of(tensor);
  if (text == "grad") {
    if (record == nullptr) {
      if (Owned<> leaf = attribute(tensor, "is_leaf"); leaf.get() == Py_True) return none();
      world_.stop("the gradient of a computed tensor");
    }
    SourceId source = world_.sources.add(SourceKind::kTensorGrad, record->source);
    return world_.wrap(source, attribute(record->real.borrow(), "grad").borrow());
  }
  Borrowed<> found = look_up(type_of(tensor), name);
  if (found) {
    if (Known::is_tensor_attribute(text))
      return transaction("attribute", [&] { return take(PyObject_GetAttr(tensor.get(), name.get())); });
    if (Py_TYPE(found.get()) == &PyMethodDescr_Type || PyFunction_Check(found.get()))
      return take(PyObject_GetAttr(tensor.get(), name.get()));
    if (text == "__dict__" || Py_TYPE(found.get()) == &PyGetSetDescr_Type || Py_TYPE(found.get()) == &PyProperty_Type)
      world_.stop("the attribute " + text + " of a tensor");
    return take(PyObject_GetAttr(tensor.get(), name.get()));
  }
  if (record != nullptr) {
    Owned<> real = instance_dict(record->real.borrow());
    if (real) {
      Owned<> dict = world_.wrap(world_.sources.add(SourceKind::kInstanceDict, record->source), real.borrow());
      if (Owned<> value = world_.dict_get(dict.borrow(), name)) return value;
    }
  }
  return missing_attribute(tensor, name);
}

Owned<> Interpreter::attribute_of_module(Borrowed<> module, Borrowed<> name) {
  if (!world_.is_pinned(module)) world_.pin(module);
  Owned<> dict = world_.dict_of(module);
  if (Owned<> value = world_.dict_get(dict.borrow(), name)) return value;
  if (is_dunder(name, "__dict__")) return dict;
  if (is_python_heap_type(type_of(module)) || PyDict_GetItemString(PyModule_GetDict(module.get()), "__getattr__"))
    world_.stop("a module attribute that is made on demand: " + utf8(name),
                "import it once before the compiled function");
  PyErr_Format(PyExc_AttributeError, "module has no attribute '%U'", name.get());
  throw py::PyError();
}

Owned<> Interpreter::attribute_of_type(Borrowed<> object, Borrowed<> name) {
  auto* type = reinterpret_cast<PyTypeObject*>(object.get());
  PyTypeObject* meta = Py_TYPE(object.get());
  const Known& known = Known::get();
  Borrowed<> of_meta = world_.type_look_up(meta, name);
  if (of_meta && is_data_descriptor(of_meta)) {
    if (Py_TYPE(of_meta.get()) == &PyProperty_Type) {
      Owned<> getter = attribute(of_meta, "fget");
      world_.pin(getter.borrow());
      return call_now(getter.borrow(), {share(object)});
    }
    for (const char* fixed :
         {"__name__", "__qualname__", "__module__", "__mro__", "__bases__", "__base__", "__class__", "__doc__"})
      if (is_dunder(name, fixed)) return take(PyObject_GetAttr(object.get(), name.get()));
    world_.stop("the attribute " + utf8(name) + " of a class");
  }
  Borrowed<> found = world_.type_look_up(type, name);
  if (found) {
    PyObject* d = found.get();
    if (PyType_IsSubtype(meta, known.enum_type)) return take(PyObject_GetAttr(object.get(), name.get()));
    if (PyFunction_Check(d)) return share(found);
    if (Py_TYPE(d) == &PyStaticMethod_Type || Py_TYPE(d) == &PyClassMethod_Type)
      return bind_descriptor(found, {}, type, nullptr);
    if (Py_TYPE(d)->tp_descr_get == nullptr || Py_TYPE(d) == &PyProperty_Type)
      return world_.type_value(type, name, found);
    if (is_identity_constant(found)) return take(Py_TYPE(d)->tp_descr_get(d, nullptr, object.get()));
    if (PyCFunction_Check(d)) return share(found);
    world_.stop("the descriptor " + utf8(name) + " of a class");
  }
  if (of_meta) {
    if (PyFunction_Check(of_meta.get())) return take(PyMethod_New(of_meta.get(), object.get()));
    if (Py_TYPE(of_meta.get())->tp_descr_get != nullptr)
      return take(Py_TYPE(of_meta.get())->tp_descr_get(of_meta.get(), object.get(), as_object(meta)));
    return world_.type_value(meta, name, of_meta);
  }
  if (PyType_IsSubtype(meta, known.enum_type)) return take(PyObject_GetAttr(object.get(), name.get()));
  PyErr_Format(PyExc_AttributeError, "type object '%.50s' has no attribute '%U'", type->tp_name, name.get());
  throw py::PyError();
}

Owned<> Interpreter::attribute_of_super(Borrowed<> super, Borrowed<> name) {
  Owned<> start = attribute(super, "__thisclass__"), self = attribute(super, "__self__"),
          self_class = attribute(super, "__self_class__");
  if (!self || self.get() == Py_None || is_dunder(name, "__class__")) world_.stop("an unbound super object");
  auto* type = reinterpret_cast<PyTypeObject*>(self_class.get());
  PyObject* mro = type->tp_mro;
  bool is_past = false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
    if (is_past) {
      Borrowed<> found = world_.type_look_up(base, name);  // pins the base's version as well
      if (PyObject* own = PyDict_GetItemWithError(base->tp_dict, name.get())) {
        if (found.get() != own) world_.stop("a super() look-up through an unusual class order");
        const bool is_class = PyType_Check(self.get()) && type == reinterpret_cast<PyTypeObject*>(self.get());
        if (!is_identity_constant(found)) return world_.type_value(base, name, found);
        return bind_descriptor(found, is_class ? Borrowed<>{} : self.borrow(), type, nullptr);
      }
    }
    is_past |= PyTuple_GET_ITEM(mro, i) == start.get();
  }
  PyErr_Format(PyExc_AttributeError, "'super' object has no attribute '%U'", name.get());
  throw py::PyError();
}

/// What `descriptor` (pinned, found in the type) gives for the object; `object` null: for the class itself.
Owned<> Interpreter::bind_descriptor(Borrowed<> descriptor, Borrowed<> object, PyTypeObject* type,
                                     Owned<>* unbound_self) {
  PyObject* d = descriptor.get();
  PyTypeObject* t = Py_TYPE(d);
  if (PyFunction_Check(d)) {
    if (!object) return share(descriptor);
    if (unbound_self != nullptr) {
      *unbound_self = share(object);
      return share(descriptor);
    }
    return take(PyMethod_New(d, object.get()));
  }
  if (t == &PyStaticMethod_Type || t == &PyClassMethod_Type) {
    Owned<> inner = attribute(descriptor, "__func__");
    if (is_identity_constant(inner.borrow())) world_.pin(inner.borrow());
    else if (t == &PyStaticMethod_Type) world_.stop("a static method around an object");
    if (t == &PyStaticMethod_Type) return inner;
    if (!PyFunction_Check(inner.get())) world_.stop("a class method around an object");
    return take(PyMethod_New(inner.get(), as_object(type)));
  }
  if (t == &PyProperty_Type) {
    if (!object) return share(descriptor);
    Owned<> getter = attribute(descriptor, "fget");
    if (!getter || getter.get() == Py_None) py::raise(PyExc_AttributeError, "unreadable attribute");
    if (!PyFunction_Check(getter.get())) world_.stop("a property whose getter is no function");
    world_.pin(getter.borrow());
    return call_now(getter.borrow(), {share(object)});
  }
  if (t == &PyMemberDescr_Type && object) return member_slot(object, descriptor);
  if (t == Known::get().lru_cache_wrapper) return object ? take(PyMethod_New(d, object.get())) : share(descriptor);
  if (t == Known::get().cached_property && object) {
    Owned<> function = attribute(descriptor, "func"), dict = world_.dict_of(object),
            key = attribute(descriptor, "attrname");
    if (!PyFunction_Check(function.get()) || !dict) world_.stop("a cached property");
    world_.pin(function.borrow());
    Owned<> value = call_now(function.borrow(), {share(object)});
    world_.dict_set(dict.borrow(), key.borrow(), value.borrow());
    return value;
  }
  if (t == &PyMethodDescr_Type || t == &PyWrapperDescr_Type || t == &PyClassMethodDescr_Type) {
    if (object && unbound_self != nullptr && t != &PyClassMethodDescr_Type) {
      *unbound_self = share(object);
      return share(descriptor);
    }
    return take(t->tp_descr_get(d, object.get(), as_object(type)));
  }
  if (t == &PyGetSetDescr_Type && object) {
    const std::string text = utf8(attribute(descriptor, "__name__").borrow());
    if (text == "__dict__")
      if (Owned<> dict = world_.dict_of(object)) return dict;
    const bool is_limits = type == Known::get().finfo || type == Known::get().iinfo;  // immutable
    if (text == "__class__" || text == "dtype" || text == "itemsize" || is_native(object) ||
        (is_limits && world_.record_of(object) == nullptr))
      return take(t->tp_descr_get(d, object.get(), as_object(type)));
    world_.stop("the attribute " + text + " of a " + type->tp_name);
  }
  if (t->tp_descr_get == nullptr) return share(descriptor);
  Borrowed<> getter = world_.type_look_up(t, interned("__get__"));
  if (getter && PyFunction_Check(getter.get()))
    return call_now(getter, {share(descriptor), object ? share(object) : none(), share(as_object(type))});
  if (!object && PyCFunction_Check(d)) return share(descriptor);
  world_.stop(std::string("a descriptor of type ") + t->tp_name);
}

Owned<> Interpreter::member_slot(Borrowed<> object, Borrowed<> descriptor) {
  Record* record = world_.record_of(object);
  PyTypeObject* t = type_of(descriptor);
  if (record == nullptr || record->kind != RecordKind::kInstance)
    return take(t->tp_descr_get(descriptor.get(), object.get(), as_object(type_of(object))));
  for (auto& [member, value] : record->slots)
    if (member.get() == descriptor.get()) {
      if (!value) py::raise(PyExc_AttributeError, "slot is empty");
      return value;
    }
  Owned<> real = take(t->tp_descr_get(descriptor.get(), record->real.get(), as_object(type_of(object))));
  return world_.wrap(world_.sources.add(SourceKind::kMemberSlot, record->source, 0, descriptor), real.borrow());
}

/// A class with its own __getattribute__: __getattr__ is asked when that raises AttributeError.
Owned<> Interpreter::attribute_by_override(Borrowed<> getter, Borrowed<> object, Borrowed<> name) {
  Borrowed<> fallback = world_.type_look_up(type_of(object), interned("__getattr__"));
  try {
    return call_now(getter, {share(object), share(name)});
  } catch (const py::PyError&) {
    if (world_.pending || !fallback || !PyErr_ExceptionMatches(PyExc_AttributeError)) throw;
    PyErr_Clear();
  }
  return call_now(fallback, {share(object), share(name)});
}

Owned<> Interpreter::attribute_of_instance(Borrowed<> object, Borrowed<> name, Owned<>* unbound_self, bool is_plain) {
  PyTypeObject* type = type_of(object);
  PyObject* p = object.get();
  if (PyFunction_Check(p) || PyCFunction_Check(p) || PyMethod_Check(p) || type == &PyMethodDescr_Type ||
      type == &PyWrapperDescr_Type) {
    if (is_fixed_attribute(name)) return take(PyObject_GetAttr(p, name.get()));
    if (PyMethod_Check(p)) return get_attribute(borrow(PyMethod_GET_FUNCTION(p)), name);
    if (PyFunction_Check(p) &&
        (is_dunder(name, "__code__") || is_dunder(name, "__defaults__") || is_dunder(name, "__kwdefaults__"))) {
      const bool is_old = world_.is_pinned(object);
      SourceKind kind = is_dunder(name, "__code__")       ? SourceKind::kCode
                        : is_dunder(name, "__defaults__") ? SourceKind::kDefaults
                                                          : SourceKind::kKwDefaults;
      Owned<> real = take(PyObject_GetAttr(p, name.get()));
      return is_old ? world_.wrap(world_.sources.add(kind, world_.source_of(object)), real.borrow()) : real;
    }
    if (PyFunction_Check(p)) {
      if (Owned<> dict = world_.dict_of(object); dict && !look_up(type, name)) {
        if (Owned<> value = world_.dict_get(dict.borrow(), name)) return value;
        PyErr_Format(PyExc_AttributeError, "'function' object has no attribute '%U'", name.get());
        throw py::PyError();
      }
    }
    if (!look_up(type, name)) return missing_attribute(object, name);
    world_.stop("the attribute " + utf8(name) + " of a function");
  }
  Borrowed<> found = world_.type_look_up(type, name);
  const bool is_heap = is_python_heap_type(type);
  if (is_heap && !is_plain) {
    Borrowed<> getter = look_up(type, "__getattribute__");
    if (getter && PyFunction_Check(getter.get())) {
      world_.type_look_up(type, interned("__getattribute__"));
      return attribute_by_override(getter, object, name);
    }
  }
  if (type->tp_getattro != PyObject_GenericGetAttr && !is_heap) {
    if (!world_.record_of(object)) return guard_result(take(PyObject_GetAttr(p, name.get())));
    if (type->tp_dictoffset == 0 && found) return bind_descriptor(found, object, type, unbound_self);
    world_.stop(std::string("an attribute of a ") + type->tp_name);
  }
  if (found && is_data_descriptor(found)) return bind_descriptor(found, object, type, unbound_self);
  Owned<> dict = world_.dict_of(object);
  if (dict) {
    if (Owned<> value = world_.dict_get(dict.borrow(), name)) return value;
  }
  if (found) {
    if (type_of(found)->tp_descr_get != nullptr) return bind_descriptor(found, object, type, unbound_self);
    return world_.type_value(type, name, found);
  }
  Borrowed<> fallback = is_heap && !is_plain ? world_.type_look_up(type, interned("__getattr__")) : Borrowed<>{};
  if (fallback && fallback.get() == Known::get().module_getattr.get() && dict) {
    for (const char* table : {"_parameters", "_buffers", "_modules"}) {
      Owned<> members = world_.dict_get(dict.borrow(), interned(table));
      if (!members || !PyDict_Check(members.get())) continue;
      if (Owned<> value = world_.dict_get(members.borrow(), name)) return value;
    }
    return missing_attribute(object, name);
  }
  if (fallback && PyFunction_Check(fallback.get())) return call_now(fallback, {share(object), share(name)});
  if (fallback) return call_now(fallback, {share(object), share(name)});
  return missing_attribute(object, name);
}

void Interpreter::set_attribute(Borrowed<> object, Borrowed<> name, Borrowed<> value) {
  if (is_tensor(object)) world_.stop("an assignment to the attribute " + utf8(name) + " of a tensor");
  if (PyType_Check(object.get())) world_.stop("an assignment to a class attribute");
  if (PyModule_Check(object.get())) return world_.dict_set(world_.dict_of(object).borrow(), name, value);
  PyTypeObject* type = type_of(object);
  if (PyFunction_Check(object.get())) {
    if (world_.is_pinned(object)) world_.stop("an assignment to an attribute of a function");
    world_.fill_deep(value);
    py::check(PyObject_SetAttr(object.get(), name.get(), world_.concrete(value).get()));
    return;
  }
  if (!is_python_heap_type(type)) {
    if (world_.record_of(object) != nullptr)
      world_.stop(std::string("an assignment to an attribute of a ") + type->tp_name);
    py::check(PyObject_SetAttr(object.get(), name.get(), world_.concrete(value).get()));
    return;
  }
  Borrowed<> setter = world_.type_look_up(type, interned("__setattr__"));
  if (setter.get() == Known::get().module_setattr.get() && is_plain_module_attribute(object, name, value))
    return set_instance_attribute(object, name, value);
  if (setter && PyFunction_Check(setter.get())) {
    call_now(setter, {share(object), share(name), share(value)});
    return;
  }
  if (setter && Py_TYPE(setter.get()) == &PyWrapperDescr_Type &&
      !is_dunder(attribute(setter, "__name__").borrow(), "__setattr__")) {
    call_now(setter, {share(object), share(name), share(value)});  // __setattr__ = dict.__setitem__
    return;
  }
  set_instance_attribute(object, name, value);
}

/// Module.__setattr__ of a number, string or None whose name is no parameter, buffer or submodule.
bool Interpreter::is_plain_module_attribute(Borrowed<> module, Borrowed<> name, Borrowed<> value) {
  if (!is_pending(value) && !is_plain_constant(value)) return false;
  Owned<> dict = world_.dict_of(module);
  if (!dict) return false;
  for (const char* table : {"_parameters", "_modules", "_buffers"}) {
    Owned<> members = world_.dict_get(dict.borrow(), interned(table));
    if (members && (!PyDict_Check(members.get()) || world_.dict_get(members.borrow(), name))) return false;
  }
  return true;
}

/// object.__setattr__: data descriptors, then the instance dict.
void Interpreter::set_instance_attribute(Borrowed<> object, Borrowed<> name, Borrowed<> value) {
  PyTypeObject* type = type_of(object);
  Borrowed<> found = world_.type_look_up(type, name);
  if (found && is_data_descriptor(found)) {
    PyTypeObject* t = type_of(found);
    if (t == &PyProperty_Type) {
      Owned<> setter = attribute(found, "fset");
      if (!setter || setter.get() == Py_None) {
        PyErr_Format(PyExc_AttributeError, "property '%U' of '%.100s' object has no setter", name.get(), type->tp_name);
        throw py::PyError();
      }
      world_.pin(setter.borrow());
      call_now(setter.borrow(), {share(object), share(value)});
      return;
    }
    if (t == &PyMemberDescr_Type) {
      Record* record = world_.record_of(object);
      if (record == nullptr) {
        py::check(t->tp_descr_set(found.get(), object.get(), world_.concrete(value).get()));
        return;
      }
      for (auto& [member, old] : record->slots)
        if (member.get() == found.get()) {
          old = share(value);
          return;
        }
      record->slots.emplace_back(share(found), share(value));
      return;
    }
    Borrowed<> setter = world_.type_look_up(t, interned("__set__"));
    if (!setter || !PyFunction_Check(setter.get())) world_.stop("an assignment through a descriptor: " + utf8(name));
    call_now(setter, {share(found), share(object), share(value)});
    return;
  }
  Owned<> dict = world_.dict_of(object);
  if (!dict) {
    PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'", type->tp_name, name.get());
    throw py::PyError();
  }
  world_.dict_set(dict.borrow(), name, value);
}

void Interpreter::delete_attribute(Borrowed<> object, Borrowed<> name) {
  if (is_tensor(object) || PyType_Check(object.get()) || PyModule_Check(object.get()))
    world_.stop("del of an attribute");
  Borrowed<> deleter = world_.type_look_up(type_of(object), interned("__delattr__"));
  if (deleter && PyFunction_Check(deleter.get())) {
    call_now(deleter, {share(object), share(name)});
    return;
  }
  Borrowed<> found = world_.type_look_up(type_of(object), name);
  if (found && is_data_descriptor(found)) world_.stop("del through a descriptor");
  Owned<> dict = world_.dict_of(object);
  if (!dict || !world_.dict_remove(dict.borrow(), name)) missing_attribute(object, name);
}

}  // namespace braze::capture
