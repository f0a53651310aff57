// A dispatch mode whose handler is C++: PyTorch asks the mode's "interpreter" to handle an operator, and ours records.
//
// Nothing here touches Python: the mode's object is None and is never called.
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/PyInterpreter.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/PyInterpreter.h>

#include "braze/support/check.h"
#include "braze/trace/dispatch_mode.h"

namespace braze::trace {

namespace {

thread_local Recorder* recorder = nullptr;

using torch::jit::Stack;

struct VTable final : c10::impl::PyInterpreterVTable {
  std::string name() const override { return "braze"; }
  void dispatch(const c10::OperatorHandle& op, Stack* stack) const override {
    BRAZE_CHECK(recorder != nullptr, "an operator reached the dispatch mode of a thread that records nothing");
    record_call(*recorder, op, *stack);
  }
  void python_op_registration_trampoline(const c10::OperatorHandle& op, c10::DispatchKey key, c10::DispatchKeySet keys,
                                         Stack* stack, bool with_keyset, bool with_op) const override {
    (*getPyInterpreter())->python_op_registration_trampoline(op, key, keys, stack, with_keyset, with_op);
  }
  void incref(PyObject*) const override {}
  void decref(PyObject*) const override {}
  bool try_incref(const c10::impl::PyObjectSlot&) const override { return false; }
  size_t refcnt(PyObject*) const override { return 1; }
  void reportErrorCallback(PyObject*, c10::DispatchKey) const override {}
  void throw_abstract_impl_not_imported_error(std::string name, const char*, const char*) const override {
    TORCH_CHECK(false, "no abstract implementation of ", name);
  }

  [[noreturn]] static void refuse() { throw support::InternalError("no tensor belongs to braze's interpreter"); }
  c10::intrusive_ptr<c10::TensorImpl> detach(const c10::TensorImpl*) const override { refuse(); }
  void python_dispatcher(const c10::OperatorHandle&, c10::DispatchKeySet, Stack*) const override { refuse(); }
  bool is_contiguous(const c10::TensorImpl*, at::MemoryFormat) const override { refuse(); }
  c10::SymBool sym_is_contiguous(const c10::TensorImpl*, at::MemoryFormat) const override { refuse(); }
  bool is_strides_like(const c10::TensorImpl*, at::MemoryFormat) const override { refuse(); }
  bool is_non_overlapping_and_dense(const c10::TensorImpl*) const override { refuse(); }
  c10::Device device(const c10::TensorImpl*) const override { refuse(); }
  int64_t dim(const c10::TensorImpl*) const override { refuse(); }
  c10::IntArrayRef strides(const c10::TensorImpl*) const override { refuse(); }
  c10::IntArrayRef sizes(const c10::TensorImpl*) const override { refuse(); }
  c10::SymIntArrayRef sym_sizes(const c10::TensorImpl*) const override { refuse(); }
  c10::Layout layout(const c10::TensorImpl*) const override { refuse(); }
  int64_t numel(const c10::TensorImpl*) const override { refuse(); }
  c10::SymInt sym_numel(const c10::TensorImpl*) const override { refuse(); }
  c10::SymIntArrayRef sym_strides(const c10::TensorImpl*) const override { refuse(); }
  c10::SymInt sym_storage_offset(const c10::TensorImpl*) const override { refuse(); }

  void trace_gpu_event_creation(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_event_deletion(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_event_record(c10::DeviceType, uintptr_t, uintptr_t) const override {}
  void trace_gpu_event_wait(c10::DeviceType, uintptr_t, uintptr_t) const override {}
  void trace_gpu_memory_allocation(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_memory_deallocation(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_stream_creation(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_device_synchronization(c10::DeviceType) const override {}
  void trace_gpu_stream_synchronization(c10::DeviceType, uintptr_t) const override {}
  void trace_gpu_event_synchronization(c10::DeviceType, uintptr_t) const override {}
  void reset_backward_hooks(const c10::TensorImpl*) const override {}
};

/// Lives as long as the process: tensors and modes may outlast everything else.
c10::impl::PyInterpreter* interpreter() {
  static auto* const it = new c10::impl::PyInterpreter(new VTable);  // NOLINT: never freed
  return it;
}

}  // namespace

Recorder* current_recorder() noexcept { return recorder; }
Recorder* exchange_recorder(Recorder* next) noexcept { return std::exchange(recorder, next); }

void enter_dispatch_mode() {
  at::functionalization::impl::setFunctionalizationReapplyViewsTLS(true);
  c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::Functionalize, true);
  c10::impl::TorchDispatchModeTLS::push_non_infra_mode_onto_stack(
      std::make_shared<c10::impl::PyObject_TorchDispatchMode>(Py_None, interpreter()));
}

void Recorder::fail(std::string reason, at::Tensor tensor) {
  if (!poison) {
    poison = std::move(reason);
    poison_tensor = std::move(tensor);
  }
  throw Poisoned("braze stopped recording: " + *poison);
}

}  // namespace braze::trace
