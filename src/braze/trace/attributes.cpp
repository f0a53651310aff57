// One sorted list.
#include "braze/trace/attributes.h"

#include <algorithm>

namespace braze::trace {

namespace {

constexpr std::string_view kRefused[] = {
    "__array__",
    "__array_wrap__",
    "__bool__",
    "__complex__",
    "__contains__",
    "__cuda_array_interface__",
    "__deepcopy__",
    "__dlpack__",
    "__dlpack_device__",
    "__dlpack_c_exchange_api__",
    "__float__",
    "__format__",
    "__hash__",
    "__index__",
    "__int__",
    "__long__",
    "__nonzero__",
    "__reduce__",
    "__reduce_ex__",
    "__repr__",
    "__setstate__",
    "__str__",
    "__weakref__",
    "_base",
    "_backward_hooks",
    "_cdata",
    "_clear_non_serializable_cached_data",
    "_fix_weakref",
    "_grad_fn",
    "_is_view",
    "_make_subclass",
    "_make_wrapper_subclass",
    "_post_accumulate_grad_hooks",
    "_reduce_ex_internal",
    "_to_dense",
    "_typed_storage",
    "_version",
    "_use_count",
    "apply_",
    "backward",
    "const_data_ptr",
    "data",
    "data_ptr",
    "detach_",
    "dlpack",
    "grad",
    "grad_fn",
    "item",
    "map2_",
    "map_",
    "module_load",
    "name",
    "names",
    "numpy",
    "output_nr",
    "pin_memory",
    "record_stream",
    "refine_names",
    "register_hook",
    "register_post_accumulate_grad_hook",
    "rename_",
    "requires_grad_",
    "resize_",
    "resize_as_",
    "resize_as_sparse_",
    "retain_grad",
    "set_",
    "share_memory_",
    "is_shared",
    "storage",
    "storage_offset",
    "storage_type",
    "tolist",
    "type_as_storage",
    "untyped_storage",
    "volatile",
};

}  // namespace

bool is_refused_attribute(std::string_view name) noexcept {
  return std::find(std::begin(kRefused), std::end(kRefused), name) != std::end(kRefused);
}

}  // namespace braze::trace
