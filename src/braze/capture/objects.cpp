// The C API's corners that handlers need often.
#include "braze/capture/objects.h"

namespace braze::capture {

std::string utf8(Borrowed<> text) {
  if (!text || !PyUnicode_Check(text.get())) return "";
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(text.get(), &size);
  if (bytes == nullptr) {
    PyErr_Clear();
    return "";
  }
  return {bytes, static_cast<std::size_t>(size)};
}

Owned<> attribute(Borrowed<> object, const char* name) {
  PyObject* value = PyObject_GetAttrString(object.get(), name);
  if (value == nullptr) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw py::PyError();
    PyErr_Clear();
  }
  return Owned<>::steal(value);
}

Borrowed<> look_up(PyTypeObject* type, Borrowed<> name) { return borrow(_PyType_Lookup(type, name.get())); }
Borrowed<> look_up(PyTypeObject* type, const char* name) { return look_up(type, interned(name)); }

Owned<> instance_dict(Borrowed<> object) {
  PyTypeObject* type = type_of(object);
  if (type->tp_dictoffset == 0 && !(type->tp_flags & Py_TPFLAGS_MANAGED_DICT)) return {};
  if (PyType_Check(object.get())) return {};
  PyObject* dict = PyObject_GenericGetDict(object.get(), nullptr);
  if (dict == nullptr) PyErr_Clear();
  return Owned<>::steal(dict);
}

bool has_finaliser(Borrowed<> object) {
  PyTypeObject* type = type_of(object);
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return false;
  if (type->tp_finalize != nullptr || type->tp_del != nullptr) return true;
  if (type->tp_weaklistoffset <= 0) return false;
  auto* reference = *reinterpret_cast<PyWeakReference**>(PyObject_GET_WEAKREFS_LISTPTR(object.get()));
  for (; reference != nullptr; reference = reference->wr_next)
    if (reference->wr_callback != nullptr) return true;
  return false;
}

Borrowed<> interned(const char* text) {
  return borrow(py::check(PyUnicode_InternFromString(text)));  // the reference is kept: names live for good
}

}  // namespace braze::capture
