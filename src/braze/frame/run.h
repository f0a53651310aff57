// The life of a call: program points, entries, breaks performed for real, one fallback.
//
//   run(callable) -> start state -> [entry hit -> executable -> recipe]* -> value
//                                   miss -> capture -> compile -> same;  refused, failing or contended -> CPython
#pragma once

#include "braze/capture/capture.h"
#include "braze/runtime/executable.h"

namespace braze::frame {

using py::Borrowed;
using py::Owned;

/// Options of one braze.compile(...) call, read once.
struct CompileOptions {
  bool fullgraph = false;
  runtime::Backend backend = runtime::Backend::kBraze;
  int recompile_limit = 8;
};

struct Callable;  ///< a compiled callable: cache of program points, statistics (frame/compiled_callable.h)

}  // namespace braze::frame
