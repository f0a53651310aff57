// The only place where c10::Error is caught: PyTorch's own translation decides type and message.
#include "braze/aten/error.h"

#include <torch/csrc/Exceptions.h>

#include "braze/support/check.h"

namespace braze::aten {

namespace {

/// False: the indicator is set.
bool set_indicator(const std::exception_ptr& error) {
  HANDLE_TH_ERRORS
  std::rethrow_exception(error);
  END_HANDLE_TH_ERRORS_RET(false)
}

}  // namespace

void raise_as_python(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const py::PyError&) {
    throw;
  } catch (const support::InternalError&) {
    throw;
  } catch (...) {
    set_indicator(error);
  }
  throw py::PyError();
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const py::PyError&) {
    throw;
  } catch (const support::InternalError&) {
    throw;
  } catch (const c10::Error& e) {
    return e.what_without_backtrace();
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace braze::aten
