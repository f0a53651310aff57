// Binds the arguments of a call to a function's first slots, as CPython does, without calling it.
//
//   BoundArguments bound(function, self, args, positional, keyword_names);
//   if (!bound.is_bound()) -> call the original: it raises eager's TypeError
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "braze/py/ref.h"

namespace braze::frame {

using py::Borrowed;
using py::Owned;

class BoundArguments {
 public:
  /// `self`: null, or what goes before args. args: positional values, then one per keyword name (vectorcall).
  BoundArguments(Borrowed<PyFunctionObject> function, PyObject* self, PyObject* const* args, std::size_t positional,
                 PyObject* keyword_names);
  BoundArguments(const BoundArguments&) = delete;
  BoundArguments& operator=(const BoundArguments&) = delete;

  bool is_bound() const { return is_bound_; }
  /// co_nlocalsplus borrowed values; NULL: unbound. Alive as long as this object and the call's arguments.
  PyObject* const* slots() const { return slots_; }

 private:
  static constexpr std::size_t kInline = 48;

  void bind(PyObject* self, PyObject* const* args, std::size_t positional, PyObject* keyword_names);
  bool bind_simple(PyObject* self, PyObject* const* args, std::size_t positional) noexcept;
  bool bind_positional(PyObject* self, PyObject* const* args, std::size_t positional);
  bool bind_keywords(PyObject* const* values, PyObject* names);
  bool bind_keyword(PyObject* name, PyObject* value);
  bool bind_defaults();
  int parameter_index(PyObject* name) const noexcept;

  Borrowed<PyFunctionObject> function_;
  PyCodeObject* code_;
  PyObject** slots_ = nullptr;
  bool is_bound_ = false;
  Owned<> rest_;      ///< the tuple of *args
  Owned<> keywords_;  ///< the dict of **kwargs
  std::array<PyObject*, kInline> inline_;
  std::vector<PyObject*> heap_;
};

}  // namespace braze::frame
