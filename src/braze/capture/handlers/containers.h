// Building and filling containers; unpacking.
#pragma once

#include "braze/capture/handlers/operators.h"

namespace braze::capture::handlers {

template <class M>
void build_tuple(M& m, int count) {
  Owned<> result = take(PyTuple_New(count));
  for (int i = 0; i < count; ++i) PyTuple_SET_ITEM(result.get(), i, share(m.peek(count - i)).release());
  replace(m, count, std::move(result));
}

template <class M>
void build_list(M& m, int count) {
  Owned<> result = take(PyList_New(count));
  for (int i = 0; i < count; ++i) PyList_SET_ITEM(result.get(), i, share(m.peek(count - i)).release());
  replace(m, count, std::move(result));
}

template <class M>
void build_set(M& m, int count) {
  Owned<> result = take(PySet_New(nullptr));
  for (int i = 0; i < count; ++i) {
    Borrowed<> item = m.peek(count - i);
    m.note_hash(item);
    py::check(PySet_Add(result.get(), item.get()));
  }
  replace(m, count, std::move(result));
}

template <class M>
void build_map(M& m, int count) {
  Owned<> result = take(PyDict_New());
  for (int i = 0; i < count; ++i) {
    Borrowed<> key = m.peek(2 * (count - i)), value = m.peek(2 * (count - i) - 1);
    m.note_hash(key);
    py::check(PyDict_SetItem(result.get(), key.get(), value.get()));
  }
  replace(m, 2 * count, std::move(result));
}

template <class M>
void build_const_key_map(M& m, int count) {
  Borrowed<> keys = m.peek(1);
  Owned<> result = take(PyDict_New());
  for (int i = 0; i < count; ++i)
    py::check(PyDict_SetItem(result.get(), PyTuple_GET_ITEM(keys.get(), i), m.peek(count + 1 - i).get()));
  replace(m, count + 1, std::move(result));
}

template <class M>
void build_slice(M& m, int count) {
  Borrowed<> step = count == 3 ? m.peek(1) : Borrowed<>{};
  Borrowed<> start = m.peek(count), stop = m.peek(count - 1);
  replace(m, count, take(PySlice_New(start.get(), stop.get(), step.get())));
}

template <class M>
void list_append(M& m, int depth) {
  m.ready(m.peek(depth + 1));
  py::check(PyList_Append(m.peek(depth + 1).get(), m.peek(1).get()));
  m.drop(1);
}

template <class M>
void set_add(M& m, int depth) {
  m.note_hash(m.peek(1));
  m.ready(m.peek(depth + 1));
  py::check(PySet_Add(m.peek(depth + 1).get(), m.peek(1).get()));
  m.drop(1);
}

template <class M>
void map_add(M& m, int depth) {
  Borrowed<> key = m.peek(2), value = m.peek(1);
  m.note_hash(key);
  m.ready(m.peek(depth + 2));
  py::check(PyDict_SetItem(m.peek(depth + 2).get(), key.get(), value.get()));
  m.drop(2);
}

template <class M>
void list_extend(M& m, int depth) {
  m.extend_list(m.peek(depth + 1), m.peek(1));
  m.drop(1);
}

template <class M>
void set_update(M& m, int depth) {
  m.update_set(m.peek(depth + 1), m.peek(1));
  m.drop(1);
}

template <class M>
void dict_update(M& m, int depth) {
  m.merge_dict(m.peek(depth + 1), m.peek(1), false, {});
  m.drop(1);
}

template <class M>
void dict_merge(M& m, int depth) {
  m.merge_dict(m.peek(depth + 1), m.peek(1), true, m.peek(depth + 3));
  m.drop(1);
}

template <class M>
void list_to_tuple(M& m) {
  m.ready(m.peek(1));
  replace(m, 1, take(PyList_AsTuple(m.peek(1).get())));
}

template <class M>
void unpack(M& m, int before, int after) {
  std::vector<Owned<>> items = m.unpack(m.peek(1), before, after);
  m.drop(1);
  for (auto it = items.rbegin(); it != items.rend(); ++it) m.push(std::move(*it));
}

template <class M>
void get_len(M& m) {
  m.push(take(PyLong_FromSsize_t(m.length(m.peek(1)))));
}

}  // namespace braze::capture::handlers
