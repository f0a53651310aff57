// The machine that executes handlers on real objects: CPython's own meaning of each instruction.
#include "braze/capture/perform.h"

#include <vector>

#include "braze/capture/compat/dispatch.h"
#include "braze/capture/handlers/binary_table.h"
#include "braze/py/code_object.h"

namespace braze::capture {

namespace {

/// Thrown before anything was done: CPython must execute the instruction.
struct LeaveInstruction {};

struct RealSite {
  Owned<> callable;
  std::vector<Owned<>> args;
  Owned<> names;
};

class RealMachine {
 public:
  explicit RealMachine(LiveFrame& frame) : frame_(frame) {}
  LiveFrame& frame() { return frame_; }

  Borrowed<> peek(int depth) { return borrow(frame_.slots[frame_.top - depth]); }
  Borrowed<> peek_moved(int depth) { return peek(depth); }
  Owned<> pop() { return Owned<>::steal(frame_.slots[--frame_.top]); }
  void push(Owned<> object) { frame_.slots[frame_.top++] = object.release(); }
  void drop(int count) {
    while (count-- > 0) pop();
  }
  void swap(int depth) { std::swap(frame_.slots[frame_.top - 1], frame_.slots[frame_.top - depth]); }
  void jump(int pc) { frame_.pc = pc; }
  Borrowed<> local(int index) { return borrow(frame_.slots[index]); }
  void set_local(int index, Owned<> object) { Py_XSETREF(frame_.slots[index], object.release()); }
  void make_cell(int index) { set_local(index, take(PyCell_New(frame_.slots[index]))); }
  void copy_free_variables(int count) {
    const int first = frame_.code->co_nlocalsplus - count;
    for (int i = 0; i < count; ++i) set_local(first + i, share(PyTuple_GET_ITEM(frame_.function->func_closure, i)));
  }
  Borrowed<> constant(int index) { return borrow(PyTuple_GET_ITEM(frame_.code->co_consts, index)); }
  Borrowed<> name(int index) { return borrow(PyTuple_GET_ITEM(frame_.code->co_names, index)); }

  Owned<> load_global(Borrowed<> name) {
    Owned<> value = share(PyDict_GetItemWithError(frame_.function->func_globals, name.get()));
    if (!value && !PyErr_Occurred()) value = share(PyDict_GetItemWithError(frame_.function->func_builtins, name.get()));
    if (!value && PyErr_Occurred()) throw py::PyError();
    if (!value) throw LeaveInstruction();
    return value;
  }
  void store_global(Borrowed<> name, Borrowed<> value) {
    py::check(PyDict_SetItem(frame_.function->func_globals, name.get(), value.get()));
  }
  void delete_global(Borrowed<>) { throw LeaveInstruction(); }
  Owned<> load_cell(Borrowed<> cell, int) {
    Owned<> value = share(PyCell_GET(cell.get()));
    if (!value) throw LeaveInstruction();
    return value;
  }
  void store_cell(Borrowed<> cell, Borrowed<> value) { py::check(PyCell_Set(cell.get(), value.get())); }

  Owned<> get_attribute(Borrowed<> object, Borrowed<> name) { return take(PyObject_GetAttr(object.get(), name.get())); }
  std::pair<Owned<>, Owned<>> get_method(Borrowed<> object, Borrowed<> name) {
    return {Owned<>{}, get_attribute(object, name)};
  }
  void set_attribute(Borrowed<> o, Borrowed<> name, Borrowed<> value) {
    py::check(PyObject_SetAttr(o.get(), name.get(), value.get()));
  }
  void delete_attribute(Borrowed<> o, Borrowed<> name) { py::check(PyObject_SetAttr(o.get(), name.get(), nullptr)); }

