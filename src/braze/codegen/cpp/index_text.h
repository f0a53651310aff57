// Index expressions as C++: floor division and modulo are functions of the prelude.
#pragma once

#include <functional>
#include <string>

#include "braze/sym/sym_expr.h"

namespace braze::codegen {

using NameText = std::function<std::string(const std::string&)>;

/// `name_text` prints symbols and `@n`.
std::string index_text(const sym::SymExpr& e, const NameText& name_text);

}  // namespace braze::codegen
