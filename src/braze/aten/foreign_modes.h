// Whether somebody else is watching or changing what torch operations do on this thread.
#pragma once

namespace braze::aten {

/// True under torch.func transforms, any TorchDispatchMode or TorchFunctionMode, and torch.jit.trace: a compiled
/// callable then runs the original.
bool foreign_modes_active() noexcept;

}  // namespace braze::aten
