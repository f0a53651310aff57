// The library of the process: options, prelude and flags of this machine, Python's Ctrl-C.
#include "braze/runtime/process_library.h"

#include "braze/py/gil.h"
#include "braze/py/py_error.h"
#include "braze/toolchain/cpu_features.h"
#if __has_include("braze/codegen/cpp/prelude.h")
#include "braze/codegen/cpp/prelude.h"
#endif

namespace braze::runtime {

namespace {

std::string prelude() {
#if __has_include("braze/codegen/cpp/prelude.h")
  support::Target target;
  target.features = toolchain::cpu_features();
  return codegen::cpp_prelude(target);
#else
  return "";
#endif
}

/// Runs Python's signal handlers; what they raise (KeyboardInterrupt) ends the compile.
bool interrupted() {
  const py::GilHold gil;
  if (PyErr_CheckSignals() != 0) throw py::PyError();
  return false;
}

}  // namespace

KernelLibrary& kernel_library() {
  static auto* library = new KernelLibrary(toolchain::settings_from(support::options()), prelude(), interrupted);
  return *library;
}

}  // namespace braze::runtime
