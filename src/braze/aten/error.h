// c10::Error and the other exceptions of PyTorch become the Python exception that eager's binding would raise.
#pragma once

#include <exception>
#include <optional>
#include <string>

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

/// What a failed call of PyTorch said.
std::string message_of(const std::exception_ptr& error);

/// Calls f where its failure is an answer and not the user's exception: the message, or nothing if f succeeded.
template <class F>
std::optional<std::string> failure_of(F&& f) {
  try {
    f();
  } catch (...) {
    return message_of(std::current_exception());
  }
  return std::nullopt;
}

}  // namespace braze::aten
