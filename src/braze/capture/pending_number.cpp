// A heap type without attributes: native code can do nothing with it, so a leak is refused, never wrong.
#include "braze/capture/pending_number.h"

namespace braze::capture {

namespace {

struct PendingObject {
  PyObject ob_base;
  PyObject *value, *left, *right;
  guard::SourceId source;
  char op;
};

PendingObject* as_pending(PyObject* p) { return reinterpret_cast<PendingObject*>(p); }

void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  for (PyObject* part : {as_pending(self)->value, as_pending(self)->left, as_pending(self)->right}) Py_XDECREF(part);
  type->tp_free(self);
  Py_DECREF(type);
}

PyTypeObject* pending_type() {
  static PyTypeObject* type = [] {
    PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc)}, {0, nullptr}};
    PyType_Spec spec = {"braze._C.PendingNumber", sizeof(PendingObject), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    return reinterpret_cast<PyTypeObject*>(take(PyType_FromSpec(&spec)).release());
  }();
  return type;
}

Owned<> make(Borrowed<> value) {
  Owned<> object = take(pending_type()->tp_alloc(pending_type(), 0));
  as_pending(object.get())->value = share(value).release();
  as_pending(object.get())->source = guard::SourceId();
  return object;
}

Borrowed<> value_of(Borrowed<> object) { return is_pending(object) ? borrow(as_pending(object.get())->value) : object; }

}  // namespace

bool is_pending(Borrowed<> object) { return object && type_of(object) == pending_type(); }

Owned<> make_pending(Borrowed<> value, guard::SourceId source) {
  Owned<> object = make(value);
  as_pending(object.get())->source = source;
  return object;
}

Owned<> make_pending(char op, Borrowed<> left, Borrowed<> right) {
  Borrowed<> a = value_of(left), b = value_of(right);
  Owned<> value = take(op == '+' ? PyNumber_Add(a.get(), b.get()) : PyNumber_Subtract(a.get(), b.get()));
  Owned<> object = make(value.borrow());
  as_pending(object.get())->left = share(left).release();
  as_pending(object.get())->right = share(right).release();
  as_pending(object.get())->op = op;
  return object;
}

PendingNumber pending_number(Borrowed<> object) {
  PendingObject* p = as_pending(object.get());
  return {borrow(p->value), p->source, p->op, borrow(p->left), borrow(p->right)};
}

}  // namespace braze::capture
