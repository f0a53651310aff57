// Guards in words.
#pragma once

#include "braze/guard/program.h"

namespace braze::guard {

/// The first guard that does not hold now, with the expected and the present value; "" if all hold. Leaves the
/// program's words alone.
std::string explain_failure(Program& program, PyObject* const* slots, PyFunctionObject* function);

std::vector<std::string> guard_texts(const Program& program);

}  // namespace braze::guard
