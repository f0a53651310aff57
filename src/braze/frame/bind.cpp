// The rules of CPython's initialize_locals. Whatever is not plainly right is refused: the original then raises.
#include "braze/frame/bind.h"

#include <algorithm>

#include "braze/py/py_error.h"

namespace braze::frame {

namespace {

bool takes_rest(const PyCodeObject* code) { return (code->co_flags & CO_VARARGS) != 0; }
bool takes_keywords(const PyCodeObject* code) { return (code->co_flags & CO_VARKEYWORDS) != 0; }
int named_parameters(const PyCodeObject* code) { return code->co_argcount + code->co_kwonlyargcount; }

}  // namespace

BoundArguments::BoundArguments(Borrowed<PyFunctionObject> function, PyObject* self, PyObject* const* args,
                               std::size_t positional, PyObject* keyword_names)
    : function_(function), code_(reinterpret_cast<PyCodeObject*>(function->func_code)) {
  const auto count = static_cast<std::size_t>(code_->co_nlocalsplus);
  if (count > kInline) heap_.resize(count);
  slots_ = count > kInline ? heap_.data() : inline_.data();
  std::fill_n(slots_, count, nullptr);
  bind(self, args, positional, keyword_names);
}

void BoundArguments::bind(PyObject* self, PyObject* const* args, std::size_t positional, PyObject* keyword_names) {
  const bool has_keywords = keyword_names != nullptr && PyTuple_GET_SIZE(keyword_names) > 0;
  if (!has_keywords && bind_simple(self, args, positional)) {
    is_bound_ = true;
    return;
  }
  try {
    is_bound_ = bind_positional(self, args, positional) &&
                bind_keywords(args + positional, has_keywords ? keyword_names : nullptr) && bind_defaults();
  } catch (const py::PyError&) {
    PyErr_Clear();  // the original meets the same trouble and reports it
  }
}

bool BoundArguments::bind_simple(PyObject* self, PyObject* const* args, std::size_t positional) noexcept {
  const std::size_t first = self != nullptr ? 1 : 0;
  if (first + positional != static_cast<std::size_t>(code_->co_argcount)) return false;
  if (code_->co_kwonlyargcount != 0 || takes_rest(code_) || takes_keywords(code_)) return false;
  if (self != nullptr) slots_[0] = self;
  std::copy_n(args, positional, slots_ + first);
  return true;
}

bool BoundArguments::bind_positional(PyObject* self, PyObject* const* args, std::size_t positional) {
  const auto capacity = static_cast<std::size_t>(code_->co_argcount);
  const std::size_t first = self != nullptr ? 1 : 0;
  if (first > capacity) return false;  // def f(*args) as a method: rare, CPython does it
  if (self != nullptr) slots_[0] = self;
  const std::size_t taken = std::min(positional, capacity - first);
  std::copy_n(args, taken, slots_ + first);
  if (!takes_rest(code_)) return taken == positional;
  rest_ = Owned<>::steal(py::check(PyTuple_New(static_cast<Py_ssize_t>(positional - taken))));
  for (std::size_t i = taken; i < positional; ++i)
    PyTuple_SET_ITEM(rest_.get(), static_cast<Py_ssize_t>(i - taken), Py_NewRef(args[i]));
  slots_[named_parameters(code_)] = rest_.get();
  return true;
}

bool BoundArguments::bind_keywords(PyObject* const* values, PyObject* names) {
  if (takes_keywords(code_)) {
    keywords_ = Owned<>::steal(py::check(PyDict_New()));
    slots_[named_parameters(code_) + (takes_rest(code_) ? 1 : 0)] = keywords_.get();
  }
  const Py_ssize_t count = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!bind_keyword(PyTuple_GET_ITEM(names, i), values[i])) return false;
  return true;
}

bool BoundArguments::bind_keyword(PyObject* name, PyObject* value) {
  if (!PyUnicode_CheckExact(name)) return false;
  const int index = parameter_index(name);
  if (index >= 0) {
    if (slots_[index] != nullptr) return false;  // given twice
    slots_[index] = value;
    return true;
  }
  if (!keywords_) return false;
  py::check(PyDict_SetItem(keywords_.get(), name, value));
  return true;
}

int BoundArguments::parameter_index(PyObject* name) const noexcept {
  PyObject* const names = code_->co_localsplusnames;
  const int count = named_parameters(code_);
  for (int i = code_->co_posonlyargcount; i < count; ++i)
    if (PyTuple_GET_ITEM(names, i) == name) return i;
  for (int i = code_->co_posonlyargcount; i < count; ++i)
    if (PyUnicode_Compare(PyTuple_GET_ITEM(names, i), name) == 0) return i;
  return -1;
}

bool BoundArguments::bind_defaults() {
  PyObject* const defaults = function_->func_defaults;
  const int defaulted = defaults != nullptr ? static_cast<int>(PyTuple_GET_SIZE(defaults)) : 0;
  const int first_defaulted = code_->co_argcount - defaulted;
  for (int i = 0; i < code_->co_argcount; ++i) {
    if (slots_[i] != nullptr) continue;
    if (i < first_defaulted || first_defaulted < 0) return false;
    slots_[i] = PyTuple_GET_ITEM(defaults, i - first_defaulted);
  }
  PyObject* const keyword_defaults = function_->func_kwdefaults;
  for (int i = code_->co_argcount; i < named_parameters(code_); ++i) {
    if (slots_[i] != nullptr) continue;
    if (keyword_defaults != nullptr)
      slots_[i] = PyDict_GetItemWithError(keyword_defaults, PyTuple_GET_ITEM(code_->co_localsplusnames, i));
    if (slots_[i] == nullptr) return false;
  }
  return true;
}

}  // namespace braze::frame
