// Immutable values that guards compare by value: None, bool, int, float, complex, str, bytes, Ellipsis, torch.device,
// and tuples, frozensets, slices and torch.Size of them. Exact types only; comparing runs no user code.
#pragma once

#include <string>

#include "braze/py/ref.h"

namespace braze::guard {

bool is_constant(PyObject* object) noexcept;

/// Same exact types, equal values; floats by their bits (so 0.0 differs from -0.0 and a NaN equals itself).
bool are_equal_constants(PyObject* a, PyObject* b) noexcept;

/// A set or frozenset with just these constants (bool, int and float are told apart).
bool has_constants(PyObject* live_set, PyObject* expected_frozenset) noexcept;

/// A set whose iteration yields just these constants in this order.
bool yields_constants(PyObject* live_set, PyObject* expected_tuple) noexcept;

/// The object in a few words for messages: a constant's repr, shortened; else its kind. Runs no user code.
std::string describe(PyObject* object);

}  // namespace braze::guard
