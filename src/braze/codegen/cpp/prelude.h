// The prelude and the compiler flags of generated C++.
#pragma once

#include <string>
#include <vector>

#include "braze/support/target.h"

namespace braze::codegen {

/// To be written once at the head of a unit of kernels.
std::string cpp_prelude(const support::Target& target);

/// Language, optimisation and target flags (`-m<feature>` for each feature); not -shared, -fPIC, inputs or outputs.
std::vector<std::string> cpp_flags(const support::Target& target);

}  // namespace braze::codegen
