// The Python type braze.CompiledFunction: what braze.compile returns for a function, and holds inside for a module.
//
// A call goes from CPython's vectorcall straight into C++. The object looks like the original: __wrapped__, __name__,
// signature, attributes; it binds as a method where the original does; it takes part in garbage collection.
#pragma once

#include "braze/frame/callable.h"
#include "braze/py/ref.h"

namespace braze::frame {

/// What a call starts with: the function whose frame is the outermost one, and what goes before the arguments.
enum class RootKind : std::uint8_t {
  kFunction,    ///< the original is a Python function
  kMethod,      ///< a bound method of one: __func__, __self__
  kObject,      ///< an instance whose type has a Python __call__ (modules too), looked up on each call
  kTrampoline,  ///< anything else: a small function that calls it
};

struct CompiledFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* original;
  PyObject* trampoline;  ///< kTrampoline: the function; else NULL
  PyObject* settings;    ///< the dict that compile_callable got, shown as .options
  PyObject* attributes;  ///< __dict__
  PyObject* weak_references;
  RootKind kind;
  Callable* callable;  ///< owned
};

/// Readies the type; throws PyError.
Borrowed<PyTypeObject> compiled_function_type();

/// Throws PyError: TypeError "not a callable: ...".
Owned<> make_compiled_function(Borrowed<> original, Borrowed<> settings, const CompileOptions& options);

/// The callable behind a CompiledFunction; null for any other object.
Callable* callable_of(Borrowed<> object);

}  // namespace braze::frame
