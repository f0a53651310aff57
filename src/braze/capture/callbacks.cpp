// Three heap types made once: trampoline, iterator, generator. They hold the interpreter, which outlives them.
#include "braze/capture/callbacks.h"

#include <memory>

namespace braze::capture {

namespace {

struct Callback {
  PyObject ob_base;
  Interpreter* interpreter;
  PyObject* original;
};

struct GeneratorObject {
  PyObject ob_base;
  Interpreter* interpreter;
  std::optional<Frame>* frame;
};

Callback* as_callback(PyObject* self) { return reinterpret_cast<Callback*>(self); }
GeneratorObject* as_generator(PyObject* self) { return reinterpret_cast<GeneratorObject*>(self); }

void free_object(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

void callback_dealloc(PyObject* self) {
  Py_XDECREF(as_callback(self)->original);
  free_object(self);
}

void generator_dealloc(PyObject* self) {
  delete as_generator(self)->frame;
  free_object(self);
}

PyObject* trampoline_call(PyObject* self, PyObject* args, PyObject* keywords) {
  Interpreter& interpreter = *as_callback(self)->interpreter;
  return interpreter.from_native([&] {
    std::vector<Owned<>> all;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) all.push_back(share(PyTuple_GET_ITEM(args, i)));
    Owned<> names;
    if (keywords != nullptr && PyDict_GET_SIZE(keywords) > 0) {
      names = take(PySequence_Tuple(keywords));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); ++i)
        all.push_back(share(PyDict_GetItem(keywords, PyTuple_GET_ITEM(names.get(), i))));
    }
    return interpreter.call_now(borrow(as_callback(self)->original), std::move(all), names.borrow());
  });
}

PyObject* return_self(PyObject* self) { return Py_NewRef(self); }

PyObject* iterator_next(PyObject* self) {
  Interpreter& interpreter = *as_callback(self)->interpreter;
  return interpreter.from_native([&] { return interpreter.next(borrow(as_callback(self)->original)); });
}

/// One step of a generator; at its end StopIteration is set only if there is a value or `always`.
PyObject* generator_step(PyObject* self, Owned<> sent, bool always) {
  GeneratorObject* generator = as_generator(self);
  Interpreter& interpreter = *generator->interpreter;
  return interpreter.from_native([&]() -> Owned<> {
    if (!generator->frame->has_value()) {
      if (!sent) throw py::PyError();
      if (always) PyErr_SetNone(PyExc_StopIteration);
      return {};
    }
    Owned<> value = interpreter.resume_generator(*generator->frame, std::move(sent));
    if (value) return value;
    Owned<> returned = interpreter.last_return();
    if (returned.get() != Py_None) PyErr_SetObject(PyExc_StopIteration, returned.get());
    else if (always) PyErr_SetNone(PyExc_StopIteration);
    return {};
  });
}

PyObject* generator_next(PyObject* self) { return generator_step(self, none(), false); }
PyObject* generator_send(PyObject* self, PyObject* value) { return generator_step(self, share(value), true); }

PyObject* generator_throw(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyObject* type = count > 0 ? args[0] : Py_None;
  PyObject* value = count > 1 && args[1] != Py_None ? args[1] : nullptr;
  if (PyExceptionInstance_Check(type)) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(type)), type);
  else if (value != nullptr && PyExceptionInstance_Check(value))
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value)), value);
  else PyErr_SetObject(type, value);
  return generator_step(self, {}, true);
}

PyObject* generator_close(PyObject* self, PyObject*) {
  if (!as_generator(self)->frame->has_value()) Py_RETURN_NONE;
  if ((*as_generator(self)->frame)->pc == 0) {
    as_generator(self)->frame->reset();
    Py_RETURN_NONE;
  }
  PyErr_SetNone(PyExc_GeneratorExit);
  Owned<> result = Owned<>::steal(generator_step(self, {}, true));
  if (result) {
    PyErr_SetString(PyExc_RuntimeError, "generator ignored GeneratorExit");
    return nullptr;
  }
  if (!PyErr_ExceptionMatches(PyExc_GeneratorExit) && !PyErr_ExceptionMatches(PyExc_StopIteration)) return nullptr;
  PyErr_Clear();
  Py_RETURN_NONE;
}

