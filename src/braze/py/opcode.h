// CPython's opcodes as an enumeration; the table of the running version is compat/opcodes_3xx.def.
//
// Never include CPython's own opcode.h next to this header: its macros have the same names.
#pragma once

#include <cstdint>

#include "braze/py/compat/version.h"

namespace braze::py {

enum class Opcode : std::uint8_t {
#define OPCODE(name, number, caches) name = number,
#include BRAZE_OPCODE_TABLE
#undef OPCODE
};

/// "LOAD_FAST"; "?" for a number that names no opcode.
const char* opcode_name(Opcode opcode) noexcept;

/// Inline cache units that follow the instruction.
int opcode_caches(Opcode opcode) noexcept;

/// KW_NAMES and PRECALL: they prepare the CALL behind them.
bool is_call_prefix(Opcode opcode) noexcept;

}  // namespace braze::py
