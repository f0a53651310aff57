// The thread's torch state that interpreted code may change: grad mode, default dtype, autocast.
#pragma once

#include <vector>

#include "braze/capture/objects.h"

namespace braze::capture {

struct NativeState {
  static NativeState current();
  /// Calls that lead from this state to `after`: {function, arguments tuple} each. Native functions of torch.
  std::vector<std::pair<Owned<>, Owned<>>> changes_to(const NativeState& after) const;

  bool grad = true;
  Owned<> default_dtype;
  struct Autocast {
    bool enabled = false;
    Owned<> dtype;
  };
  std::vector<Autocast> autocast;  ///< one per device type of kDeviceTypes
  long nesting = 0;
};

}  // namespace braze::capture
