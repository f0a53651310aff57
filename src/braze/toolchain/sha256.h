// Content addresses of the kernel cache.
#pragma once

#include <string>
#include <string_view>

namespace braze::toolchain {

/// SHA-256 as 64 hexadecimal digits.
std::string sha256(std::string_view bytes);

}  // namespace braze::toolchain
