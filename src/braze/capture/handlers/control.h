// Jumps, loops, calls, with blocks, exceptions, functions, imports.
#pragma once

#include "braze/capture/handlers/operators.h"
#include "braze/py/code_object.h"

namespace braze::capture::handlers {

using py::Instruction;

template <class M>
void pop_jump_if(M& m, bool wanted, int target) {
  const bool value = m.truth(m.peek(1));
  m.drop(1);
  if (value == wanted) m.jump(target);
}

template <class M>
void jump_if_or_pop(M& m, bool wanted, int target) {
  if (m.truth(m.peek(1)) == wanted) m.jump(target);
  else m.drop(1);
}

template <class M>
void pop_jump_if_none(M& m, bool wanted, int target) {
  const bool is_none = m.peek(1).get() == Py_None;
  m.drop(1);
  if (is_none == wanted) m.jump(target);
}

template <class M>
void get_iter(M& m) {
  replace(m, 1, m.get_iterator(m.peek(1)));
}

template <class M>
void for_iter(M& m, int target) {
  Owned<> item = m.next(m.peek(1));
  if (item) {
    m.push(std::move(item));
  } else {
    m.drop(1);
    m.jump(target);
  }
}

/// Stack: receiver, value sent to it.
template <class M>
void send(M& m, int target) {
  Borrowed<> receiver = m.peek(2);
  auto [item, returned] = m.send(receiver, m.peek(1));
  if (item) return replace(m, 1, std::move(item));
  replace(m, 2, std::move(returned));
  m.jump(target);
}

/// Stack: NULL, callable | method, self; then the arguments.
template <class M, class Site>
Site call_site(M& m, int count, int kw_names) {
  Site site;
  Borrowed<> method = m.peek(count + 2), callable = m.peek(count + 1);
  if (method) {
    site.callable = share(method);
    site.args.push_back(share(callable));
  } else {
    site.callable = share(callable);
  }
  for (int i = 0; i < count; ++i) site.args.push_back(share(m.peek(count - i)));
  if (kw_names >= 0) site.names = share(m.constant(kw_names));
  return site;
}

template <class M, class Site>
void call(M& m, const Instruction& i) {
  m.call(call_site<M, Site>(m, i.oparg, i.kw_names), i.oparg + 2);
}

template <class M, class Site>
void call_function_ex(M& m, int oparg) {
  const int has_keywords = oparg & 1;
  Site site;
  site.callable = share(m.peek(2 + has_keywords));
  Borrowed<> positional = m.peek(1 + has_keywords);
  Owned<> args = PyTuple_CheckExact(positional.get()) ? share(positional) : Owned<>{};
  if (!args) {
    Owned<> list = take(PyList_New(0));
    m.extend_list(list.borrow(), positional);
    args = take(PyList_AsTuple(list.get()));
  }
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args.get()); ++k)
    site.args.push_back(share(PyTuple_GET_ITEM(args.get(), k)));
  if (has_keywords) {
    Owned<> keywords = take(PyDict_New());
    m.merge_dict(keywords.borrow(), m.peek(1), true, site.callable.borrow());
    if (PyDict_GET_SIZE(keywords.get()) > 0) {
      site.names = take(PySequence_Tuple(keywords.get()));
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(site.names.get()); ++k)
        site.args.push_back(share(PyDict_GetItem(keywords.get(), PyTuple_GET_ITEM(site.names.get(), k))));
    }
  }
  m.call(std::move(site), 3 + has_keywords);  // a NULL below the callable
}

template <class M>
void before_with(M& m) {
  auto [leave, value] = m.enter_with(m.peek(1));
  m.drop(1);
  m.push(std::move(leave));
  m.push(std::move(value));
}

/// Stack: exit, lasti, previous exception, exception. Pushes exit(type, exception, traceback).
template <class M>
void with_except_start(M& m) {
  Borrowed<> exception = m.peek(1);
  Owned<> traceback = Owned<>::steal(PyException_GetTraceback(exception.get()));
  std::vector<Owned<>> args = {share(as_object(type_of(exception))), share(exception), traceback ? traceback : none()};
  Owned<> result = m.call_now(m.peek(4), std::move(args));
  m.push(std::move(result));
}

template <class M>
void push_exc_info(M& m) {
  Owned<> exception = m.pop();
  Owned<> previous = m.swap_handled(exception);
  m.push(previous ? std::move(previous) : none());
  m.push(std::move(exception));
}

template <class M>
void pop_except(M& m) {
  Owned<> previous = m.pop();
  m.swap_handled(previous.get() == Py_None ? Owned<>{} : std::move(previous));
}

template <class M>
void check_exc_match(M& m) {
  Borrowed<> exception = m.peek(2);
  const bool matches = m.matches_exception(exception, m.peek(1));
  replace(m, 1, boolean(matches));
}

template <class M>
void raise_varargs(M& m, int count) {
  if (count == 0) m.raise({}, {});
  Borrowed<> cause = count == 2 ? m.peek(1) : Borrowed<>{};
  m.raise(m.peek(count), cause);
}

template <class M>
void make_function(M& m, int oparg) {
  Owned<> function = m.make_function(m.peek(1));
  auto* f = reinterpret_cast<PyFunctionObject*>(function.get());
  int depth = 2;
  auto next = [&] { return share(m.peek(depth++)).release(); };
  if (oparg & 8) Py_XSETREF(f->func_closure, next());
  if (oparg & 4) Py_XSETREF(f->func_annotations, next());
  if (oparg & 2) Py_XSETREF(f->func_kwdefaults, next());
  if (oparg & 1) Py_XSETREF(f->func_defaults, next());
  replace(m, depth - 1, std::move(function));
}

template <class M>
void import_name(M& m, int index) {
  Borrowed<> level = m.peek(2);
  replace(m, 2, m.import_name(m.name(index), m.peek(1), level));
}

template <class M>
void import_from(M& m, int index) {
  m.push(m.import_from(m.peek(1), m.name(index)));
}

}  // namespace braze::capture::handlers
