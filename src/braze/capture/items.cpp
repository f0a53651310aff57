// Subscripts, iteration, unpacking, merging.
#include "braze/capture/interpreter.h"
#include "braze/capture/transaction.h"

namespace braze::capture {

namespace {

bool is_python(Borrowed<> method) { return method && PyFunction_Check(method.get()); }

[[noreturn]] void raise_key_error(Borrowed<> key) {
  _PyErr_SetKeyError(key.get());
  throw py::PyError();
}

}  // namespace

Owned<> Interpreter::get_item(Borrowed<> container, Borrowed<> key) {
  PyObject* p = container.get();
  if (is_tensor(container)) {
    if (!is_native(key)) world_.stop(std::string("an index of type ") + type_of(key)->tp_name);
    world_.fill_deep(key);
    return transaction("index", [&] { return take(PyObject_GetItem(p, key.get())); });
  }
  const bool is_heap = (Py_TYPE(p)->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && !PyType_Check(p);
  if (is_heap) {
    Borrowed<> own = world_.type_look_up(type_of(container), interned("__getitem__"));
    if (!PyDict_Check(p) && !PyTuple_Check(p) && own && !is_python(own)) {
      if (is_old_opaque(container)) world_.stop(std::string("an item of a ") + Py_TYPE(p)->tp_name);
    }
    if (is_python(own) || (own && !PyDict_Check(p) && !PyTuple_Check(p)))
      return call_now(own, {share(container), share(key)});
  }
  if (PyDict_Check(p)) {
    note_hash(key);
    if (Owned<> value = world_.dict_get(container, key)) return value;
    if (Py_TYPE(p) == Known::get().default_dict) {
      Owned<> factory = attribute(container, "default_factory");
      if (factory && factory.get() != Py_None) {
        Owned<> value = call_now(factory.borrow(), {});
        world_.dict_set(container, key, value.borrow());
        return value;
      }
    }
    if (is_heap)
      if (Borrowed<> missing = world_.type_look_up(type_of(container), interned("__missing__")); is_python(missing))
        return call_now(missing, {share(container), share(key)});
    raise_key_error(key);
  }
  if (PyType_Check(p)) {
    if (!is_native(key)) world_.stop("a subscript of a class");
    return take(PyObject_GetItem(p, key.get()));
  }
  if (is_old_opaque(container)) world_.stop(std::string("an item of a ") + Py_TYPE(p)->tp_name);
  if (!is_plain_constant(key) && !PySlice_Check(key.get())) {
    if (is_tensor(key))
      world_.stop("a tensor as the index of a sequence", "convert it with .item() outside of the compiled region");
    world_.stop(std::string("an index of type ") + type_of(key)->tp_name);
  }
  world_.fill(container);
  return take(PyObject_GetItem(p, key.get()));
}

void Interpreter::set_item(Borrowed<> container, Borrowed<> key, Borrowed<> given) {
  const Owned<> kept = PyDict_CheckExact(container.get()) ? share(given) : world_.concrete(given);
  Borrowed<> value = kept.borrow();
  PyObject* p = container.get();
  if (is_tensor(container)) {
    if (!is_native(key) || !is_native(value)) world_.stop("an item assignment with an object");
    world_.fill_deep(key), world_.fill_deep(value);
    const Owned<> written = share(container);
    transaction("item assignment",
                [&] {
                  py::check(PyObject_SetItem(p, key.get(), value.get()));
                  return none();
                },
                {&written, 1});
    return;
  }
  Borrowed<> own = (Py_TYPE(p)->tp_flags & Py_TPFLAGS_HEAPTYPE)
                       ? world_.type_look_up(type_of(container), interned("__setitem__"))
                       : Borrowed<>{};
  if (is_python(own)) {
    call_now(own, {share(container), share(key), share(value)});
    return;
  }
  if (PyDict_Check(p)) {
    note_hash(key);
    return world_.dict_set(container, key, value);
  }
  if (!PyList_CheckExact(p) && Py_TYPE(p) != Known::get().deque)
    world_.stop(std::string("an item assignment to a ") + Py_TYPE(p)->tp_name);
  world_.fill(container);
  if (PySlice_Check(key.get())) {
    Owned<> items = iterable_for_native(value);
    py::check(PyObject_SetItem(p, key.get(), items.get()));
    return;
  }
  if (!is_plain_constant(key)) world_.stop("an index that is no number");
  py::check(PyObject_SetItem(p, key.get(), value.get()));
}

void Interpreter::delete_item(Borrowed<> container, Borrowed<> key) {
  PyObject* p = container.get();
  Borrowed<> own = (Py_TYPE(p)->tp_flags & Py_TPFLAGS_HEAPTYPE)
                       ? world_.type_look_up(type_of(container), interned("__delitem__"))
                       : Borrowed<>{};
  if (is_python(own)) {
    call_now(own, {share(container), share(key)});
    return;
  }
  if (PyDict_Check(p)) {
    note_hash(key);
    if (!world_.dict_remove(container, key)) raise_key_error(key);
    return;
  }
  if (!PyList_CheckExact(p) && Py_TYPE(p) != Known::get().deque)
    world_.stop(std::string("del of an item of a ") + Py_TYPE(p)->tp_name);
  world_.fill(container);
  py::check(PyObject_DelItem(p, key.get()));
}

bool Interpreter::contains(Borrowed<> container, Borrowed<> item) {
  PyObject* p = container.get();
  Borrowed<> own = (Py_TYPE(p)->tp_flags & Py_TPFLAGS_HEAPTYPE) || PyType_Check(p)
                       ? world_.type_look_up(type_of(container), interned("__contains__"))
                       : Borrowed<>{};
  if (is_python(own)) {
    Owned<> result = call_now(own, {share(container), share(item)});
    return truth(result.borrow());
  }
  if (is_tensor(container)) world_.stop("`in` on a tensor");
  if (PyDict_Check(p)) {
    note_hash(item);
    return static_cast<bool>(world_.dict_get(container, item));
  }
  if (PyAnySet_CheckExact(p)) {
    note_hash(item);
    world_.fill(container);
    return py::check(PySequence_Contains(p, item.get())) != 0;
  }
  if (PyList_CheckExact(p) || PyTuple_Check(p) || Py_TYPE(p) == Known::get().deque ||
      Py_TYPE(p) == &PyDictValues_Type) {
    world_.fill(container);
    Owned<> items = take(PySequence_Tuple(p));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
      Borrowed<> candidate = borrow(PyTuple_GET_ITEM(items.get(), i));
      if (is_same(candidate, item)) return true;
      Owned<> equal = compare(Py_EQ, candidate, item);
      if (truth(equal.borrow())) return true;
    }
    return false;
  }
  if (is_old_opaque(container) || !is_native(container)) {
    if (!own && !is_old_opaque(container)) {
      Owned<> it = get_iterator(container);
      while (Owned<> candidate = next(it.borrow())) {
        if (is_same(candidate.borrow(), item)) return true;
        Owned<> equal = compare(Py_EQ, candidate.borrow(), item);
        if (truth(equal.borrow())) return true;
      }
      return false;
    }
    world_.stop(std::string("`in` on a ") + Py_TYPE(p)->tp_name);
  }
  if (!is_native(item) || is_tensor(item)) world_.stop("`in` with an object");
  return py::check(PySequence_Contains(p, item.get())) != 0;
}

Owned<> Interpreter::get_iterator(Borrowed<> object) {
  PyObject* p = object.get();
  if (is_tensor(object)) {
    Owned<> rows = transaction("iteration", [&] { return take(PyObject_CallMethod(p, "unbind", "i", 0)); });
    return take(PyObject_GetIter(rows.get()));
  }
  if ((Py_TYPE(p)->tp_flags & Py_TPFLAGS_HEAPTYPE) || PyType_Check(p)) {
    bool found = false;
    if (!PyTuple_Check(p) || is_python(look_up(type_of(object), "__iter__"))) {
      if (is_old_opaque(object) || !PyIter_Check(p) || is_python(look_up(type_of(object), "__iter__"))) {
        Owned<> iterator = call_special(object, "__iter__", {}, found);
        if (found) return iterator;
        world_.stop(std::string("iteration over a ") + Py_TYPE(p)->tp_name);
      }
    }
  }
  if (is_old_opaque(object)) {
    if (PyIter_Check(p)) return share(object);
    world_.stop(std::string("iteration over a ") + Py_TYPE(p)->tp_name);
  }
  if (Py_TYPE(p) == &PyDictKeys_Type || Py_TYPE(p) == &PyDictValues_Type || Py_TYPE(p) == &PyDictItems_Type)
    world_.fill(borrow(reinterpret_cast<PyObject*>(reinterpret_cast<_PyDictViewObject*>(p)->dv_dict)));
  world_.fill(object);
  if (PyAnySet_CheckExact(p)) world_.check_order(object);
  return take(PyObject_GetIter(p));
}

Owned<> Interpreter::next(Borrowed<> iterator) {
  PyObject* p = iterator.get();
  if (is_old_opaque(iterator)) {
    Borrowed<> own = look_up(type_of(iterator), "__next__");
    if (!is_python(own)) world_.stop(std::string("a step of a live iterator of type ") + Py_TYPE(p)->tp_name);
  }
  if (Borrowed<> own = look_up(type_of(iterator), "__next__"); is_python(own)) {
    world_.type_look_up(type_of(iterator), interned("__next__"));
    try {
      return call_now(own, {share(iterator)});
    } catch (const py::PyError&) {
      if (world_.pending || !PyErr_ExceptionMatches(PyExc_StopIteration)) throw;
      PyErr_Clear();
      return {};
    }
  }
  if (!PyIter_Check(p)) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not an iterator", Py_TYPE(p)->tp_name);
    throw py::PyError();
  }
  Owned<> item = Owned<>::steal(Py_TYPE(p)->tp_iternext(p));
  if (world_.pending) throw py::PyError();
  if (!item && PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_StopIteration)) throw py::PyError();
    PyErr_Clear();
  }
  return item;
}

