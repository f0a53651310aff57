// Fields of CPython objects that guards read and that differ between Python versions or have no public name.
//
// Layouts without a public header (deques are read through their methods instead) are checked once, on real objects,
// by verify_layouts() when the first guard set is built: a Python whose objects look different gives an InternalError
// there and never a wrong answer later.
#pragma once

#include <cstdint>
#include <string_view>

#include "braze/py/ref.h"

namespace braze::guard::compat {

/// Of the builtin type with this tp_name (a user's class cannot be immutable).
inline bool is_builtin(PyObject* o, std::string_view name) {
  return PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_IMMUTABLETYPE) && Py_TYPE(o)->tp_name == name;
}

/// Objects of this type keep it: __class__ cannot be assigned.
inline bool is_permanent(PyTypeObject* type) {
  return PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE) && PyType_IsSubtype(type, &PyModule_Type) == 0;
}

/// functools.partial; the same on 3.11 to 3.13.
struct Partial {
  PyObject_HEAD PyObject* function;
  PyObject* args;
  PyObject* keywords;
};

/// list_iterator and tuple_iterator. sequence is NULL when exhausted.
struct SequenceIterator {
  PyObject_HEAD Py_ssize_t index;
  PyObject* sequence;
};

/// dict_keyiterator and kin. dict is NULL when exhausted.
struct DictIterator {
  PyObject_HEAD PyDictObject* dict;
  Py_ssize_t used;
  Py_ssize_t position;
};

struct RangeIterator {
  PyObject_HEAD
#if PY_VERSION_HEX < 0x030C0000
      long index,
      start, step, length;
  long next() const { return start + index * step; }
  long left() const { return length - index; }
#else
      long start,
      step, length;
  long next() const { return start; }
  long left() const { return length; }
#endif
};

struct EnumerateIterator {
  PyObject_HEAD Py_ssize_t index;
  PyObject* iterator;
};

struct ZipIterator {
  PyObject_HEAD Py_ssize_t size;
  PyObject* iterators;  ///< tuple
};

/// collections.OrderedDict keeps its order in a list of its own.
struct OrderedNode {
  PyObject* key;
  Py_hash_t hash;
  OrderedNode* next;
  OrderedNode* previous;
};
struct Ordered {
  PyDictObject dict;
  OrderedNode* first;
  OrderedNode* last;
};

/// numpy.ndarray: the part that its C API fixes.
struct Array {
  PyObject_HEAD char* data;
  int dims;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  PyObject* base;
  PyObject* dtype;
  int flags;
};

#if PY_VERSION_HEX >= 0x030C0000
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif
/// Where a dict's version is: unique over all dicts and all time, new after every change.
inline const std::uint64_t* version_of(PyObject* dict) {
  return &reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
}
#if PY_VERSION_HEX >= 0x030C0000
#pragma GCC diagnostic pop
#endif

/// Where a type's version is: unique over all types, 0 after a change of the type or of a base, until the next look-up.
inline const unsigned int* version_of(PyTypeObject* type) { return &type->tp_version_tag; }

/// Gives the type a version if it can have one.
inline bool assign_version(PyTypeObject* type) {
  static PyObject* const name = PyUnicode_InternFromString("__doc__");
  _PyType_Lookup(type, name);
  return PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) && type->tp_version_tag != 0;
}

/// The place that holds the object's __dict__, filled; NULL if its type has none. Objects that keep attributes inline
/// get a real dict, because only that has a version.
PyObject** instance_dict(PyObject* object);

/// Throws InternalError if this Python's objects are not laid out as the structs above say.
void verify_layouts();

}  // namespace braze::guard::compat
