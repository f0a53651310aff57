// Moving values between constants, locals, cells and the stack.
#pragma once

#include "braze/capture/objects.h"
#include "braze/py/code_object.h"

namespace braze::capture::handlers {

template <class M>
void load_fast(M& m, int index) {
  Borrowed<> value = m.local(index);
  if (!value) m.raise_unbound(borrow(PyTuple_GET_ITEM(m.frame().code->co_localsplusnames, index)), false);
  m.push(share(value));
}

template <class M>
void pop_top(M& m) {
  m.check_top();
  m.drop(1);
}

template <class M>
void store_fast(M& m, int index) {
  m.check_local(index);
  m.set_local(index, m.pop());
}

template <class M>
void delete_fast(M& m, int index) {
  if (!m.local(index)) m.raise_unbound(borrow(PyTuple_GET_ITEM(m.frame().code->co_localsplusnames, index)), false);
  m.check_local(index);
  m.set_local(index, {});
}

template <class M>
void load_deref(M& m, int index) {
  Owned<> value = m.load_cell(m.local(index), index);
  m.push(std::move(value));
}

template <class M>
void store_deref(M& m, int index) {
  m.store_cell(m.local(index), m.peek(1));
  m.drop(1);
}

template <class M>
void delete_deref(M& m, int index) {
  m.load_cell(m.local(index), index);  // raises if unbound
  m.store_cell(m.local(index), {});
}

template <class M>
void load_global(M& m, int oparg) {
  Owned<> value = m.load_global(m.name(oparg >> 1));
  if (oparg & 1) m.push({});
  m.push(std::move(value));
}

template <class M>
void store_global(M& m, int oparg) {
  m.store_global(m.name(oparg), m.peek(1));
  m.drop(1);
}

template <class M>
void load_attr(M& m, int index) {
  Owned<> value = m.get_attribute(m.peek(1), m.name(index));
  m.drop(1);
  m.push(std::move(value));
}

template <class M>
void load_method(M& m, int index) {
  auto [method, value] = m.get_method(m.peek(1), m.name(index));
  m.drop(1);
  m.push(std::move(method));
  m.push(std::move(value));
}

template <class M>
void store_attr(M& m, int index) {
  m.set_attribute(m.peek(1), m.name(index), m.peek(2));
  m.drop(2);
}

template <class M>
void delete_attr(M& m, int index) {
  m.delete_attribute(m.peek(1), m.name(index));
  m.drop(1);
}

}  // namespace braze::capture::handlers
