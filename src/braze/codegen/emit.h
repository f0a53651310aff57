// Kernel to source text. Pure functions: the same kernel gives the same bytes.
#pragma once

#include <string>

#include "braze/kernel/kernel.h"

namespace braze::codegen {

/// C++ behind the prelude: extern "C" void NAME(void* const* p, const i64* s, i64 begin, i64 end).
/// The text does not contain the kernel's own name but `name`.
std::string emit_cpp(const kernel::Kernel& k, const std::string& name);

}  // namespace braze::codegen
