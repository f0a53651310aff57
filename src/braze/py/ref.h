// References to Python objects: each site says steal or share (CONVENTIONS 7.1).
//
//   Owned<> name = Owned<>::steal(check(PyUnicode_FromString("forward")));
//   void set_code(Borrowed<PyFunctionObject> fn, Owned<PyCodeObject> code);
//
// Owned is a strong reference, may be null (moved from, or said so). Borrowed is valid while its owner lives; re-read
// it after any call that can run Python. Both need the GIL for every operation but moving and reading the pointer.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "braze/py/cpython.h"

namespace braze::py {

template <class T = PyObject>
class Borrowed {
 public:
  constexpr Borrowed() = default;
  constexpr Borrowed(std::nullptr_t) {}  // NOLINT
  static constexpr Borrowed of(T* p) {
    Borrowed b;
    b.p_ = p;
    return b;
  }
  template <class U>
    requires(!std::is_same_v<T, U> && std::is_same_v<T, PyObject>)
  Borrowed(Borrowed<U> o) : p_(reinterpret_cast<PyObject*>(o.get())) {}  // NOLINT: every object is a PyObject
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  PyObject* object() const { return reinterpret_cast<PyObject*>(p_); }
  template <class U>
  Borrowed<U> as() const {
    return Borrowed<U>::of(reinterpret_cast<U*>(p_));
  }
  explicit operator bool() const { return p_ != nullptr; }
  bool operator==(const Borrowed&) const = default;

 private:
  T* p_ = nullptr;
};

template <class T = PyObject>
class Owned {
 public:
  constexpr Owned() = default;
  constexpr Owned(std::nullptr_t) {}  // NOLINT
  static Owned steal(T* p) {
    Owned o;
    o.p_ = p;
    return o;
  }
  static Owned share(T* p) {
    Py_XINCREF(reinterpret_cast<PyObject*>(p));
    return steal(p);
  }
  static Owned share(Borrowed<T> b) { return share(b.get()); }
  Owned(const Owned& o) : p_(o.p_) { Py_XINCREF(object()); }
  Owned(Owned&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <class U>
    requires(!std::is_same_v<T, U> && std::is_same_v<T, PyObject>)
  Owned(Owned<U> o) : p_(reinterpret_cast<PyObject*>(o.release())) {}  // NOLINT
  Owned& operator=(Owned o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Owned() { Py_XDECREF(object()); }

  T* get() const { return p_; }
  T* operator->() const { return p_; }
  PyObject* object() const { return reinterpret_cast<PyObject*>(p_); }
  T* release() { return std::exchange(p_, nullptr); }
  Borrowed<T> borrow() const { return Borrowed<T>::of(p_); }
  template <class U>
  Owned<U> as() && {
    return Owned<U>::steal(reinterpret_cast<U*>(release()));
  }
  explicit operator bool() const { return p_ != nullptr; }
  bool operator==(const Owned& o) const { return p_ == o.p_; }

 private:
  T* p_ = nullptr;
};

}  // namespace braze::py
