// Operators, comparisons, truth, formatting: natively on builtin types and fakes, by special methods otherwise.
#include "braze/capture/handlers/binary_table.h"
#include "braze/capture/interpreter.h"
#include "braze/capture/pending_number.h"
#include "braze/capture/transaction.h"
#include "braze/support/text.h"

namespace braze::capture {

namespace {

constexpr int kDeepest = 12;
constexpr const char* kCompareNames[] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};
constexpr int kSwapped[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};

bool has_default_comparison(PyTypeObject* type) {
  return type->tp_richcompare == PyBaseObject_Type.tp_richcompare || type->tp_richcompare == nullptr;
}

bool is_structseq_or_named(PyTypeObject* type) {
  return look_up(type, "n_sequence_fields") || look_up(type, "_fields") || type == Known::get().size;
}

bool holds_only_constants(Borrowed<> set) {
  Owned<> items = take(PySequence_Tuple(set.get()));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    Borrowed<> item = borrow(PyTuple_GET_ITEM(items.get(), i));
    if (!is_plain_constant(item) && !is_identity_constant(item)) return false;
  }
  return true;
}

}  // namespace

bool Interpreter::is_old_opaque(Borrowed<> object) {
  Record* record = world_.record_of(object);
  return record != nullptr && record->kind == RecordKind::kInstance;
}

bool Interpreter::is_native(Borrowed<> object, int depth) {
  PyObject* p = object.get();
  if (p == nullptr || depth > kDeepest) return false;
  if (is_plain_constant(object) || is_tensor(object) || is_identity_constant(object)) return true;
  if (PyTuple_Check(p)) {
    if (!PyTuple_CheckExact(p) && !is_structseq_or_named(type_of(object))) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(p); ++i)
      if (!is_native(borrow(PyTuple_GET_ITEM(p, i)), depth + 1)) return false;
    return true;
  }
  if (PyList_CheckExact(p)) {
    world_.fill(object);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(p); ++i)
      if (!is_native(borrow(PyList_GET_ITEM(p, i)), depth + 1)) return false;
    return true;
  }
  const Known& known = Known::get();
  if (PyDict_CheckExact(p) || Py_TYPE(p) == known.ordered_dict || Py_TYPE(p) == known.default_dict ||
      Py_TYPE(p) == known.counter) {
    world_.fill(object);
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(p, &at, &key, &value);)
      if (!is_native(borrow(key), depth + 1) || !is_native(borrow(value), depth + 1)) return false;
    return true;
  }
  if (PyAnySet_CheckExact(p)) {
    world_.fill(object);
    return !is_fake_inside(object) && holds_only_constants(object);
  }
  if (Py_TYPE(p) == known.deque) {
    world_.fill(object);
    return !is_fake_inside(object);
  }
  if (Py_TYPE(p) == &PyDictKeys_Type || Py_TYPE(p) == &PyDictValues_Type || Py_TYPE(p) == &PyDictItems_Type) {
    auto* view = reinterpret_cast<_PyDictViewObject*>(p);
    return is_native(borrow(reinterpret_cast<PyObject*>(view->dv_dict)), depth + 1);
  }
  return PyExceptionInstance_Check(p) && !(Py_TYPE(p)->tp_flags & Py_TPFLAGS_HEAPTYPE) &&
         is_native(attribute(object, "args").borrow(), depth + 1);
}

bool Interpreter::is_fake_inside(Borrowed<> object, int depth) {
  PyObject* p = object.get();
  if (p == nullptr || depth > kDeepest) return true;
  if (is_tensor(object)) return true;
  if (is_plain_constant(object) || is_identity_constant(object)) return false;
  world_.fill(object);
  auto any_of = [&](PyObject* sequence) {
    Owned<> items = take(PySequence_Tuple(sequence));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
      if (is_fake_inside(borrow(PyTuple_GET_ITEM(items.get(), i)), depth + 1)) return true;
    return false;
  };
  if (PyTuple_Check(p) || PyList_CheckExact(p) || Py_TYPE(p) == Known::get().deque) return any_of(p);
  if (PyDict_Check(p)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(p, &at, &key, &value);)
      if (is_fake_inside(borrow(value), depth + 1)) return true;
    return false;
  }
  if (PyAnySet_CheckExact(p)) return any_of(p);
  if (Py_TYPE(p) == &PyDictValues_Type || Py_TYPE(p) == &PyDictItems_Type)
    return is_fake_inside(borrow(reinterpret_cast<PyObject*>(reinterpret_cast<_PyDictViewObject*>(p)->dv_dict)),
                          depth + 1);
  return false;
}

