// Arguments of nodes: text, defaults, and typed access by position.
//
// Text: %x, [%x, none], true, 2*s0 + 1, 2.0, complex(1.0, 2.0), "none", [1, s0], [1.0], [true], f32, cuda:0, strided,
// channels_last, opaque#0; none for None, undefined for a none id; empty lists of tensors, floats and bools say so:
// tensors[], floats[], bools[].
#pragma once

#include <functional>
#include <span>
#include <string>

#include "braze/graph/graph.h"
#include "braze/support/text.h"

namespace braze::graph {

/// `name_of` gives the text of a value, with its %.
std::string to_text(const Arg& arg, const std::function<std::string(ValueId)>& name_of);
/// `value_named` gives the value of a name without its %; it fails the scan if there is none.
Arg parse_arg(support::Scanner& in, const std::function<ValueId(std::string_view)>& value_named);

/// The defaults of an operator's parameters as arguments (as the dispatcher fills them in); nullopt: none.
std::span<const std::optional<Arg>> default_args(Op op);

/// True for parameters that take a tensor or tensors: "Tensor", "Tensor?", "Tensor[]", "Tensor?[]".
bool is_tensor_type(std::string_view parameter_type);

}  // namespace braze::graph
