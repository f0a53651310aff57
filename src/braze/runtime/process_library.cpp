// The library of the process: options, prelude and flags of this machine, Python's Ctrl-C.
#include "braze/runtime/process_library.h"

#include <pthread.h>

#include <atomic>
#include <memory>

#include "braze/codegen/cpp/prelude.h"
#include "braze/py/gil.h"
#include "braze/py/py_error.h"
#include "braze/toolchain/cpu_features.h"

namespace braze::runtime {

namespace {

toolchain::Dialect dialect() {
  support::Target target;
  target.features = toolchain::cpu_features();
  return {codegen::cpp_prelude(target), codegen::cpp_flags(target)};
}

/// Runs Python's signal handlers; what they raise (KeyboardInterrupt) ends the compile.
bool interrupted() {
  const py::GilHold gil;
  if (PyErr_CheckSignals() != 0) throw py::PyError();
  return false;
}

std::atomic<KernelLibrary*> library;

/// After a fork the child makes a library of its own: another thread of the parent may have held the old one's lock.
KernelLibrary* make_library() {
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, [] { library = nullptr; });
  auto fresh = std::make_unique<KernelLibrary>(toolchain::settings_from(support::options()), dialect(), interrupted);
  KernelLibrary* expected = nullptr;
  return library.compare_exchange_strong(expected, fresh.get()) ? fresh.release() : expected;
}

}  // namespace

KernelLibrary& kernel_library() {
  KernelLibrary* l = library;
  return l != nullptr ? *l : *make_library();
}

}  // namespace braze::runtime
