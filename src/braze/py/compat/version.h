// Which CPython this is compiled for. Version tests stand in compat/ only; others ask for the thing they need.
#pragma once

#include "braze/py/cpython.h"

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030D0000
#error "Braze supports CPython 3.11 and 3.12"
#endif

#if PY_VERSION_HEX < 0x030C0000
#define BRAZE_OPCODE_TABLE "braze/py/compat/opcodes_311.def"
#define BRAZE_PYTHON_311 1
#define BRAZE_PYTHON_312 0
#else
#define BRAZE_OPCODE_TABLE "braze/py/compat/opcodes_312.def"
#define BRAZE_PYTHON_311 0
#define BRAZE_PYTHON_312 1
#endif