/// Calls the special method if the type has it.
Owned<> Interpreter::call_special(Borrowed<> object, const char* name, std::vector<Owned<>> args, bool& found) {
  Borrowed<> method = world_.type_look_up(type_of(object), interned(name));
  found = static_cast<bool>(method) && method.get() != Py_None;
  if (!found) return {};
  if (!is_identity_constant(method)) {
    Owned<> bound = get_attribute(object, interned(name));
    return call_now(bound.borrow(), std::move(args));
  }
  if (!PyFunction_Check(method.get()) && Py_TYPE(method.get()) != &PyWrapperDescr_Type &&
      Py_TYPE(method.get()) != &PyMethodDescr_Type) {
    Owned<> bound = get_attribute(object, interned(name));
    return call_now(bound.borrow(), std::move(args));
  }
  args.insert(args.begin(), share(object));
  return call_now(method, std::move(args));
}

Owned<> Interpreter::unary(int kind, Borrowed<> operand) {
  if (is_tensor(operand)) return transaction("operator", [&] { return apply_unary(kind, operand); });
  if (is_plain_constant(operand)) return apply_unary(kind, operand);
  bool found = false;
  Owned<> result = call_special(operand, kind == '-' ? "__neg__" : kind == '+' ? "__pos__" : "__invert__", {}, found);
  if (!found) world_.stop(std::string("a unary operator on a ") + type_of(operand)->tp_name);
  return result;
}

Owned<> Interpreter::binary(int kind, Borrowed<> left, Borrowed<> right) {
  if (is_pending(left) || is_pending(right)) {
    const int plain = kind % kInPlace;
    auto is_number = [](Borrowed<> x) { return is_pending(x) || PyLong_CheckExact(x.get()); };
    if ((plain == kAdd || plain == kSubtract) && is_number(left) && is_number(right))
      return make_pending(plain == kAdd ? '+' : '-', left, right);
    Owned<> a = world_.concrete(left), b = world_.concrete(right);
    return binary(kind, a.borrow(), b.borrow());
  }
  const BinaryOperator& op = kBinaryOperators[kind % kInPlace];
  const bool is_format = kind % kInPlace == 6 && (PyUnicode_CheckExact(left.get()) || PyBytes_CheckExact(left.get()));
  if (is_tensor(left) || is_tensor(right)) {
    if (is_format) world_.stop("formatting of a tensor");
    if (is_native(left) && is_native(right)) {
      world_.fill_deep(left), world_.fill_deep(right);
      const Owned<> written = share(left);
      return transaction("operator", [&] { return apply_binary(kind, left, right); }, {&written, kind >= kInPlace});
    }
  }
  auto is_builtin = [&](Borrowed<> x) {
    PyObject* p = x.get();
    return is_plain_constant(x) || PyList_CheckExact(p) || PyTuple_Check(p) || PyAnySet_CheckExact(p) ||
           PyDict_CheckExact(p) || PyType_Check(p) || Py_TYPE(p) == Known::get().deque ||
           Py_TYPE(p) == &PyDictKeys_Type || Py_TYPE(p) == Known::get().counter || PyByteArray_CheckExact(p);
  };
  if (is_format && (!is_native(right) || is_fake_inside(right))) world_.stop("formatting of an object or a tensor");
  if (Py_TYPE(left.get()) != Known::get().counter && is_builtin(left) && is_builtin(right)) {
    world_.fill(left), world_.fill(right);
    return apply_binary(kind, left, right);
  }
  bool found = false;
  if (kind >= kInPlace) {
    Owned<> result = call_special(left, op.in_place, {share(right)}, found);
    if (found && result.get() != Py_NotImplemented) return result;
  }
  const bool right_first = type_of(left) != type_of(right) && PyType_IsSubtype(type_of(right), type_of(left));
  for (bool is_reflected : {right_first, !right_first}) {
    Owned<> result = call_special(is_reflected ? right : left, is_reflected ? op.reflected : op.name,
                                  {share(is_reflected ? left : right)}, found);
    if (found && result.get() != Py_NotImplemented) return result;
  }
  if (is_builtin(left) && (PyList_CheckExact(left.get()) || PyTuple_Check(left.get())))
    world_.stop("a sequence operator on an object");
  PyErr_Format(PyExc_TypeError, "unsupported operand type(s) for %s%s: '%.100s' and '%.100s'", op.symbol,
               kind >= kInPlace ? "=" : "", type_of(left)->tp_name, type_of(right)->tp_name);
  throw py::PyError();
}

