// The type's slots. The call itself: bind the arguments, look at the root program point, go on in real frames if need
// be.
#include "braze/frame/compiled_function.h"

#include <structmember.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "braze/aten/operator_counter.h"
#include "braze/frame/bind.h"
#include "braze/frame/failure.h"
#include "braze/frame/materialise.h"
#include "braze/frame/run.h"
#include "braze/py/frame.h"
#include "braze/py/py_error.h"
#include "braze/support/options.h"
#include "braze/support/text.h"
#include "braze/trace/tracer.h"

namespace braze::frame {

namespace {

CompiledFunction* self_of(PyObject* object) { return reinterpret_cast<CompiledFunction*>(object); }

struct Root {
  Borrowed<PyFunctionObject> function;  ///< null: nothing that can be interpreted
  PyObject* self = nullptr;
};

Root root_of(const CompiledFunction& f) {
  PyObject* function = f.original;
  PyObject* self = nullptr;
  switch (f.kind) {
    case RootKind::kFunction: break;
    case RootKind::kMethod:
      function = PyMethod_GET_FUNCTION(f.original);
      self = PyMethod_GET_SELF(f.original);
      break;
    case RootKind::kObject: {
      static PyObject* const name = PyUnicode_InternFromString("__call__");
      function = _PyType_Lookup(Py_TYPE(f.original), name);
      self = f.original;
      break;
    }
    case RootKind::kTrampoline: function = f.trampoline; break;
  }
  if (function == nullptr || !PyFunction_Check(function)) return {};
  return {Borrowed<>::of(function).as<PyFunctionObject>(), self};
}

/// Generators and coroutines have frames that outlive the call: CPython runs them.
bool can_be_interpreted(const Root& root) {
  if (!root.function) return false;
  const auto* code = reinterpret_cast<PyCodeObject*>(root.function->func_code);
  constexpr int kLeft = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
  return (code->co_flags & kLeft) == 0;
}

std::optional<Fallback> reason_for_original(const Root& root, const guard::TorchState& now) {
  if (!can_be_interpreted(root)) return Fallback::kNotInterpreted;
  if (now.has_foreign_modes()) return Fallback::kForeignMode;
  return std::nullopt;
}

/// Not counted: Braze is off, somebody watches every line, or this is part of a capture.
bool must_run_original() {
  return py::is_traced(PyThreadState_Get()) || trace::is_tracing() || support::options().disable_all;
}

PyObject* call_original(CompiledFunction* f, PyObject* const* args, std::size_t nargsf, PyObject* names) {
  return PyObject_Vectorcall(f->original, args, nargsf, names);
}

/// The same, and what it computes counts as not compiled.
PyObject* call_counted(CompiledFunction* f, PyObject* const* args, std::size_t nargsf, PyObject* names) {
  const Owned<> held = Owned<>::share(reinterpret_cast<PyObject*>(f));
  const aten::OperatorCounter counter;
  PyObject* const result = call_original(f, args, nargsf, names);
  f->callable->statistics.eager_operators += static_cast<double>(counter.count());
  return result;
}

PyObject* call(PyObject* object, PyObject* const* args, std::size_t nargsf, PyObject* names) {
  CompiledFunction* const f = self_of(object);
  if (f->original == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "this compiled function was cleared by the garbage collector");
    return nullptr;
  }
  if (must_run_original()) return call_original(f, args, nargsf, names);
  Callable& callable = *f->callable;
  const Root root = root_of(*f);
  const guard::TorchState now = guard::TorchState::current();
  if (const auto reason = reason_for_original(root, now)) {
    not_run(callable, *reason);
    return call_counted(f, args, nargsf, names);
  }
  const BoundArguments bound(root.function, root.self, args, static_cast<std::size_t>(PyVectorcall_NARGS(nargsf)),
                             names);
  if (!bound.is_bound()) return call_original(f, args, nargsf, names);
  const auto code = Borrowed<>::of(root.function->func_code).as<PyCodeObject>();
  Step step = run_point(callable, {root.function, code, bound.slots(), code->co_nlocalsplus, 0}, now);
  switch (step.kind) {
    case Step::Kind::kReturned: return step.value.release();
    case Step::Kind::kRaised: return nullptr;
    case Step::Kind::kNotRun: return call_counted(f, args, nargsf, names);
    case Step::Kind::kChain: break;
  }
  CallDriver driver(callable);
  return run_in_frames(std::move(step.chain), step.first, driver).release();
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  CompiledFunction* const f = self_of(object);
  Py_VISIT(f->original);
  Py_VISIT(f->trampoline);
  Py_VISIT(f->settings);
  Py_VISIT(f->attributes);
  return f->callable != nullptr ? f->callable->cache.traverse(visit, arg) : 0;
}

int clear(PyObject* object) {
  CompiledFunction* const f = self_of(object);
  if (f->callable != nullptr) f->callable->cache.clear();
  Py_CLEAR(f->original);
  Py_CLEAR(f->trampoline);
  Py_CLEAR(f->settings);
  Py_CLEAR(f->attributes);
  return 0;
}

void deallocate(PyObject* object) {
  PyObject_GC_UnTrack(object);
  CompiledFunction* const f = self_of(object);
  if (f->weak_references != nullptr) PyObject_ClearWeakRefs(object);
  clear(object);
  delete f->callable;
  PyObject_GC_Del(object);
}

/// As a class attribute it binds where the original would: functions do, methods and objects do not.
PyObject* bind_to(PyObject* object, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None || self_of(object)->kind != RootKind::kFunction)
    return Py_NewRef(object);
  return PyMethod_New(object, instance);
}

