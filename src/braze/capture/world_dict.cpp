// Dicts of the old world, read key by key as long as nothing needs the whole: instance attributes, globals, modules.
#include "braze/capture/known.h"
#include "braze/capture/world.h"

namespace braze::capture {

namespace {

bool is_simple_key(Borrowed<> key) { return guard::is_guardable_key(key); }

/// The builtin store, whatever a subclass overrides.
void store(Borrowed<> dict, Borrowed<> key, Borrowed<> value) {
  py::check(PyODict_Check(dict.get()) ? PyODict_SetItem(dict.get(), key.get(), value.get())
                                      : PyDict_SetItem(dict.get(), key.get(), value.get()));
}

void clear(Borrowed<> dict) {
  PyTypeObject* base = PyODict_Check(dict.get()) ? &PyODict_Type : &PyDict_Type;
  take(PyObject_CallMethodObjArgs(as_object(base), interned("clear").get(), dict.get(), nullptr));
}

}  // namespace

Owned<> World::dict_read(Record& record, Borrowed<> key) {
  if (PyObject* known = PyDict_GetItemWithError(record.visible.get(), key.get())) return share(known);
  if (PyErr_Occurred()) throw py::PyError();
  if (record.absent && py::check(PySet_Contains(record.absent.get(), key.get()))) return {};
  PyObject* real = PyDict_GetItemWithError(record.real.get(), key.get());
  if (real == nullptr && PyErr_Occurred()) throw py::PyError();
  guards.require(GuardKind::kDictHas, record.source, {}, real != nullptr, key);
  if (real == nullptr) {
    if (!record.absent) record.absent = take(PySet_New(nullptr));
    py::check(PySet_Add(record.absent.get(), key.get()));
    return {};
  }
  Owned<> value = read_number(sources.add(SourceKind::kDictItem, record.source, 0, key), borrow(real));
  store(record.visible.borrow(), key, value.borrow());
  return value;
}

Owned<> World::dict_get(Borrowed<> dict, Borrowed<> key) {
  Record* record = record_of(dict);
  if (record != nullptr && !record->filled) {
    if (is_simple_key(key)) return dict_read(*record, key);
    fill(dict);
  }
  PyObject* value = PyDict_GetItemWithError(dict.get(), key.get());
  if (value == nullptr && PyErr_Occurred()) throw py::PyError();
  return share(value);
}

void World::dict_set(Borrowed<> dict, Borrowed<> key, Borrowed<> given) {
  Record* record = record_of(dict);
  Owned<> value = share(given);
  if (record != nullptr && !record->filled) {
    if (!PyDict_CheckExact(dict.get()) || !is_simple_key(key)) {
      fill(dict);
    } else {
      if (record->absent) py::check(PySet_Discard(record->absent.get(), key.get()));
      bool is_noted = false;
      for (const Owned<>& k : record->writes)
        is_noted |= py::check(PyObject_RichCompareBool(k.get(), key.get(), Py_EQ)) != 0;
      if (!is_noted) record->writes.push_back(share(key));
    }
  }
  if (record == nullptr || record->filled) value = concrete(given);
  store(dict, key, value.borrow());
}

bool World::dict_remove(Borrowed<> dict, Borrowed<> key) {
  fill(dict);  // the order of keys matters when one comes back
  if (!py::check(PyDict_Contains(dict.get(), key.get()))) return false;
  py::check(PyODict_Check(dict.get()) ? PyODict_DelItem(dict.get(), key.get()) : PyDict_DelItem(dict.get(), key.get()));
  return true;
}

void World::fill_dict(Record& record) {
  record.filled = true;
  Owned<> known = take(PyDict_Copy(record.visible.get()));   // values read or written so far
  Owned<> keys = take(PySequence_Tuple(record.real.get()));  // an OrderedDict's own order
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys.get()); ++i)
    if (!is_simple_key(borrow(PyTuple_GET_ITEM(keys.get(), i))))
      stop("a dict with objects as keys", "use strings or numbers as keys");
  guards.require(GuardKind::kDictKeys, record.source, keys.borrow());
  Owned<> written = take(PySet_New(nullptr));
  for (const Owned<>& key : record.writes) py::check(PySet_Add(written.get(), key.get()));
  clear(record.visible.borrow());
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys.get()); ++i) {
    PyObject* key = PyTuple_GET_ITEM(keys.get(), i);
    if (!is_plain_constant(borrow(key))) pin(borrow(key));
    Owned<> value = concrete(borrow(PyDict_GetItemWithError(known.get(), key)));
    const bool is_written = py::check(PySet_Contains(written.get(), key)) != 0;
    if (!value)
      value = wrap(sources.add(SourceKind::kDictItem, record.source, 0, borrow(key)),
                   borrow(PyDict_GetItemWithError(record.real.get(), key)));
    store(record.visible.borrow(), borrow(key), value.borrow());
    record.before.push_back(share(key));
    record.before.push_back(is_written ? Owned<>{} : value);
  }
  for (const Owned<>& key : record.writes)
    if (!py::check(PyDict_Contains(record.visible.get(), key.get())))
      store(record.visible.borrow(), key.borrow(),
            concrete(borrow(PyDict_GetItemWithError(known.get(), key.get()))).borrow());
  record.writes.clear();
}

Owned<> World::dict_of(Borrowed<> visible) {
  Record* record = record_of(visible);
  Owned<> real = instance_dict(record == nullptr ? visible : record->real.borrow());
  if (!real) return {};
  if (record == nullptr && !is_pinned(visible)) return real;
  SourceId owner = source_of(visible);
  if (PyModule_Check(visible.get()) || record != nullptr || is_pinned(visible))
    return wrap(sources.add(SourceKind::kInstanceDict, owner), real.borrow());
  return real;
}

Owned<> World::globals_of(Borrowed<PyFunctionObject> function) {
  Borrowed<> real = borrow(function->func_globals);
  if (Record* known = record_of_real(real)) return known->visible;
  return wrap(sources.add(SourceKind::kGlobals, source_of(function)), real);
}

Owned<> World::builtins_of(Borrowed<PyFunctionObject> function) {
  Borrowed<> real = borrow(function->func_builtins);
  if (Record* known = record_of_real(real)) return known->visible;
  return wrap(sources.add(SourceKind::kBuiltins, source_of(function)), real);
}

Borrowed<> World::type_look_up(PyTypeObject* type, Borrowed<> name) {
  Borrowed<> found = look_up(type, name);
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return found;
  SourceId owner = held(borrow(as_object(type)));
  if (!found) {
    guards.require(GuardKind::kTypeLacks, owner, {}, 0, name);
  } else if (is_identity_constant(found)) {
    guards.require(GuardKind::kIdentity, sources.add(SourceKind::kTypeAttr, owner, 0, name), found);
    pin(found);
  }
  return found;
}

Owned<> World::type_value(PyTypeObject* type, Borrowed<> name, Borrowed<> raw) {
  if (is_pinned(raw)) return share(raw);
  return wrap(sources.add(SourceKind::kTypeAttr, held(borrow(as_object(type))), 0, name), raw);
}

}  // namespace braze::capture