std::vector<Owned<>> Interpreter::unpack(Borrowed<> object, int before, int after) {
  std::vector<Owned<>> items;
  if (PyIter_Check(object.get())) is_dirty_ = true;
  Owned<> it = get_iterator(object);
  while (Owned<> item = next(it.borrow())) {
    items.push_back(std::move(item));
    if (after < 0 && static_cast<int>(items.size()) > before) {
      PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %d)", before);
      throw py::PyError();
    }
  }
  const int found = static_cast<int>(items.size());
  if (found < before + std::max(after, 0)) {
    PyErr_Format(PyExc_ValueError,
                 after < 0 ? "not enough values to unpack (expected %d, got %d)"
                           : "not enough values to unpack (expected at least %d, got %d)",
                 before + std::max(after, 0), found);
    throw py::PyError();
  }
  if (after < 0) return items;
  const int middle = found - before - after;
  Owned<> rest = take(PyList_New(middle));
  for (int i = 0; i < middle; ++i)
    PyList_SET_ITEM(rest.get(), i, items[static_cast<std::size_t>(before + i)].release());
  std::vector<Owned<>> result;
  for (int i = 0; i < before; ++i) result.push_back(std::move(items[static_cast<std::size_t>(i)]));
  result.push_back(std::move(rest));
  for (int i = found - after; i < found; ++i) result.push_back(std::move(items[static_cast<std::size_t>(i)]));
  return result;
}