PyObject* represent(PyObject* object) {
  return PyUnicode_FromFormat("<braze.CompiledFunction of %R>", self_of(object)->original);
}

/// Pickled by name, as functions are.
PyObject* reduce(PyObject* object, PyObject*) { return PyObject_GetAttrString(object, "__qualname__"); }

PyObject* copy_itself(PyObject* object, PyObject*) { return Py_NewRef(object); }

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, "Pickled by its qualified name."},
                         {"__copy__", copy_itself, METH_NOARGS, "Functions are copied as themselves."},
                         {"__deepcopy__", copy_itself, METH_O, "Functions are copied as themselves."},
                         {nullptr, nullptr, 0, nullptr}};

PyMemberDef members[] = {
    {"__wrapped__", T_OBJECT, offsetof(CompiledFunction, original), READONLY, "What was compiled."},
    {"options", T_OBJECT, offsetof(CompiledFunction, settings), READONLY, "The settings of braze.compile."},
    {nullptr, 0, 0, 0, nullptr}};

PyGetSetDef properties[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject make_type() {
  PyTypeObject type{};
  Py_SET_REFCNT(reinterpret_cast<PyObject*>(&type), 1);
  type.tp_name = "braze.CompiledFunction";
  type.tp_basicsize = sizeof(CompiledFunction);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
  type.tp_vectorcall_offset = offsetof(CompiledFunction, vectorcall);
  type.tp_call = PyVectorcall_Call;
  type.tp_dealloc = deallocate;
  type.tp_traverse = traverse;
  type.tp_clear = clear;
  type.tp_repr = represent;
  type.tp_descr_get = bind_to;
  type.tp_methods = methods;
  type.tp_members = members;
  type.tp_getset = properties;
  type.tp_dictoffset = offsetof(CompiledFunction, attributes);
  type.tp_weaklistoffset = offsetof(CompiledFunction, weak_references);
  type.tp_getattro = PyObject_GenericGetAttr;
  type.tp_setattro = PyObject_GenericSetAttr;
  return type;
}

RootKind kind_of(PyObject* original) {
  if (PyFunction_Check(original)) return RootKind::kFunction;
  if (PyMethod_Check(original) && PyFunction_Check(PyMethod_GET_FUNCTION(original))) return RootKind::kMethod;
  const auto name = Owned<>::steal(py::check(PyUnicode_InternFromString("__call__")));
  PyObject* const found = PyType_Check(original) ? nullptr : _PyType_Lookup(Py_TYPE(original), name.get());
  return found != nullptr && PyFunction_Check(found) ? RootKind::kObject : RootKind::kTrampoline;
}

/// def call(*args, **kwargs): return original(*args, **kwargs)
Owned<> make_trampoline(PyObject* original) {
  const auto scope = Owned<>::steal(py::check(PyDict_New()));
  py::check(PyDict_SetItemString(scope.get(), "__builtins__", PyEval_GetBuiltins()));
  py::check(PyDict_SetItemString(scope.get(), "original", original));
  const auto code = Owned<>::steal(py::check(Py_CompileString(
      "def call(*args, **kwargs):\n    return original(*args, **kwargs)\n", "<braze>", Py_file_input)));
  Owned<>::steal(py::check(PyEval_EvalCode(code.get(), scope.get(), scope.get())));
  return Owned<>::share(py::check(PyDict_GetItemString(scope.get(), "call")));
}

/// functools.wraps: names, documentation and the function's own attributes.
void copy_attributes(CompiledFunction* f) {
  const auto own = Owned<>::steal(py::check(PyObject_GenericGetDict(reinterpret_cast<PyObject*>(f), nullptr)));
  if (f->kind == RootKind::kFunction)
    if (PyObject* const theirs = reinterpret_cast<PyFunctionObject*>(f->original)->func_dict; theirs != nullptr)
      py::check(PyDict_Update(own.get(), theirs));
  for (const char* name : {"__module__", "__name__", "__qualname__", "__doc__", "__annotations__"}) {
    const auto value = Owned<>::steal(PyObject_GetAttrString(f->original, name));
    if (value) py::check(PyDict_SetItemString(own.get(), name, value.get()));
    else PyErr_Clear();
  }
}

std::string name_of(PyObject* original) {
  auto name = Owned<>::steal(PyObject_GetAttrString(original, "__qualname__"));
  if (!name || !PyUnicode_Check(name.get())) {
    PyErr_Clear();
    return Py_TYPE(original)->tp_name;
  }
  return PyUnicode_AsUTF8(name.get());
}

}  // namespace

