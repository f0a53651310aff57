// The outcomes that are exceptions. The fourth outcome, Break, is a value (capture/break.h); PyError lives in py/.
//
// CompileError: the toolchain failed; the region runs as library calls. InternalError (check.h): our own fault; the
// region runs in eager with one warning, and is fatal under BRAZE_STRICT=1.
#pragma once

#include <stdexcept>

namespace braze::support {

/// A compiler or loader that failed, crashed or ran out of time. The message names the saved source.
struct CompileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Text that does not parse. The message names the line.
struct ParseError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace braze::support
