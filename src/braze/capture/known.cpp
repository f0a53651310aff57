// Tables of what is known by identity, filled from the modules that are already imported.
#include "braze/capture/known.h"

#include "braze/support/check.h"

namespace braze::capture {

namespace {

/// A module's attribute by dotted path, or null.
Owned<> find(const char* module, const char* name) {
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* found = PyDict_GetItemString(modules, module);
  return found == nullptr ? Owned<>{} : attribute(borrow(found), name);
}

PyTypeObject* find_type(const char* module, const char* name) {
  Owned<> type = find(module, name);
  if (!type || !PyType_Check(type.get())) return nullptr;
  return reinterpret_cast<PyTypeObject*>(type.release());  // kept for good
}

struct Row {
  const char* module;
  Meaning meaning;
  std::vector<const char*> names;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      {"builtins", Meaning::kModel, {"isinstance", "issubclass", "len",    "getattr",  "setattr", "hasattr",
                                     "delattr",    "iter",       "next",   "callable", "super",   "type",
                                     "object",     "bool",       "dict",   "str",      "repr",    "format",
                                     "vars",       "abs",        "divmod", "pow",      "property"}},
      {"builtins",
       Meaning::kValue,
       {"int", "float", "complex", "bytes", "bytearray", "range", "slice", "round", "ord", "chr", "hex", "bin", "oct",
        "ascii", "hash"}},
      {"builtins",
       Meaning::kIterating,
       {"list", "tuple", "set", "frozenset", "enumerate", "zip", "map", "filter", "reversed", "any", "all", "sorted",
        "min", "max", "sum"}},
      {"builtins",
       Meaning::kBreak,
       {"print", "id", "input", "open", "eval", "exec", "compile", "__import__", "locals", "globals", "dir",
        "breakpoint"}},
      {"itertools",
       Meaning::kIterating,
       {"chain", "islice", "count", "repeat", "product", "zip_longest", "accumulate", "starmap", "takewhile",
        "dropwhile", "combinations", "combinations_with_replacement", "permutations", "cycle", "filterfalse",
        "pairwise", "compress"}},
      {"functools", Meaning::kIterating, {"reduce"}},
      {"functools", Meaning::kStructural, {"partial"}},
      {"collections", Meaning::kIterating, {"OrderedDict", "deque", "defaultdict"}},
      {"torch.compiler", Meaning::kTrue, {"is_compiling", "is_dynamo_compiling"}},
      {"torch._dynamo", Meaning::kTrue, {"is_compiling"}},
      {"torch._utils_internal", Meaning::kTrue, {"is_compiling"}},
      {"torch._dynamo.external_utils", Meaning::kTrue, {"is_compiling"}},
      {"torch.compiler", Meaning::kFalse, {"is_exporting"}},
      {"torch.jit", Meaning::kFalse, {"is_scripting", "is_tracing"}},
      {"torch._jit_internal", Meaning::kFalse, {"is_scripting"}},
      {"torch.jit._script", Meaning::kFalse, {"is_scripting"}},
      {"torch.jit._trace", Meaning::kFalse, {"is_tracing"}},
      {"torch", Meaning::kTorch, {"tensor", "as_tensor", "scalar_tensor"}},
      {"torch",
       Meaning::kTorchQuery,
       {"is_grad_enabled",
        "is_inference_mode_enabled",
        "get_default_dtype",
        "is_autocast_enabled",
        "is_autocast_cpu_enabled",
        "get_autocast_dtype",
        "get_autocast_gpu_dtype",
        "get_autocast_cpu_dtype",
        "is_autocast_cache_enabled",
        "get_num_threads",
        "device",
        "Size",
        "finfo",
        "iinfo",
        "is_anomaly_enabled",
        "_is_functional_tensor",
        "promote_types",
        "result_type",
        "can_cast",
        "broadcast_shapes",
        "is_tensor",
        "are_deterministic_algorithms_enabled",
        "is_deterministic_algorithms_warn_only_enabled"}},
      {"torch._C",
       Meaning::kTorchQuery,
       {"_has_torch_function",
        "_has_torch_function_unary",
        "_has_torch_function_variadic",
        "_is_torch_function_enabled",
        "_len_torch_function_stack",
        "_is_torch_function_mode_enabled",
        "_get_tracing_state",
        "_is_tracing",
        "_log_api_usage_once",
        "is_autocast_available",
        "_get_mkldnn_enabled",
        "_get_cudnn_enabled",
        "_get_math_sdp_enabled",
        "_get_flash_sdp_enabled",
        "_get_mem_efficient_sdp_enabled",
        "_are_functorch_transforms_active",
        "_get_nnpack_enabled",
        "_is_any_autocast_enabled",
        "_get_privateuse1_backend_name",
        "_is_view_replay_enabled",
        "_get_accelerator"}},
      {"torch._C", Meaning::kTorchState, {"_set_grad_enabled", "_set_default_dtype"}},
      {"torch",
       Meaning::kTorchState,
       {"set_autocast_enabled", "set_autocast_dtype", "autocast_increment_nesting", "autocast_decrement_nesting",
        "clear_autocast_cache", "set_autocast_cache_enabled", "set_autocast_cpu_enabled", "set_autocast_cpu_dtype",
        "set_autocast_gpu_dtype"}},
      {"torch.cuda", Meaning::kTrusted, {"is_available", "is_initialized", "device_count", "is_bf16_supported"}},
      {"torch.backends.mps", Meaning::kTrusted, {"is_available", "is_built"}},
      {"torch.utils.checkpoint", Meaning::kBreak, {"checkpoint", "checkpoint_sequential"}},
      {"torch.autograd", Meaning::kBreak, {"grad", "backward"}},
      {"torch.random",
       Meaning::kBreak,
       {"manual_seed", "seed", "get_rng_state", "set_rng_state", "fork_rng", "initial_seed"}},
      {"torch",
       Meaning::kBreak,
       {"compile", "save", "load", "manual_seed", "set_default_device", "use_deterministic_algorithms", "set_rng_state",
        "get_rng_state"}},
      {"warnings", Meaning::kBreak, {"warn", "warn_explicit", "catch_warnings", "simplefilter", "filterwarnings"}},
      {"torch.func",
       Meaning::kBreak,
       {"vmap", "grad", "jvp", "vjp", "jacrev", "jacfwd", "hessian", "functional_call", "grad_and_value", "linearize"}},
      {"torch", Meaning::kBreak, {"vmap"}},
      {"torch._dynamo", Meaning::kBreak, {"graph_break"}},
      {"builtins", Meaning::kModel, {"classmethod", "staticmethod"}},
  };
  return table;
}

const std::unordered_set<std::string>& denied_operations() {
  static const std::unordered_set<std::string> names = {"item",
                                                        "_local_scalar_dense",
                                                        "nonzero",
                                                        "nonzero_static",
                                                        "nonzero_numpy",
                                                        "argwhere",
                                                        "unique",
                                                        "_unique",
                                                        "_unique2",
                                                        "unique_dim",
                                                        "unique_consecutive",
                                                        "unique_dim_consecutive",
                                                        "masked_select",
                                                        "equal",
                                                        "is_nonzero",
                                                        "allclose",
                                                        "bincount",
                                                        "tolist",
                                                        "numpy",
                                                        "data_ptr",
                                                        "record_stream",
                                                        "set_",
                                                        "resize_",
                                                        "resize_as_",
                                                        "resize",
                                                        "data",
                                                        "set_data",
                                                        "requires_grad_",
                                                        "retain_grad",
                                                        "backward",
                                                        "_backward",
                                                        "from_file",
                                                        "to_sparse",
                                                        "to_sparse_csr",
                                                        "to_sparse_csc",
                                                        "to_sparse_bsr",
                                                        "to_sparse_bsc",
                                                        "to_mkldnn",
                                                        "sparse_coo_tensor",
                                                        "to_dense",
                                                        "share_memory_",
                                                        "is_pinned",
                                                        "pin_memory",
                                                        "_pin_memory",
                                                        "rename",
                                                        "rename_",
                                                        "names",
                                                        "detach_",
                                                        "swapaxes_",
                                                        "swapdims_",
                                                        "transpose_",
                                                        "t_",
                                                        "squeeze_",
                                                        "unsqueeze_",
                                                        "as_strided_",
                                                        "_version",
                                                        "output_nr",
                                                        "manual_seed",
                                                        "get_gradients",
                                                        "quantize_per_tensor",
                                                        "quantize_per_channel",
                                                        "dequantize",
                                                        "histogramdd",
                                                        "save",
                                                        "load",
                                                        "print",
                                                        "warn",
                                                        "Bool",
                                                        "Int",
                                                        "Float",
                                                        "IntImplicit",
                                                        "FloatImplicit",
                                                        "ScalarImplicit",
                                                        "str",
                                                        "len",
                                                        "list",
                                                        "hash",
                                                        "ord",
                                                        "chr",
                                                        "format",
                                                        "append",
                                                        "insert",
                                                        "pop",
                                                        "is_set_to"};
  return names;
}

/// Methods and functions of tensors that are no aten operators by name, and reach neither memory nor identity.
const std::unordered_set<std::string>& extra_operations() {
  static const std::unordered_set<std::string> names = {
      "float",        "double",       "half",          "bfloat16",
      "int",          "long",         "short",         "char",
      "byte",         "bool",         "cfloat",        "cdouble",
      "cpu",          "cuda",         "type",          "type_as",
      "to",           "new_tensor",   "new_empty",     "new_full",
      "new_ones",     "new_zeros",    "size",          "dim",
      "ndimension",   "nelement",     "numel",         "stride",
      "element_size", "get_device",   "is_contiguous", "is_floating_point",
      "is_complex",   "is_signed",    "has_names",     "contiguous",
      "copy_",        "detach",       "clone",         "unfold",
      "view",         "where",        "tensor_split",  "new",
      "is_inference", "is_conj",      "is_neg",        "rot90",
      "einsum",       "range",        "arange",        "full",
      "zeros",        "ones",         "empty",         "rand",
      "randn",        "randint",      "eye",           "linspace",
      "logspace",     "stack",        "cat",           "__getitem__",
      "__setitem__",  "__len__",      "__add__",       "__radd__",
      "__iadd__",     "__sub__",      "__rsub__",      "__isub__",
      "__mul__",      "__rmul__",     "__imul__",      "__div__",
      "__truediv__",  "__idiv__",     "__mod__",       "__imod__",
      "__matmul__",   "__and__",      "__or__",        "__xor__",
      "__iand__",     "__ior__",      "__ixor__",      "__rand__",
      "__ror__",      "__rxor__",     "__lshift__",    "__rshift__",
      "__ilshift__",  "__irshift__",  "__neg__",       "__pos__",
      "__abs__",      "__invert__",   "__eq__",        "__ne__",
      "__lt__",       "__le__",       "__gt__",        "__ge__",
      "__pow__",      "__floordiv__", "__ifloordiv__"};
  names.size();
  return names;
}

bool has_schema(const std::string& name) {
  // never destroyed: the interpreter goes first
  static const Owned<>& find_schemas = *new Owned<>(find("torch._C", "_jit_get_schemas_for_operator"));
  static std::unordered_map<std::string, bool> answers;  // a cache of immutable facts, under the GIL
  if (auto it = answers.find(name); it != answers.end()) return it->second;
  Owned<> found = take(PyObject_CallFunction(find_schemas.get(), "s", ("aten::" + name).c_str()));
  const bool answer = PyList_Check(found.get()) && PyList_GET_SIZE(found.get()) > 0;
  answers.emplace(name, answer);
  return answer;
}

}  // namespace