Owned<> Interpreter::compare(int kind, Borrowed<> left, Borrowed<> right) {
  if (is_native(left) && is_native(right)) {
    if (is_fake_inside(left) || is_fake_inside(right))
      return transaction("comparison", [&] { return take(PyObject_RichCompare(left.get(), right.get(), kind)); });
    return take(PyObject_RichCompare(left.get(), right.get(), kind));
  }
  const bool right_first = type_of(left) != type_of(right) && PyType_IsSubtype(type_of(right), type_of(left));
  bool found = false;
  for (bool is_swapped : {right_first, !right_first}) {
    Borrowed<> object = is_swapped ? right : left, other = is_swapped ? left : right;
    if (has_default_comparison(type_of(object))) continue;
    const int k = is_swapped ? kSwapped[kind] : kind;
    if (is_tensor(object)) world_.stop("a comparison of a tensor with an object");
    Owned<> result = call_special(object, kCompareNames[k], {share(other)}, found);
    if (found && result.get() != Py_NotImplemented) return result;
    if (k == Py_NE && !PyFunction_Check(look_up(type_of(object), "__ne__").get())) {
      Owned<> equal = call_special(object, "__eq__", {share(other)}, found);
      if (found && equal.get() != Py_NotImplemented) return boolean(!truth(equal.borrow()));
    }
  }
  if (kind == Py_EQ || kind == Py_NE) return boolean(is_same(left, right) == (kind == Py_EQ));
  constexpr const char* kSymbols[] = {"<", "<=", "==", "!=", ">", ">="};
  PyErr_Format(PyExc_TypeError, "'%s' not supported between instances of '%.100s' and '%.100s'", kSymbols[kind],
               type_of(left)->tp_name, type_of(right)->tp_name);
  throw py::PyError();
}

bool Interpreter::is_same(Borrowed<> a, Borrowed<> b) {
  if (a.get() != b.get()) world_.note_identity(a, b);
  return a.get() == b.get();
}

bool Interpreter::truth(Borrowed<> object) {
  PyObject* p = object.get();
  if (p == Py_True || p == Py_False || p == Py_None) return p == Py_True;
  if (is_tensor(object))
    world_.stop("bool() of a tensor", "use torch.where or torch.cond instead of a branch on a tensor's value");
  if (is_plain_constant(object)) return py::check(PyObject_IsTrue(p)) != 0;
  if (PyList_CheckExact(p) || PyTuple_CheckExact(p) || PyDict_CheckExact(p) || PyAnySet_CheckExact(p) ||
      Py_TYPE(p) == Known::get().deque || Py_TYPE(p) == Known::get().ordered_dict ||
      Py_TYPE(p) == Known::get().default_dict) {
    world_.fill(object);
    return py::check(PyObject_IsTrue(p)) != 0;
  }
  if (is_identity_constant(object) && !(Py_TYPE(p)->tp_flags & Py_TPFLAGS_HEAPTYPE))
    return py::check(PyObject_IsTrue(p)) != 0;
  bool found = false;
  Owned<> value = call_special(object, "__bool__", {}, found);
  if (found) return value.get() == Py_True;
  value = call_special(object, "__len__", {}, found);
  if (found) return py::check(PyObject_IsTrue(value.get())) != 0;
  return true;
}

Owned<> Interpreter::format(Borrowed<> value, int conversion, Borrowed<> spec) {
  if (!is_native(value) || is_fake_inside(value))
    world_.stop(std::string("formatting of a ") + type_of(value)->tp_name);
  world_.fill_deep(value);
  Owned<> shown = share(value);
  if (conversion == 1) shown = take(PyObject_Str(value.get()));
  if (conversion == 2) shown = take(PyObject_Repr(value.get()));
  if (conversion == 3) shown = take(PyObject_ASCII(value.get()));
  if (!spec && PyUnicode_CheckExact(shown.get())) return shown;
  return take(PyObject_Format(shown.get(), spec.get()));
}

Py_ssize_t Interpreter::length(Borrowed<> object) {
  if (is_tensor(object)) {
    Owned<> n = transaction(
        "len", [&] { return take(PyLong_FromSsize_t(py::check(static_cast<int>(PyObject_Size(object.get()))))); });
    return PyLong_AsSsize_t(n.get());
  }
  world_.fill(object);
  PyObject* p = object.get();
  const bool is_heap = (Py_TYPE(p)->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0;
  if (!is_heap && !is_old_opaque(object)) {
    const Py_ssize_t n = PyObject_Size(p);
    if (n < 0) throw py::PyError();
    return n;
  }
  bool found = false;
  Owned<> value = call_special(object, "__len__", {}, found);
  if (!found) {
    PyErr_Format(PyExc_TypeError, "object of type '%.200s' has no len()", Py_TYPE(p)->tp_name);
    throw py::PyError();
  }
  const Py_ssize_t n = PyNumber_AsSsize_t(value.get(), PyExc_OverflowError);
  if (n < 0 && PyErr_Occurred()) throw py::PyError();
  return n;
}

void Interpreter::note_hash(Borrowed<> key) {
  if (is_plain_constant(key) || is_identity_constant(key) || is_tensor(key)) return;  // tensors hash by identity
  if (Py_TYPE(key.get())->tp_hash == PyBaseObject_Type.tp_hash && has_default_comparison(type_of(key))) return;
  if (PyTuple_Check(key.get())) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key.get()); ++i) note_hash(borrow(PyTuple_GET_ITEM(key.get(), i)));
    return;
  }
  if (PyFrozenSet_CheckExact(key.get())) return;
  if (PyList_CheckExact(key.get()) || PyDict_CheckExact(key.get()) || PySet_Check(key.get()))
    return;  // Python's TypeError
  world_.stop(std::string("a ") + type_of(key)->tp_name + " as a key");
}

}  // namespace braze::capture
