// Elements of memory as numbers of the interpreters.
#pragma once

#include "braze/loop/interpret.h"

namespace braze::kernel {

loop::Number read_number(const void* memory, op::DType type, std::int64_t at);
void write_number(void* memory, op::DType type, std::int64_t at, loop::Number x);  ///< x is a value of the type

}  // namespace braze::kernel
