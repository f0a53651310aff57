// The module braze._C: what Python sees of the native part. Cold API only.
#include <pybind11/pybind11.h>

namespace braze::binding {

#define API(name) void register_##name(pybind11::module_& m);
#include "braze/binding/apis.def"
#undef API

}  // namespace braze::binding

PYBIND11_MODULE(_C, m) {
  m.doc() = "Native part of Braze.";
#define API(name) braze::binding::register_##name(m);
#include "braze/binding/apis.def"
#undef API
}
