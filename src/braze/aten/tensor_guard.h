// One batch check of tensor metadata: are these live tensors like the examples that a graph was captured with?
//
//   TensorGuard guard;
//   guard.add(example, 7, {.is_argument = true});   // value 7 of the caller's array
//   guard.seal();
//   guard.check(values);                            // noexcept, allocates nothing; about 6 ns per tensor
//
// Compared: Python type (torch.Tensor or Parameter itself), dispatch keys (so: no subclass, sparse, quantized, nested,
// functorch wrapper or fake; conjugate and negative bits; inference tensors), dtype, device, sizes, strides,
// requires_grad, being a leaf, a storage that still holds all elements, and which tensors share storages
// (storage_relations.h). The examples are not kept.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "braze/py/ref.h"

namespace braze::aten {

/// A plain dense tensor (or Parameter) on a device, not a subclass nor wrapped: what a tensor guard can describe.
bool is_plain_tensor(py::Borrowed<> object) noexcept;

/// `.grad` of a tensor of any class, None if it has none; the wrapper is owned by the tensor. NULL if not a tensor.
/// May create the Python wrapper of a gradient that only C++ has seen.
PyObject* grad_of(PyObject* object) noexcept;

class TensorGuard {
 public:
  struct Notes {
    bool is_argument = false;         ///< changes from call to call (a parameter does not)
    bool has_storage_offset = false;  ///< the storage offset is part of what was read
    bool is_view = false;  ///< it is written: being a differentiable view, and of which kind of base, matters
  };

  TensorGuard();
  ~TensorGuard();
  TensorGuard(TensorGuard&&) noexcept;
  TensorGuard& operator=(TensorGuard&&) noexcept;

  /// `example` must be a plain tensor (InternalError otherwise). Returns the number of this tensor.
  std::size_t add(py::Borrowed<> example, std::uint32_t value_index, Notes notes);
  /// No further tensors; learns storages from the examples, which must still be alive.
  void seal();
  std::size_t size() const;
  bool check(PyObject* const* values) noexcept;
  /// The first difference in words, "" if none. `number` is set to the tensor that differs, or to size() if the
  /// relation between tensors does.
  std::string explain(PyObject* const* values, std::size_t& number);
  std::string text(std::size_t number) const;  ///< "f32[4, 3] cpu requires_grad"

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace braze::aten
