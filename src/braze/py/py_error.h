// The user's Python exception on its way through C++. It passes unchanged: type, value, traceback.
#pragma once

#include <exception>

#include "braze/py/ref.h"

namespace braze::py {

/// Thrown while CPython's error indicator is set; whoever catches it takes or restores the indicator.
/// The constructor leaves the indicator where it is.
struct PyError : std::exception {
  const char* what() const noexcept override { return "a Python exception is set"; }
};

/// Turns the C API's NULL or negative result into PyError.
template <class T>
T* check(T* p) {
  if (p == nullptr) [[unlikely]]
    throw PyError();
  return p;
}
inline int check(int status) {
  if (status < 0) [[unlikely]]
    throw PyError();
  return status;
}

/// Sets the indicator and throws.
[[noreturn]] void raise(PyObject* type, const char* message);

}  // namespace braze::py
