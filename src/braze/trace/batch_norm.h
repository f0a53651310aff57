// native_batch_norm writes to its running statistics and its schema does not say so.
#pragma once

namespace braze::trace {

/// Once per process: under functionalization the operator becomes the form whose schema tells the truth, so that the
/// statistics become results of the graph that the commit writes back.
void register_batch_norm();

}  // namespace braze::trace