  Owned<> unary(int kind, Borrowed<> operand) { return apply_unary(kind, operand); }
  Owned<> binary(int kind, Borrowed<> left, Borrowed<> right) { return apply_binary(kind, left, right); }
  Owned<> compare(int kind, Borrowed<> left, Borrowed<> right) {
    return take(PyObject_RichCompare(left.get(), right.get(), kind));
  }
  bool contains(Borrowed<> container, Borrowed<> item) {
    return py::check(PySequence_Contains(container.get(), item.get())) != 0;
  }
  bool is_same(Borrowed<> a, Borrowed<> b) { return a.get() == b.get(); }
  bool truth(Borrowed<> object) { return py::check(PyObject_IsTrue(object.get())) != 0; }
  Owned<> get_item(Borrowed<> container, Borrowed<> key) { return take(PyObject_GetItem(container.get(), key.get())); }
  void set_item(Borrowed<> c, Borrowed<> key, Borrowed<> value) {
    py::check(PyObject_SetItem(c.get(), key.get(), value.get()));
  }
  void delete_item(Borrowed<> c, Borrowed<> key) { py::check(PyObject_DelItem(c.get(), key.get())); }
  Owned<> get_iterator(Borrowed<> object) { return take(PyObject_GetIter(object.get())); }
  Owned<> next(Borrowed<> iterator) {
    Owned<> item = Owned<>::steal(Py_TYPE(iterator.get())->tp_iternext(iterator.get()));
    if (!item && PyErr_Occurred()) {
      if (!PyErr_ExceptionMatches(PyExc_StopIteration)) throw py::PyError();
      PyErr_Clear();
    }
    return item;
  }
  std::vector<Owned<>> unpack(Borrowed<> object, int before, int after);
  Owned<> format(Borrowed<> value, int conversion, Borrowed<> spec) {
    Owned<> shown = share(value);
    if (conversion == 1) shown = take(PyObject_Str(value.get()));
    if (conversion == 2) shown = take(PyObject_Repr(value.get()));
    if (conversion == 3) shown = take(PyObject_ASCII(value.get()));
    if (!spec && PyUnicode_CheckExact(shown.get())) return shown;
    return take(PyObject_Format(shown.get(), spec.get()));
  }
  Py_ssize_t length(Borrowed<> object) {
    const Py_ssize_t n = PyObject_Size(object.get());
    if (n < 0) throw py::PyError();
    return n;
  }

  void extend_list(Borrowed<> list, Borrowed<> iterable) {
    if (Py_TYPE(iterable.get())->tp_iter == nullptr && !PySequence_Check(iterable.get())) throw LeaveInstruction();
    take(_PyList_Extend(reinterpret_cast<PyListObject*>(list.get()), iterable.get()));
  }
  void update_set(Borrowed<> set, Borrowed<> iterable) { py::check(_PySet_Update(set.get(), iterable.get())); }
  void merge_dict(Borrowed<> dict, Borrowed<> other, bool refuses_duplicates, Borrowed<> function);
  void note_hash(Borrowed<>) {}
  void check_top() {}
  void check_local(int) {}
  void ready(Borrowed<>) {}