void Interpreter::extend_list(Borrowed<> list, Borrowed<> iterable) {
  world_.fill(list);
  Owned<> items = iterable_for_native(iterable);
  Owned<> done = Owned<>::steal(_PyList_Extend(reinterpret_cast<PyListObject*>(list.get()), items.get()));
  if (world_.pending || !done) throw py::PyError();
}

void Interpreter::update_set(Borrowed<> set, Borrowed<> iterable) {
  world_.fill(set);
  Owned<> list = take(PyList_New(0));
  extend_list(list.borrow(), iterable);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) note_hash(borrow(PyList_GET_ITEM(list.get(), i)));
  py::check(_PySet_Update(set.get(), list.get()));
}

void Interpreter::merge_dict(Borrowed<> dict, Borrowed<> other, bool refuses_duplicates, Borrowed<> function) {
  world_.fill(dict);
  Owned<> keys;
  const bool is_plain = PyDict_Check(other.get()) && !is_python(look_up(type_of(other), "keys")) &&
                        !is_python(look_up(type_of(other), "__getitem__"));
  if (is_plain) {
    world_.fill(other);
    keys = take(PySequence_List(other.get()));
  } else {
    Owned<> method = get_attribute(other, interned("keys"));
    Owned<> found = call_now(method.borrow(), {});
    keys = take(PyList_New(0));
    extend_list(keys.borrow(), found.borrow());
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); ++i) {
    Borrowed<> key = borrow(PyList_GET_ITEM(keys.get(), i));
    if (refuses_duplicates) {
      if (!PyUnicode_Check(key.get())) py::raise(PyExc_TypeError, "keywords must be strings");
      if (py::check(PyDict_Contains(dict.get(), key.get()))) {
        Owned<> name = attribute(function, "__qualname__");
        PyErr_Format(PyExc_TypeError, "%S() got multiple values for keyword argument '%U'",
                     name ? name.get() : function.get(), key.get());
        throw py::PyError();
      }
    }
    Owned<> value = is_plain ? world_.dict_get(other, key) : get_item(other, key);
    note_hash(key);
    world_.dict_set(dict, key, value.borrow());
  }
}

}  // namespace braze::capture
