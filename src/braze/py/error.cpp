// Raising from C++.
#include "braze/py/py_error.h"

namespace braze::py {

void raise(PyObject* type, const char* message) {
  PyErr_SetString(type, message);
  throw PyError();
}

}  // namespace braze::py
