// Version differences of the object layouts, and the check that the private ones are what they seem.
#include "braze/guard/compat.h"

#include <cstring>

#include "braze/py/py_error.h"
#include "braze/support/check.h"

namespace braze::guard::compat {
namespace {

using py::Owned;

/// Allocation may collect garbage, and finalisers may run user code: not inside a check.
class NoCollection {
 public:
  NoCollection() : was_enabled_(PyGC_Disable() != 0) {}
  ~NoCollection() {
    if (was_enabled_) PyGC_Enable();
  }

 private:
  bool was_enabled_;
};

Owned<> evaluate(const char* expression) {
  auto names = Owned<>::steal(py::check(PyDict_New()));
  for (const char* module : {"collections", "functools"}) {
    auto imported = Owned<>::steal(py::check(PyImport_ImportModule(module)));
    py::check(PyDict_SetItemString(names.get(), module, imported.get()));
  }
  py::check(PyDict_SetItemString(names.get(), "__builtins__", PyEval_GetBuiltins()));
  return Owned<>::steal(py::check(PyRun_String(expression, Py_eval_input, names.get(), names.get())));
}

template <class T>
const T* as(const Owned<>& o) {
  return reinterpret_cast<const T*>(o.get());
}

bool ordered_dict_is_as_expected() {
  const auto d = evaluate("(lambda d: (d.move_to_end('a'), d)[1])(collections.OrderedDict(a=1, b=2))");
  const auto* o = as<Ordered>(d);
  const OrderedNode* first = o->first;
  return first != nullptr && PyUnicode_CompareWithASCIIString(first->key, "b") == 0 && first->next == o->last &&
         PyUnicode_CompareWithASCIIString(o->last->key, "a") == 0 && o->last->next == nullptr;
}

bool iterators_are_as_expected() {
  const auto list = evaluate("(lambda i: (next(i), i)[1])(iter([5, 6]))");
  const auto tuple = evaluate("(lambda i: (next(i), i)[1])(iter((5, 6)))");
  const auto keys = evaluate("(lambda i: (next(i), i)[1])(iter({5: 1, 6: 2}))");
  const auto range = evaluate("(lambda i: (next(i), i)[1])(iter(range(3, 12, 4)))");
  const auto enumerated = evaluate("(lambda i: (next(i), i)[1])(enumerate([5, 6], 7))");
  const auto zipped = evaluate("zip([1], (2,))");
  const auto* r = as<RangeIterator>(range);
  const bool range_ok = r->next() == 7 && r->step == 4 && r->left() == 2;
  return range_ok && as<SequenceIterator>(list)->index == 1 &&
         PyList_CheckExact(as<SequenceIterator>(list)->sequence) && as<SequenceIterator>(tuple)->index == 1 &&
         PyTuple_CheckExact(as<SequenceIterator>(tuple)->sequence) &&
         PyDict_CheckExact(reinterpret_cast<PyObject*>(as<DictIterator>(keys)->dict)) &&
         as<DictIterator>(keys)->position == 1 && as<EnumerateIterator>(enumerated)->index == 8 &&
         Py_TYPE(as<EnumerateIterator>(enumerated)->iterator) == Py_TYPE(list.get()) &&
         as<ZipIterator>(zipped)->size == 2 && PyTuple_CheckExact(as<ZipIterator>(zipped)->iterators);
}

bool partial_is_as_expected() {
  const auto p = evaluate("functools.partial(len, 1, k=2)");
  return PyCFunction_CheckExact(as<Partial>(p)->function) && PyTuple_CheckExact(as<Partial>(p)->args) &&
         PyDict_CheckExact(as<Partial>(p)->keywords);
}

}  // namespace

PyObject** instance_dict(PyObject* object) {
  PyObject** place = _PyObject_GetDictPtr(object);
  if (place != nullptr && *place != nullptr) return place;
  if (place == nullptr && Py_TYPE(object)->tp_dictoffset == 0) return nullptr;
  const NoCollection guard;
  PyObject* dict = PyObject_GenericGetDict(object, nullptr);
  if (dict == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  Py_DECREF(dict);
  place = _PyObject_GetDictPtr(object);
  return place != nullptr && *place != nullptr ? place : nullptr;
}

void verify_layouts() {
  static const bool verified = ordered_dict_is_as_expected() && iterators_are_as_expected() && partial_is_as_expected();
  BRAZE_CHECK(verified, "objects of this Python ({}) are laid out differently than Braze knows", PY_VERSION);
}

}  // namespace braze::guard::compat
