// Evaluates one guard on one value, without words and versions: the obvious reading, used when something moved.
#include <cstring>

#include "braze/guard/compat.h"
#include "braze/guard/constant.h"
#include "braze/guard/program.h"

namespace braze::guard {
namespace {

template <class T>
const T* as(PyObject* o) {
  return reinterpret_cast<const T*>(o);
}

bool are_same_keys(PyObject* a, PyObject* b) { return a == b || are_equal_constants(a, b); }

bool has_ordered_keys(PyObject* dict, PyObject* expected) {
  Py_ssize_t i = 0;
  const Py_ssize_t count = PyTuple_GET_SIZE(expected);
  for (const auto* n = as<compat::Ordered>(dict)->first; n != nullptr; n = n->next, ++i) {
    if (i == count || !are_same_keys(n->key, PyTuple_GET_ITEM(expected, i))) return false;
  }
  return i == count;
}

bool has_keys(PyObject* dict, PyObject* expected) {
  if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(expected)) return false;
  if (PyODict_Check(dict)) return has_ordered_keys(dict, expected);
  Py_ssize_t position = 0, i = 0;
  PyObject* key = nullptr;
  while (PyDict_Next(dict, &position, &key, nullptr) != 0) {
    if (!are_same_keys(key, PyTuple_GET_ITEM(expected, i++))) return false;
  }
  return true;
}

bool has_key(const CompiledGuard& g, PyObject* dict) {
  if (!PyDict_Check(dict)) return false;
  PyObject* value = _PyDict_GetItem_KnownHash(dict, g.key.get(), g.hash);
  if (value == nullptr && PyErr_Occurred() != nullptr) PyErr_Clear();
  return (value != nullptr) == (g.index != 0);
}

bool has_length(PyObject* o, std::uint32_t length) {
  const auto expected = static_cast<Py_ssize_t>(length);
  if (PyDict_Check(o)) return PyDict_GET_SIZE(o) == expected;
  if (PyAnySet_Check(o)) return PySet_GET_SIZE(o) == expected;
  if (PyList_Check(o) || PyTuple_Check(o) || compat::is_builtin(o, "collections.deque")) {
    return Py_SIZE(o) == expected;
  }
  return false;
}

/// `expected`: (next value, step, values left).
bool is_range_at(PyObject* o, PyObject* expected) {
  const auto* r = as<compat::RangeIterator>(o);
  const long present[] = {r->next(), r->step, r->left()};
  for (int i = 0; i < 3; ++i) {
    if (present[i] != PyLong_AsLong(PyTuple_GET_ITEM(expected, i))) return false;
  }
  return true;
}

bool is_iterator_at(PyObject* o, const CompiledGuard& g) {
  if (Py_IS_TYPE(o, &PyRangeIter_Type)) return is_range_at(o, g.key.get());
  const auto expected = static_cast<Py_ssize_t>(g.index);
  const std::string_view name = Py_TYPE(o)->tp_name;
  if (name == "list_iterator" || name == "tuple_iterator") return as<compat::SequenceIterator>(o)->index == expected;
  if (name == "enumerate") return as<compat::EnumerateIterator>(o)->index == expected;
  if (name.starts_with("dict_")) return as<compat::DictIterator>(o)->position == expected;
  if (name == "zip") return as<compat::ZipIterator>(o)->size == expected;
  return false;
}

bool has_bits_of(PyObject* o, PyObject* expected, std::uint32_t bytes) {
  constexpr std::size_t kHeader = sizeof(PyObject);
  return Py_TYPE(o) == Py_TYPE(expected) &&
         std::memcmp(as<char>(o) + kHeader, as<char>(expected) + kHeader, bytes) == 0;
}

bool is_array_like(PyObject* o, PyObject* expected) {
  if (Py_TYPE(o) != reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(expected, 0))) return false;
  const auto* a = as<compat::Array>(o);
  PyObject* shape = PyTuple_GET_ITEM(expected, 2);  // sizes, then strides
  if (a->dtype != PyTuple_GET_ITEM(expected, 1) || 2 * a->dims != PyTuple_GET_SIZE(shape)) return false;
  if (a->flags != PyLong_AsLong(PyTuple_GET_ITEM(expected, 3))) return false;
  for (int i = 0; i < a->dims; ++i) {
    if (a->shape[i] != PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i)) ||
        a->strides[i] != PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, a->dims + i))) {
      return false;
    }
  }
  return true;
}

bool is_set_of(PyObject* o, PyObject* expected) {
  return PyTuple_Check(expected) ? yields_constants(o, expected) : has_constants(o, expected);
}

}  // namespace

bool holds(const CompiledGuard& g, PyObject* v) noexcept {
  if (g.kind == GuardKind::kNullSlot) return v == nullptr;
  if (v == nullptr) return false;
  switch (g.kind) {
    case GuardKind::kIdentity: return v == (g.weak ? PyWeakref_GET_OBJECT(g.weak.get()) : g.expected.get());
    case GuardKind::kExactType: return Py_TYPE(v) == reinterpret_cast<PyTypeObject*>(g.expected.get());
    case GuardKind::kConstant: return are_equal_constants(v, g.expected.get());
    case GuardKind::kLength: return has_length(v, g.index);
    case GuardKind::kDictKeys: return has_keys(v, g.expected.get());
    case GuardKind::kDictHas: return has_key(g, v);
    case GuardKind::kTypeLacks:
      return PyType_Check(v) && _PyType_Lookup(reinterpret_cast<PyTypeObject*>(v), g.key.get()) == nullptr;
    case GuardKind::kNone: return v == Py_None;
    case GuardKind::kSetContents: return is_set_of(v, g.expected.get());
    case GuardKind::kIteratorState:
      return Py_TYPE(v) == reinterpret_cast<PyTypeObject*>(g.expected.get()) && is_iterator_at(v, g);
    case GuardKind::kNumpyScalar: return has_bits_of(v, g.expected.get(), g.index);
    case GuardKind::kArrayMeta: return is_array_like(v, g.expected.get());
    default: return true;  // kTensor, kAlias, kDistinct: see guard_set.cpp; the others were rewritten by compile.cpp
  }
}

}  // namespace braze::guard
