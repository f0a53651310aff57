// Comparison of constants. PyObject_RichCompare would do for most, but not for signed zeros, NaN and 1 == True == 1.0.
#include "braze/guard/constant.h"

#include <cstring>

#include "braze/guard/compat.h"
#include "braze/support/text.h"

namespace braze::guard {
namespace {

bool have_equal_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

bool are_equal_tuples(PyObject* a, PyObject* b) {
  if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i) {
    if (!are_equal_constants(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
  }
  return true;
}

/// Also in the order of iteration, which a program may see.
bool are_equal_frozensets(PyObject* a, PyObject* b) {
  if (PySet_GET_SIZE(a) != PySet_GET_SIZE(b)) return false;
  Py_ssize_t at_a = 0, at_b = 0;
  PyObject *key_a = nullptr, *key_b = nullptr;
  Py_hash_t hash = 0;
  while (_PySet_NextEntry(a, &at_a, &key_a, &hash) != 0) {
    if (_PySet_NextEntry(b, &at_b, &key_b, &hash) == 0 || !are_equal_constants(key_a, key_b)) return false;
  }
  return true;
}

bool is_size(PyObject* o) { return compat::is_builtin(o, "torch.Size"); }
bool is_device(PyObject* o) { return compat::is_builtin(o, "torch.device"); }

bool are_equal_slices(PyObject* a, PyObject* b) {
  const auto* x = reinterpret_cast<PySliceObject*>(a);
  const auto* y = reinterpret_cast<PySliceObject*>(b);
  return are_equal_constants(x->start, y->start) && are_equal_constants(x->stop, y->stop) &&
         are_equal_constants(x->step, y->step);
}

bool is_constant_slice(PyObject* o) {
  if (!PySlice_Check(o)) return false;
  const auto* s = reinterpret_cast<PySliceObject*>(o);
  return is_constant(s->start) && is_constant(s->stop) && is_constant(s->step);
}

bool is_scalar_constant(PyObject* o) {
  return is_device(o) || is_constant_slice(o) || o == Py_None || o == Py_Ellipsis || PyBool_Check(o) ||
         PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyComplex_CheckExact(o) || PyUnicode_CheckExact(o) ||
         PyBytes_CheckExact(o);
}

/// Equal by the type's own comparison, which for exact int, str and bytes is C code.
bool are_equal_builtins(PyObject* a, PyObject* b) {
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

template <class Visit>
bool all_of_set(PyObject* set, Visit visit) {
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  Py_hash_t hash = 0;
  while (_PySet_NextEntry(set, &position, &key, &hash) != 0) {
    if (!visit(key)) return false;
  }
  return true;
}

bool contains_constant(PyObject* set, PyObject* wanted) {
  return !all_of_set(set, [&](PyObject* key) { return !are_equal_constants(key, wanted); });
}

}  // namespace

bool is_constant(PyObject* o) noexcept {
  if (is_scalar_constant(o)) return true;
  if (PyFrozenSet_CheckExact(o)) {
    return all_of_set(o, [](PyObject* key) { return is_constant(key); });
  }
  if (!PyTuple_CheckExact(o) && !is_size(o)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
    if (!is_constant(PyTuple_GET_ITEM(o, i))) return false;
  }
  return true;
}

bool are_equal_constants(PyObject* a, PyObject* b) noexcept {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) return have_equal_bits(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
  if (PyComplex_CheckExact(a)) {
    const Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
    return have_equal_bits(x.real, y.real) && have_equal_bits(x.imag, y.imag);
  }
  if (PyTuple_CheckExact(a) || is_size(a)) return are_equal_tuples(a, b);
  if (PySlice_Check(a)) return are_equal_slices(a, b);
  if (PyFrozenSet_CheckExact(a)) return are_equal_frozensets(a, b);
  if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a) || PyBytes_CheckExact(a) || is_device(a)) {
    return are_equal_builtins(a, b);
  }
  return false;  // None, Ellipsis and bools are single objects
}

bool has_constants(PyObject* live_set, PyObject* expected) noexcept {
  return PyAnySet_CheckExact(live_set) && PySet_GET_SIZE(live_set) == PySet_GET_SIZE(expected) &&
         all_of_set(live_set, [&](PyObject* key) { return contains_constant(expected, key); });
}

bool yields_constants(PyObject* live_set, PyObject* expected) noexcept {
  if (!PyAnySet_CheckExact(live_set) || PySet_GET_SIZE(live_set) != PyTuple_GET_SIZE(expected)) return false;
  Py_ssize_t i = 0;
  return all_of_set(live_set, [&](PyObject* key) { return are_equal_constants(key, PyTuple_GET_ITEM(expected, i++)); });
}

std::string describe(PyObject* object) {
  if (object == nullptr) return "unbound";
  if (PyType_Check(object)) return support::format("class {}", reinterpret_cast<PyTypeObject*>(object)->tp_name);
  if (PyFunction_Check(object)) {
    const char* name = PyUnicode_AsUTF8(reinterpret_cast<PyFunctionObject*>(object)->func_qualname);
    return support::format("function {}", name != nullptr ? name : "?");
  }
  if (PyModule_Check(object)) {
    const char* name = PyModule_GetName(object);
    if (name == nullptr) PyErr_Clear();
    return support::format("module {}", name != nullptr ? name : "?");
  }
  if (!is_constant(object)) return support::format("a {}", Py_TYPE(object)->tp_name);
  constexpr std::size_t kLongest = 60;
  PyObject* text = PyObject_Repr(object);
  const char* chars = text != nullptr ? PyUnicode_AsUTF8(text) : nullptr;
  std::string result = chars != nullptr ? chars : support::format("a {}", Py_TYPE(object)->tp_name);
  if (chars == nullptr) PyErr_Clear();
  Py_XDECREF(text);
  if (result.size() > kLongest) result = result.substr(0, kLongest - 3) + "...";
  return result;
}

}  // namespace braze::guard