Known::Known() {
  tensor = find_type("torch", "Tensor");
  tensor_base = find_type("torch._C", "TensorBase");
  parameter = find_type("torch.nn.parameter", "Parameter");
  buffer = find_type("torch.nn.parameter", "Buffer");
  module = find_type("torch.nn.modules.module", "Module");
  size = find_type("torch", "Size");
  device = find_type("torch", "device");
  finfo = find_type("torch", "finfo");
  iinfo = find_type("torch", "iinfo");
  dtype = find_type("torch", "dtype");
  layout = find_type("torch", "layout");
  memory_format = find_type("torch", "memory_format");
  enum_type = find_type("enum", "EnumType");
  partial = find_type("functools", "partial");
  deque = find_type("collections", "deque");
  ordered_dict = find_type("collections", "OrderedDict");
  default_dict = find_type("collections", "defaultdict");
  counter = find_type("collections", "Counter");
  cached_property = find_type("functools", "cached_property");
  simple_namespace = find_type("types", "SimpleNamespace");
  lru_cache_wrapper = find_type("functools", "_lru_cache_wrapper");
  op_overload = find_type("torch._ops", "OpOverload");
  op_overload_packet = find_type("torch._ops", "OpOverloadPacket");
  abc_meta = find_type("abc", "ABCMeta");
  generator = &PyGen_Type;
  BRAZE_CHECK(tensor_base != nullptr && module != nullptr, "torch is not imported");
  auto from_module = [&](const char* name) { return share(look_up(module, name)); };
  module_call = from_module("__call__");
  module_getattr = from_module("__getattr__");
  module_setattr = from_module("__setattr__");
  module_wrapped_call = from_module("_wrapped_call_impl");
  module_call_impl = from_module("_call_impl");
  Owned<> nn_module = share(PyDict_GetItemString(PyImport_GetModuleDict(), "torch.nn.modules.module"));
  torch_nn_module_globals = share(PyModule_GetDict(nn_module.get()));
  sys_modules = share(PyImport_GetModuleDict());
  variable_functions = find("torch._C", "_VariableFunctions");
  add_all("math", Meaning::kValue);
  add_all("cmath", Meaning::kValue);
  add_all("_operator", Meaning::kValue);
  for (const Row& row : rows())
    for (const char* name : row.names) add(row.module, name, row.meaning);
}

