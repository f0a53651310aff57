// Runs a kernel statement by statement, one lane at a time: slow and obvious. Against the interpreter of loops it tells
// whether tiling is right, against compiled code whether the emitter is.
#pragma once

#include "braze/kernel/kernel.h"

namespace braze::kernel {

/// The call of plan.h's ABI: pointers to the buffers that are arguments (then the flag), integers, the part of the
/// launch. Reads and writes exactly the memory that the compiled kernel does.
void interpret(const Kernel& k, void* const* buffers, const std::int64_t* integers, std::int64_t begin,
               std::int64_t end);

}  // namespace braze::kernel
