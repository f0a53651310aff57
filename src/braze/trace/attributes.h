// Attributes of tensors that a capture must not touch on a fake: they reach memory, storage, identity or history.
#pragma once

#include <string_view>

namespace braze::trace {

/// True: the capture breaks before it reads or calls that attribute of a fake. Everything else on torch.Tensor is
/// either traced, plain metadata, or raises by itself; tests/python/trace/test_leaks.py goes through all of them.
bool is_refused_attribute(std::string_view name) noexcept;

}  // namespace braze::trace