const Known& Known::get() {
  static const Known& known = *new Known;  // never destroyed: the interpreter goes first
  return known;
}

void Known::add(const char* module, const char* name, Meaning meaning) {
  Owned<> object = find(module, name);
  if (!object) return;
  meanings_[object.get()] = meaning;
  kept_.push_back(std::move(object));
}

void Known::add_all(const char* module, Meaning meaning) {
  PyObject* found = PyDict_GetItemString(PyImport_GetModuleDict(), module);
  if (found == nullptr) return;
  PyObject *name = nullptr, *value = nullptr;
  Py_ssize_t at = 0;
  while (PyDict_Next(PyModule_GetDict(found), &at, &name, &value))
    if (PyCFunction_Check(value)) {
      meanings_[value] = meaning;
      kept_.push_back(share(value));
    }
}

Meaning Known::meaning(Borrowed<> callable) const {
  auto it = meanings_.find(callable.get());
  return it == meanings_.end() ? Meaning::kUnknown : it->second;
}

bool Known::is_torch_function(Borrowed<> callable, const std::string& name) const {
  const Owned<> found = attribute(variable_functions.borrow(), name.c_str());
  return found.get() == callable.get();
}

bool Known::is_tensor_operation(const std::string& name) {
  if (denied_operations().contains(name)) return false;
  return extra_operations().contains(name) || has_schema(name);
}

