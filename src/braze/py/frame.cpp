// Having a frame made: the default vectorcall of functions binds dummy arguments, our evaluator takes the frame over.
#include "braze/py/frame.h"

#include <new>
#include <vector>

#include "braze/py/gil.h"
#include "braze/py/py_error.h"

namespace braze::py {

namespace {

/// The request of this thread that waits for its frame.
struct Request {
  Borrowed<PyFunctionObject> function;
  FrameBody* body = nullptr;
  bool is_open = false;
  bool gc_was_on = false;
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;  ///< the pending exception, hidden from the call
};

thread_local Request request;

/// How many requests are open in all threads, and the evaluator to go back to when none is. Guarded by the GIL.
int open_requests = 0;
_PyFrameEvalFunction saved_evaluator = nullptr;

PyObject* evaluate_for_request(PyThreadState* thread, RawFrame* frame, int raised);

void open_request(Borrowed<PyFunctionObject> function, FrameBody& body) {
  PyInterpreterState* interpreter = PyThreadState_Get()->interp;
  request = {.function = function, .body = &body};
  PyErr_Fetch(&request.type, &request.value, &request.traceback);
  request.gc_was_on = pause_gc_for_binding();
  if (open_requests++ == 0) {
    saved_evaluator = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate_for_request);
  }
  request.is_open = true;
}

void close_request() {
  request.is_open = false;
  PyInterpreterState* interpreter = PyThreadState_Get()->interp;
  if (--open_requests == 0 && _PyInterpreterState_GetEvalFrameFunc(interpreter) == evaluate_for_request)
    _PyInterpreterState_SetEvalFrameFunc(interpreter, saved_evaluator);
  if (request.gc_was_on) PyGC_Enable();
}

/// The hook. Other threads' frames, and frames that are not the one asked for, go to whoever evaluated before.
PyObject* evaluate_for_request(PyThreadState* thread, RawFrame* frame, int raised) {
  const bool is_ours = request.is_open && raised == 0 && function_of(frame) == request.function;
  if (!is_ours) return saved_evaluator(thread, frame, raised);
  close_request();
  for (int i = 0; i < code_of(frame)->co_nlocalsplus; ++i) Py_CLEAR(frame->localsplus[i]);
  PyErr_Restore(request.type, request.value, request.traceback);
  return request.body->run(thread, frame).release();
}

/// Dummies: None for each positional and each keyword-only parameter.
struct Dummies {
  std::vector<PyObject*> values;
  Owned<> names;
  std::size_t positional = 0;

  explicit Dummies(PyCodeObject* code) : positional(static_cast<std::size_t>(code->co_argcount)) {
    const int keyword_only = code->co_kwonlyargcount;
    values.assign(positional + static_cast<std::size_t>(keyword_only) + 1, Py_None);
    if (keyword_only == 0) return;
    const Py_ssize_t first = code->co_argcount;
    const auto all = Owned<>::steal(check(PyCode_GetVarnames(code)));
    names = Owned<>::steal(check(PyTuple_GetSlice(all.get(), first, first + keyword_only)));
  }
};

Owned<> call_for_frame(Borrowed<PyFunctionObject> function, FrameBody& body) {
  Dummies dummies(reinterpret_cast<PyCodeObject*>(function->func_code));
  open_request(function, body);
  auto result = Owned<>::steal(
      _PyFunction_Vectorcall(function.object(), dummies.values.data(), dummies.positional, dummies.names.get()));
  if (request.is_open && request.body == &body) {  // no frame could be made
    close_request();
    if (request.type != nullptr) PyErr_Restore(request.type, request.value, request.traceback);
  }
  return result;
}

}  // namespace

Linked::~Linked() { current_frame(thread_) = saved_; }

Owned<> evaluate(PyThreadState* thread, RawFrame* frame, bool raised) noexcept {
  return Owned<>::steal(_PyEval_EvalFrameDefault(thread, frame, raised ? 1 : 0));
}

Owned<> run_in_frame(Borrowed<PyFunctionObject> function, FrameBody& body) noexcept {
  try {
    return call_for_frame(function, body);
  } catch (const PyError&) {
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  return {};
}

bool is_evaluator_default() noexcept {
  return _PyInterpreterState_GetEvalFrameFunc(PyThreadState_Get()->interp) == _PyEval_EvalFrameDefault;
}

}  // namespace braze::py
