// The dispatch table of the running Python version.
#pragma once

#include "braze/py/compat/version.h"

#if PY_VERSION_HEX < 0x030C0000
#include "braze/capture/compat/dispatch_311.h"
#else
#include "braze/capture/compat/dispatch_312.h"
#endif
