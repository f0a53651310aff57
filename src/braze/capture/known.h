// Objects of torch and of the standard library that the capture knows by identity. Looked up once per process.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "braze/capture/objects.h"

namespace braze::capture {

/// What a callable known by identity means to the capture.
enum class Meaning : std::uint8_t {
  kUnknown,
  kStructural,  ///< native; moves references only: any fresh or shadowed arguments
  kValue,       ///< native and pure; looks into its arguments: they must be native all through
  kIterating,   ///< native; consumes or wraps iterables, may take functions: those are replaced by our own
  kTorch,       ///< a torch operation
  kTorchQuery,  ///< torch, native, pure, any arguments: has_torch_function, is_grad_enabled
  kTorchState,  ///< torch, native: sets grad mode or autocast, committed at the segment's end
  kTrue,
  kFalse,    ///< is_compiling and its kin; is_scripting
  kModel,    ///< has a model of its own, named by the function's name (models/)
  kTrusted,  ///< Python of torch that is run natively on fakes
  kBreak,    ///< never called during a capture
};

class Known {
 public:
  static const Known& get();  ///< imports nothing that torch has not imported

  PyTypeObject *tensor, *tensor_base, *parameter, *buffer, *module, *size, *device, *dtype, *layout, *memory_format;
  PyTypeObject *enum_type, *partial, *deque, *ordered_dict, *default_dict, *counter, *cached_property,
      *simple_namespace;
  PyTypeObject *lru_cache_wrapper, *finfo, *iinfo, *op_overload, *op_overload_packet, *generator, *abc_meta;
  Owned<> module_call, module_getattr, module_setattr, module_wrapped_call, module_call_impl;
  Owned<> torch_nn_module_globals;  ///< the dict of torch.nn.modules.module: global hooks
  Owned<> sys_modules;
  Owned<> variable_functions;  ///< torch._C._VariableFunctions: torch.add and its like are its static methods

  Meaning meaning(Borrowed<> callable) const;
  /// The native function torch.<name>, by identity.
  bool is_torch_function(Borrowed<> callable, const std::string& name) const;
  /// True if "aten::name" is an operator whose result does not depend on values and reaches no memory.
  static bool is_tensor_operation(const std::string& name);
  /// Attributes of tensors that are answered by the fake.
  static bool is_tensor_attribute(const std::string& name);
  /// Python of torch (by the name of its module) that is run natively on fakes instead of being interpreted.
  static bool is_trusted_module(const std::string& module);

 private:
  Known();
  void add(const char* module, const char* name, Meaning meaning);
  void add_all(const char* module, Meaning meaning);
  std::unordered_map<PyObject*, Meaning> meanings_;
  std::vector<Owned<>> kept_;
};

bool is_tensor(Borrowed<> object);

}  // namespace braze::capture
