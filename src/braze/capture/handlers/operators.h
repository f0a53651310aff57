// Operators, comparisons, subscripts.
#pragma once

#include "braze/capture/objects.h"

namespace braze::capture::handlers {

template <class M>
void replace(M& m, int operands, Owned<> result) {
  m.drop(operands);
  m.push(std::move(result));
}

template <class M>
void unary(M& m, int kind) {
  replace(m, 1, m.unary(kind, m.peek(1)));
}

template <class M>
void unary_not(M& m) {
  const bool value = m.truth(m.peek(1));
  replace(m, 1, boolean(!value));
}

template <class M>
void binary(M& m, int kind) {
  Borrowed<> left = m.peek_moved(2);
  replace(m, 2, m.binary(kind, left, m.peek_moved(1)));
}

template <class M>
void compare(M& m, int kind) {
  Borrowed<> left = m.peek(2);
  replace(m, 2, m.compare(kind, left, m.peek(1)));
}

template <class M>
void is_op(M& m, int is_negated) {
  Borrowed<> left = m.peek(2);
  const bool same = m.is_same(left, m.peek(1));
  replace(m, 2, boolean(same != (is_negated != 0)));
}

template <class M>
void contains_op(M& m, int is_negated) {
  Borrowed<> item = m.peek(2);
  const bool found = m.contains(m.peek(1), item);
  replace(m, 2, boolean(found != (is_negated != 0)));
}

template <class M>
void binary_subscr(M& m) {
  Borrowed<> container = m.peek(2);
  replace(m, 2, m.get_item(container, m.peek(1)));
}

template <class M>
void store_subscr(M& m) {
  Borrowed<> value = m.peek_moved(3), container = m.peek(2);
  m.set_item(container, m.peek(1), value);
  m.drop(3);
}

template <class M>
void delete_subscr(M& m) {
  Borrowed<> container = m.peek(2);
  m.delete_item(container, m.peek(1));
  m.drop(2);
}

template <class M>
void format_value(M& m, int oparg) {
  const int operands = (oparg & 4) ? 2 : 1;
  Borrowed<> spec = operands == 2 ? m.peek(1) : Borrowed<>{};
  replace(m, operands, m.format(m.peek(operands), oparg & 3, spec));
}

template <class M>
void build_string(M& m, int count) {
  Owned<> parts = take(PyTuple_New(count));
  for (int i = 0; i < count; ++i) PyTuple_SET_ITEM(parts.get(), i, share(m.peek(count - i)).release());
  Owned<> empty = take(PyUnicode_FromString(""));
  replace(m, count, take(PyUnicode_Join(empty.get(), parts.get())));
}

}  // namespace braze::capture::handlers