  Owned<> import_name(Borrowed<> name, Borrowed<> from_list, Borrowed<> level) {
    PyObject* import = PyDict_GetItemString(frame_.function->func_builtins, "__import__");
    if (import == nullptr) throw LeaveInstruction();
    return take(PyObject_CallFunctionObjArgs(import, name.get(), frame_.function->func_globals, Py_None,
                                             from_list.get(), level.get(), nullptr));
  }
  Owned<> import_from(Borrowed<> module, Borrowed<> name) {
    Owned<> value = Owned<>::steal(PyObject_GetAttr(module.get(), name.get()));
    if (value) return value;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw py::PyError();
    PyErr_Clear();
    throw LeaveInstruction();
  }
  Owned<> make_function(Borrowed<> code) { return take(PyFunction_New(code.get(), frame_.function->func_globals)); }
  Owned<> build_class() {
    PyObject* builder = PyDict_GetItemString(frame_.function->func_builtins, "__build_class__");
    if (builder == nullptr) throw LeaveInstruction();
    return share(builder);
  }
  std::pair<Owned<>, Owned<>> enter_with(Borrowed<> manager);
  bool matches_exception(Borrowed<> exception, Borrowed<> type) {
    if (!PyTuple_Check(type.get()) && !PyExceptionClass_Check(type.get())) throw LeaveInstruction();
    return PyErr_GivenExceptionMatches(exception.get(), type.get()) != 0;
  }
  Owned<> swap_handled(Owned<> exception) {
    Owned<> previous = Owned<>::steal(PyErr_GetHandledException());
    PyErr_SetHandledException(exception.get());
    return previous;
  }
  [[noreturn]] void raise(Borrowed<> exception, Borrowed<> cause);
  [[noreturn]] void reraise(Borrowed<> exception) {
    PyErr_Restore(share(as_object(type_of(exception))).release(), share(exception).release(),
                  PyException_GetTraceback(exception.get()));
    throw py::PyError();
  }
  [[noreturn]] void raise_unbound(Borrowed<>, bool) { throw LeaveInstruction(); }
  Owned<> call_now(Borrowed<> callable, std::vector<Owned<>> args) {
    return run(RealSite{share(callable), std::move(args), {}});
  }
  void call(RealSite site, int operands) {
    Owned<> result = run(site);
    drop(operands);
    push(std::move(result));
  }
  void return_value(Owned<> value) {
    push(std::move(value));
    throw LeaveInstruction();
  }
  void yield_value() { throw LeaveInstruction(); }
  void start_generator() { throw LeaveInstruction(); }
  std::pair<Owned<>, Owned<>> send(Borrowed<>, Borrowed<>) { throw LeaveInstruction(); }
  [[noreturn]] void leave(const char*) { throw LeaveInstruction(); }

 private:
  Owned<> run(const RealSite& site) {
    std::vector<PyObject*> args;
    for (const Owned<>& arg : site.args) args.push_back(arg.get());
    const std::size_t named = site.names ? static_cast<std::size_t>(PyTuple_GET_SIZE(site.names.get())) : 0;
    return take(
        PyObject_Vectorcall(site.callable.get(), args.data(), args.size() - named, named ? site.names.get() : nullptr));
  }
  LiveFrame& frame_;
};

std::vector<Owned<>> RealMachine::unpack(Borrowed<> object, int before, int after) {
  std::vector<Owned<>> items;
  Owned<> it = Owned<>::steal(PyObject_GetIter(object.get()));
  if (!it) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) && Py_TYPE(object.get())->tp_iter == nullptr &&
        !PySequence_Check(object.get()))
      PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object", Py_TYPE(object.get())->tp_name);
    throw py::PyError();
  }
  const int wanted = before + std::max(after, 0);
  while (static_cast<int>(items.size()) < before) {
    Owned<> item = Owned<>::steal(PyIter_Next(it.get()));
    if (!item) {
      if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError,
                     after < 0 ? "not enough values to unpack (expected %d, got %zd)"
                               : "not enough values to unpack (expected at least %d, got %zd)",
                     wanted, static_cast<Py_ssize_t>(items.size()));
      throw py::PyError();
    }
    items.push_back(std::move(item));
  }
  if (after < 0) {
    Owned<> extra = Owned<>::steal(PyIter_Next(it.get()));
    if (extra) PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %d)", before);
    if (PyErr_Occurred()) throw py::PyError();
    return items;
  }
  Owned<> rest = take(PySequence_List(it.get()));
  const Py_ssize_t n = PyList_GET_SIZE(rest.get());
  if (n < after) {
    PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected at least %d, got %zd)", wanted, before + n);
    throw py::PyError();
  }
  std::vector<Owned<>> last;
  for (Py_ssize_t i = n - after; i < n; ++i) last.push_back(share(PyList_GET_ITEM(rest.get(), i)));
  py::check(PyList_SetSlice(rest.get(), n - after, n, nullptr));
  items.push_back(std::move(rest));
  for (Owned<>& item : last) items.push_back(std::move(item));
  return items;
}

