// PyTorch's global and per-thread settings that decide what a captured program means, packed for one comparison.
//
//   TorchState now = TorchState::current();           // about 30 ns, never throws
//   if (now != entry.state) log(now.difference(entry.state));   // "grad mode is off, was on"
#pragma once

#include <cstdint>
#include <string>

namespace braze::aten {

/// words[0], [1]: this thread's included and excluded dispatch keys (dispatch modes, functorch, functionalization,
/// autocast and inference mode show there). words[2]: this thread's flags and dtypes. words[3]: the process's settings.
struct TorchState {
  std::uint64_t words[4] = {};

  bool operator==(const TorchState&) const = default;
  static TorchState current() noexcept;
  /// A dispatch mode, torch function mode, functorch transform or saved-tensor hook is active: nothing can be captured.
  bool has_foreign_modes() const noexcept;
  /// What differs, in words, `*this` being the present state and `expected` the entry's; "" if equal.
  std::string difference(const TorchState& expected) const;
};

}  // namespace braze::aten
