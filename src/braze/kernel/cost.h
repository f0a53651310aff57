// What a kernel costs, roughly, and which integers it takes.
#pragma once

#include "braze/kernel/tile.h"
#include "braze/kernel/values.h"

namespace braze::kernel {

/// Below this a kernel runs on one thread; about what one task of the thread pool should bring.
constexpr double kSerialNanoseconds = 8000;

/// Nanoseconds of one row: loads, stores and operators per inner element, measured on one AVX-512 core.
double row_cost(const std::vector<Value>& values, const std::vector<bool>& inner, const SymExpr& inner_extent,
                const loop::LoopProgram& program);

/// Sizes that indices and bounds mention, and `slots`, become integer arguments; `fold` is the last, if it has one.
void bind_integers(Kernel& k, const loop::LoopProgram& program, Tiled& out, int slots);

}  // namespace braze::kernel