void RealMachine::merge_dict(Borrowed<> dict, Borrowed<> other, bool refuses_duplicates, Borrowed<> function) {
  if (!refuses_duplicates) {
    if (PyDict_Update(dict.get(), other.get()) == 0) return;
    if (PyErr_ExceptionMatches(PyExc_AttributeError))
      PyErr_Format(PyExc_TypeError, "'%.200s' object is not a mapping", Py_TYPE(other.get())->tp_name);
    throw py::PyError();
  }
  if (_PyDict_MergeEx(dict.get(), other.get(), 2) == 0) return;
  Owned<> name = Owned<>::steal(nullptr);
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  name = Owned<>::steal(_PyObject_FunctionStr(function.get()));
  if (!name) PyErr_Clear();
  if (type == PyExc_AttributeError || type == PyExc_KeyError) {
    if (type == PyExc_AttributeError) {
      PyErr_Format(PyExc_TypeError, "%V argument after ** must be a mapping, not %.200s", name.get(), "function",
                   Py_TYPE(other.get())->tp_name);
    } else {
      PyObject* key = PyTuple_Check(value) && PyTuple_GET_SIZE(value) > 0 ? PyTuple_GET_ITEM(value, 0) : value;
      if (PyExceptionInstance_Check(value))
        key = PyTuple_GET_ITEM(reinterpret_cast<PyBaseExceptionObject*>(value)->args, 0);
      PyErr_Format(
          PyExc_TypeError,
          PyUnicode_Check(key) ? "%V got multiple values for keyword argument '%S'" : "%V keywords must be strings",
          name.get(), "function", key);
    }
    Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(traceback);
  } else {
    PyErr_Restore(type, value, traceback);
  }
  throw py::PyError();
}

std::pair<Owned<>, Owned<>> RealMachine::enter_with(Borrowed<> manager) {
  auto bound = [&](const char* name) -> Owned<> {
    Borrowed<> method = look_up(type_of(manager), name);
    if (!method) throw LeaveInstruction();
    if (type_of(method)->tp_descr_get == nullptr) return share(method);
    return take(type_of(method)->tp_descr_get(method.get(), manager.get(), as_object(type_of(manager))));
  };
  Owned<> enter = bound("__enter__"), leave = bound("__exit__");
  Owned<> value = take(PyObject_CallNoArgs(enter.get()));
  return {std::move(leave), std::move(value)};
}

void RealMachine::raise(Borrowed<> exception, Borrowed<> cause) {
  if (!exception) {
    Owned<> handled = Owned<>::steal(PyErr_GetHandledException());
    if (!handled || handled.get() == Py_None) py::raise(PyExc_RuntimeError, "No active exception to reraise");
    reraise(handled.borrow());
  }
  Owned<> value = share(exception);
  if (PyExceptionClass_Check(exception.get())) {
    value = take(PyObject_CallNoArgs(exception.get()));
    if (!PyExceptionInstance_Check(value.get())) {
      PyErr_Format(PyExc_TypeError, "calling %R should have returned an instance of BaseException, not %R",
                   exception.get(), Py_TYPE(value.get()));
      throw py::PyError();
    }
  } else if (!PyExceptionInstance_Check(exception.get())) {
    py::raise(PyExc_TypeError, "exceptions must derive from BaseException");
  }
  if (cause) {
    Owned<> fixed = share(cause);
    if (PyExceptionClass_Check(cause.get())) fixed = take(PyObject_CallNoArgs(cause.get()));
    else if (cause.get() == Py_None) fixed = {};
    else if (!PyExceptionInstance_Check(cause.get()))
      py::raise(PyExc_TypeError, "exception causes must derive from BaseException");
    PyException_SetCause(value.get(), fixed.release());
  }
  PyErr_SetObject(as_object(type_of(value.borrow())), value.get());
  throw py::PyError();
}

}  // namespace

Performed perform(LiveFrame& frame) noexcept {
  const int pc = frame.pc;
  try {
    const py::Instruction& i = py::CodeInfo::of(frame.code).at(pc);
    frame.pc = i.next;
    RealMachine machine(frame);
    execute<RealSite>(machine, i);
    return Performed::kDone;
  } catch (const LeaveInstruction&) {
    frame.pc = pc;
    return Performed::kLeave;
  } catch (const py::PyError&) {
    frame.pc = pc;
    return Performed::kRaised;
  }
}

}  // namespace braze::capture
