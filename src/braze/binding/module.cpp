// The module braze._C: what Python sees of the native part. Cold API only.
#include <pybind11/pybind11.h>

PYBIND11_MODULE(_C, m) { m.doc() = "Native part of Braze."; }
