// The kernels of this process.
#pragma once

#include "braze/toolchain/kernel_library.h"

namespace braze::runtime {

using toolchain::KernelFunction;
using toolchain::KernelLibrary;

/// The process's library, with the options of its first use. Never destroyed: kernels may run until the process ends.
/// Its compiles run Python's signal handlers, so that Ctrl-C ends them with the exception the handler raises (PyError).
KernelLibrary& kernel_library();

}  // namespace braze::runtime