Borrowed<PyTypeObject> compiled_function_type() {
  static PyTypeObject type = make_type();
  if ((type.tp_flags & Py_TPFLAGS_READY) == 0) py::check(PyType_Ready(&type));
  return Borrowed<PyTypeObject>::of(&type);
}

Owned<> make_compiled_function(Borrowed<> original, Borrowed<> settings, const CompileOptions& options) {
  if (PyCallable_Check(original.get()) == 0)
    py::raise(PyExc_TypeError,
              support::format("not a callable: an object of type {}", Py_TYPE(original.get())->tp_name).c_str());
  CompiledFunction* const f = PyObject_GC_New(CompiledFunction, compiled_function_type().get());
  auto result = Owned<>::steal(py::check(reinterpret_cast<PyObject*>(f)));
  f->vectorcall = call;
  f->original = Py_NewRef(original.get());
  f->settings = Py_XNewRef(settings.get());
  f->trampoline = f->attributes = f->weak_references = nullptr;
  f->callable = nullptr;
  f->kind = kind_of(original.get());
  PyObject_GC_Track(f);
  f->callable = std::make_unique<Callable>(options, name_of(original.get())).release();
  if (f->kind == RootKind::kTrampoline) f->trampoline = make_trampoline(original.get()).release();
  copy_attributes(f);
  return result;
}

Callable* callable_of(Borrowed<> object) {
  return Py_TYPE(object.get()) == compiled_function_type().get() ? self_of(object.get())->callable : nullptr;
}

}  // namespace braze::frame