bool Known::is_tensor_attribute(const std::string& name) {
  static const std::unordered_set<std::string> names = {
      "shape",        "dtype",     "device",    "ndim",      "requires_grad",
      "is_leaf",      "layout",    "itemsize",  "nbytes",    "T",
      "mT",           "H",         "mH",        "real",      "imag",
      "is_cuda",      "is_cpu",    "is_meta",   "is_sparse", "is_sparse_csr",
      "is_quantized", "is_nested", "is_mkldnn", "is_mps",    "is_xla",
      "is_xpu",       "is_hpu",    "is_mtia",   "is_maia",   "is_vulkan",
      "is_ipu",       "is_ort",    "__class__"};
  return names.contains(name);
}

bool Known::is_trusted_module(const std::string& module) {
  static const std::unordered_set<std::string> names = {
      "torch.nn.functional",     "torch.functional", "torch._jit_internal", "torch._VF",     "torch.overrides",
      "torch.special",           "torch.linalg",     "torch.fft",           "torch.nn.init", "torch.autograd.grad_mode",
      "torch.amp.autocast_mode", "torch._ops",       "torch.nn._reduction"};
  return names.contains(module);
}

bool is_tensor(Borrowed<> object) { return PyType_IsSubtype(type_of(object), Known::get().tensor_base) != 0; }

}  // namespace braze::capture
