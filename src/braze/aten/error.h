// c10::Error and the other exceptions of PyTorch become the Python exception that eager's binding would raise.
#pragma once

#include <exception>

#include "braze/py/py_error.h"

namespace braze::aten {

/// Sets the Python error indicator for an exception of PyTorch (IndexError, TypeError, NotImplementedError,
/// OutOfMemoryError, LinAlgError, ... with eager's message) and throws PyError. PyError and InternalError pass
/// unchanged. Needs the GIL.
[[noreturn]] void raise_as_python(std::exception_ptr error);

/// Calls f; what PyTorch throws leaves as PyError. `auto y = translated([&] { return at::relu(x); });`
template <class F>
decltype(auto) translated(F&& f) {
  try {
    return f();
  } catch (...) {
    raise_as_python(std::current_exception());
  }
}

}  // namespace braze::aten
