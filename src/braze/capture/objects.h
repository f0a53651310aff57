// Small helpers over the C API, so that handlers read as what they do.
#pragma once

#include <string>
#include <string_view>

#include "braze/py/py_error.h"
#include "braze/py/ref.h"

namespace braze::capture {

using py::Borrowed;
using py::Owned;

/// A new reference from the C API; NULL becomes PyError.
inline Owned<> take(PyObject* fresh) { return Owned<>::steal(py::check(fresh)); }
inline Owned<> share(PyObject* p) { return Owned<>::share(p); }
inline Owned<> share(const Owned<>& o) { return o; }
inline Owned<> share(Borrowed<> b) { return Owned<>::share(b.get()); }
inline Borrowed<> borrow(PyObject* p) { return Borrowed<>::of(p); }
inline PyTypeObject* type_of(Borrowed<> b) { return Py_TYPE(b.get()); }
inline PyObject* as_object(PyTypeObject* t) { return reinterpret_cast<PyObject*>(t); }
inline Owned<> none() { return Owned<>::share(Py_None); }
inline Owned<> boolean(bool value) { return Owned<>::share(value ? Py_True : Py_False); }
inline Owned<> text_object(std::string_view text) {
  return take(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}
/// "" if it is no string.
std::string utf8(Borrowed<> text);
/// obj.name, or null if there is none (other errors are PyError). Real attribute access: for objects that are ours.
Owned<> attribute(Borrowed<> object, const char* name);
/// What the MRO look-up of `name` finds in the type, unbound, borrowed; null if nothing.
Borrowed<> look_up(PyTypeObject* type, Borrowed<> name);
Borrowed<> look_up(PyTypeObject* type, const char* name);
/// The object's __dict__ (made on demand), or null if it has none.
Owned<> instance_dict(Borrowed<> object);
/// An interned string that lives for good.
Borrowed<> interned(const char* text);
/// Its end runs code: __del__, or the callback of a weak reference.
bool has_finaliser(Borrowed<> object);

}  // namespace braze::capture
