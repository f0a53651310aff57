// Forces the fallback at random, so that tests walk the paths that are rare by design: BRAZE_CHAOS=0.2:7.
#pragma once

#include <string_view>

namespace braze::support {

/// True with the configured probability (never without BRAZE_CHAOS). The n-th call of a process at `point` always
/// answers the same for the same seed.
bool chaos_strikes(std::string_view point);

}  // namespace braze::support
