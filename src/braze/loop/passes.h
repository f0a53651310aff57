// The passes over loop programs, in the order in which compile runs them. Each keeps what `interpret` computes.
#pragma once

#include <array>

#include "braze/loop/loop.h"
#include "braze/support/passes.h"

namespace braze::loop {

/// Folds constants, drops neutral operations and merges equal scalars; drops scalars that nothing uses.
void simplify_bodies(LoopProgram& p);
/// Simplifies indices by what is known of loop variables: floordiv(64*i0 + i1, 64) with i1 < 64 is i0.
void simplify_indices(LoopProgram& p);
/// Loads of maps that are a constant become the constant.
void inline_constants(LoopProgram& p);
/// Removes operations and tensors that no output needs (library calls with effects stay), and renumbers tensors in
/// order of appearance: inputs, then views and results operation by operation.
void eliminate_dead_ops(LoopProgram& p);

using LoopPass = support::Pass<LoopProgram>;
inline constexpr std::array kLoopPasses = {
    LoopPass{"loop-inline-constants", "loads of maps that are a constant become the constant", inline_constants},
    LoopPass{"loop-indices", "simplifies indices by the ranges of loop variables", simplify_indices},
    LoopPass{"loop-bodies", "folds constants, merges equal scalars, drops neutral operations", simplify_bodies},
    LoopPass{"loop-dce", "removes operations and tensors that no output needs", eliminate_dead_ops},
};

}  // namespace braze::loop
