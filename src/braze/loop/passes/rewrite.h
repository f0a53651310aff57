// Rebuilding bodies scalar by scalar, with @n in indices renumbered.
#pragma once

#include <functional>

#include "braze/loop/build.h"

namespace braze::loop {

/// Walks an operation's body in order. For each scalar `visit` gets a copy whose operands and @n are already those of
/// the new body, and gives the term that stands for it. Yields, checks and targets follow. Scalars that nothing uses
/// are left out afterwards.
void rewrite_body(LoopOp& op, const std::function<Term(BodyBuilder&, Scalar)>& visit);

/// Orders a body depth first from its checks and yields, whatever the order in which it was built; drops scalars that
/// nothing uses.
void order_body(LoopOp& op);

/// Adds the scalar as it is.
Term keep(BodyBuilder& body, Scalar s);

}  // namespace braze::loop