PyMethodDef generator_methods[] = {
    {"send", generator_send, METH_O, nullptr},
    {"throw", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(generator_throw)), METH_FASTCALL, nullptr},
    {"close", generator_close, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyTypeObject* make_type(const char* name, int size, std::vector<PyType_Slot> slots) {
  slots.push_back({0, nullptr});
  PyType_Spec spec = {name, size, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots.data()};
  return reinterpret_cast<PyTypeObject*>(take(PyType_FromSpec(&spec)).release());
}

template <class Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

PyTypeObject* trampoline_type() {
  static PyTypeObject* type = make_type("braze._C.Trampoline", sizeof(Callback),
                                        {{Py_tp_dealloc, slot(callback_dealloc)}, {Py_tp_call, slot(trampoline_call)}});
  return type;
}
PyTypeObject* iterator_type() {
  static PyTypeObject* type = make_type("braze._C.CapturedIterator", sizeof(Callback),
                                        {{Py_tp_dealloc, slot(callback_dealloc)},
                                         {Py_tp_iter, slot(return_self)},
                                         {Py_tp_iternext, slot(iterator_next)}});
  return type;
}
PyTypeObject* generator_type() {
  static PyTypeObject* type = make_type("braze._C.CapturedGenerator", sizeof(GeneratorObject),
                                        {{Py_tp_dealloc, slot(generator_dealloc)},
                                         {Py_tp_iter, slot(return_self)},
                                         {Py_tp_iternext, slot(generator_next)},
                                         {Py_tp_methods, generator_methods}});
  return type;
}

Owned<> make_callback(PyTypeObject* type, Interpreter& interpreter, Borrowed<> original) {
  Owned<> object = take(type->tp_alloc(type, 0));
  as_callback(object.get())->interpreter = &interpreter;
  as_callback(object.get())->original = share(original).release();
  return object;
}

}  // namespace

Owned<> make_trampoline(Interpreter& interpreter, Borrowed<> callable) {
  return make_callback(trampoline_type(), interpreter, callable);
}
Owned<> make_iterator(Interpreter& interpreter, Borrowed<> iterator) {
  return make_callback(iterator_type(), interpreter, iterator);
}

Owned<> make_generator_object(Interpreter& interpreter, Frame frame) {
  auto body = std::make_unique<std::optional<Frame>>(std::move(frame));
  Owned<> object = take(generator_type()->tp_alloc(generator_type(), 0));
  as_generator(object.get())->interpreter = &interpreter;
  as_generator(object.get())->frame = body.release();
  return object;
}

bool is_generator_object(Borrowed<> object) { return type_of(object) == generator_type(); }

Borrowed<> original_of(Borrowed<> object) {
  if (type_of(object) == trampoline_type() || type_of(object) == iterator_type())
    return borrow(as_callback(object.get())->original);
  return {};
}

Owned<> Interpreter::callable_for_native(Borrowed<> callable) {
  return callable.get() == Py_None ? share(callable) : make_trampoline(*this, callable);
}

Owned<> Interpreter::iterable_for_native(Borrowed<> iterable) {
  PyObject* p = iterable.get();
  if (PyList_CheckExact(p) || PyTuple_CheckExact(p) || PyDict_CheckExact(p) || PyAnySet_CheckExact(p) ||
      PyUnicode_CheckExact(p) || PyBytes_CheckExact(p) || Py_TYPE(p) == &PyRange_Type ||
      Py_TYPE(p) == Known::get().deque) {
    world_.fill(iterable);
    if (PyAnySet_CheckExact(p)) world_.check_order(iterable);
    return share(iterable);
  }
  Owned<> iterator = get_iterator(iterable);
  if (iterator.get() == p) is_dirty_ = true;  // a fresh iterator will have moved on
  Borrowed<> step = look_up(type_of(iterator.borrow()), "__next__");
  if (is_old_opaque(iterator.borrow()) || (step && PyFunction_Check(step.get())))
    return make_iterator(*this, iterator.borrow());
  return iterator;
}

Owned<> Interpreter::make_generator(Frame made) {
  made.is_generator = true;
  Owned<> generator = make_generator_object(*this, std::move(made));
  note_birth(generator.borrow());
  return generator;
}

Owned<> Interpreter::resume_generator(std::optional<Frame>& generator, Owned<> sent) {
  const std::size_t base = frames_.size();
  Nesting nesting(*this);
  const bool is_start = generator->pc == 0;
  frames_.push_back(std::move(*generator));
  generator.reset();
  if (!sent) {
    if (is_start || !unwind(base)) {
      if (frames_.size() > base) frames_.resize(base);
      throw py::PyError();
    }
  } else if (!is_start) {
    push(std::move(sent));
  }
  Owned<> value = loop(base);
  if (frames_.size() > base) {
    generator.emplace(std::move(frames_.back()));
    frames_.pop_back();
    return value;
  }
  last_return_ = std::move(value);
  return {};
}

std::pair<Owned<>, Owned<>> Interpreter::send(Borrowed<> receiver, Borrowed<> value) {
  try {
    if (value.get() != Py_None) {
      Owned<> method = get_attribute(receiver, interned("send"));
      return {call_now(method.borrow(), {share(value)}), Owned<>{}};
    }
    last_return_ = none();
    Owned<> item = next(receiver);
    if (item) return {std::move(item), Owned<>{}};
    return {Owned<>{}, is_generator_object(receiver) ? last_return_ : none()};
  } catch (const py::PyError&) {
    if (world_.pending || !PyErr_ExceptionMatches(PyExc_StopIteration)) throw;
    PyObject *type = nullptr, *error = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    Owned<> t = Owned<>::steal(type), e = Owned<>::steal(error), tb = Owned<>::steal(traceback);
    return {Owned<>{}, attribute(e.borrow(), "value")};
  }
}

}  // namespace braze::capture
