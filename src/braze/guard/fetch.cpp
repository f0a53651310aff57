// Reads values from live objects, one field at a time.
#include "braze/guard/compat.h"
#include "braze/guard/program.h"
// after Python.h
#include <structmember.h>

namespace braze::guard {
namespace {

template <class T>
T* as(PyObject* o) {
  return reinterpret_cast<T*>(o);
}

const void* list_place(PyObject* parent, std::uint32_t index) {
  if (PyList_Check(parent)) {
    return index < static_cast<std::size_t>(PyList_GET_SIZE(parent)) ? &as<PyListObject>(parent)->ob_item[index]
                                                                     : nullptr;
  }
  if (!PyTuple_Check(parent) || index >= static_cast<std::size_t>(PyTuple_GET_SIZE(parent))) return nullptr;
  return &as<PyTupleObject>(parent)->ob_item[index];
}

const void* member_place(PyObject* parent, PyObject* descriptor) {
  const auto* member = as<PyMemberDescrObject>(descriptor);
  if (PyObject_TypeCheck(parent, member->d_common.d_type) == 0) return nullptr;
  return reinterpret_cast<const char*>(parent) + member->d_member->offset;
}

const void* function_place(SourceKind kind, PyObject* parent, std::uint32_t index) {
  if (!PyFunction_Check(parent)) return nullptr;
  auto* f = as<PyFunctionObject>(parent);
  switch (kind) {
    case SourceKind::kGlobals: return &f->func_globals;
    case SourceKind::kBuiltins: return &f->func_builtins;
    case SourceKind::kCode: return &f->func_code;
    case SourceKind::kDefaults: return &f->func_defaults;
    case SourceKind::kKwDefaults: return &f->func_kwdefaults;
    default: return f->func_closure != nullptr ? list_place(f->func_closure, index) : nullptr;
  }
}

const void* iterator_place(PyObject* parent) {
  if (!PyType_HasFeature(Py_TYPE(parent), Py_TPFLAGS_IMMUTABLETYPE)) return nullptr;
  const std::string_view name = Py_TYPE(parent)->tp_name;
  if (name == "list_iterator" || name == "tuple_iterator") return &as<compat::SequenceIterator>(parent)->sequence;
  if (name.starts_with("dict_") && name.ends_with("iterator") && name.find("reverse") == name.npos) {
    return &as<compat::DictIterator>(parent)->dict;
  }
  if (Py_IS_TYPE(parent, &PyEnum_Type)) return &as<compat::EnumerateIterator>(parent)->iterator;
  if (Py_IS_TYPE(parent, &PyZip_Type)) return &as<compat::ZipIterator>(parent)->iterators;
  return nullptr;
}

const void* partial_place(SourceKind kind, PyObject* parent) {
  if (!compat::is_builtin(parent, "functools.partial")) return nullptr;
  auto* p = as<compat::Partial>(parent);
  if (kind == SourceKind::kPartialFunc) return &p->function;
  return kind == SourceKind::kPartialArgs ? &p->args : &p->keywords;
}

/// Fields whose NULL means None to Python.
bool is_null_none(const Node& node) {
  if (node.kind == SourceKind::kMemberSlot) return as<PyMemberDescrObject>(node.key.get())->d_member->type == T_OBJECT;
  return node.kind == SourceKind::kDefaults || node.kind == SourceKind::kKwDefaults;
}

PyObject* dict_item(const Node& node, PyObject* parent) {
  if (!PyDict_Check(parent)) return kMissing;
  PyObject* value = _PyDict_GetItem_KnownHash(parent, node.key.get(), node.hash);
  if (value == nullptr && PyErr_Occurred() != nullptr) PyErr_Clear();
  return value != nullptr ? value : kMissing;
}

PyObject* type_attr(const Node& node, PyObject* parent) {
  if (!PyType_Check(parent)) return kMissing;
  PyObject* value = _PyType_Lookup(as<PyTypeObject>(parent), node.key.get());
  return value != nullptr ? value : kMissing;
}

PyObject* deque_item(const Node& node, PyObject* parent) {
  if (!compat::is_builtin(parent, "collections.deque")) return kMissing;
  PyObject* value = PySequence_GetItem(parent, node.index);
  if (value == nullptr) {
    PyErr_Clear();
    return kMissing;
  }
  Py_DECREF(value);  // the deque owns it
  return value;
}

}  // namespace

const void* fetch_address(const Node& node, PyObject* parent) noexcept {
  if (parent == nullptr) return nullptr;
  switch (node.kind) {
    case SourceKind::kGlobals:
    case SourceKind::kBuiltins:
    case SourceKind::kClosureCell:
    case SourceKind::kCode:
    case SourceKind::kDefaults:
    case SourceKind::kKwDefaults: return function_place(node.kind, parent, node.index);
    case SourceKind::kCellContents: return PyCell_Check(parent) ? &as<PyCellObject>(parent)->ob_ref : nullptr;
    case SourceKind::kMethodSelf: return PyMethod_Check(parent) ? &as<PyMethodObject>(parent)->im_self : nullptr;
    case SourceKind::kMethodFunction: return PyMethod_Check(parent) ? &as<PyMethodObject>(parent)->im_func : nullptr;
    case SourceKind::kType: return &parent->ob_type;
    case SourceKind::kInstanceDict: return compat::instance_dict(parent);
    case SourceKind::kMemberSlot: return member_place(parent, node.key.get());
    case SourceKind::kListItem: return list_place(parent, node.index);
    case SourceKind::kPartialFunc:
    case SourceKind::kPartialArgs:
    case SourceKind::kPartialKeywords: return partial_place(node.kind, parent);
    case SourceKind::kWeakrefTarget: return PyWeakref_Check(parent) ? &as<PyWeakReference>(parent)->wr_object : nullptr;
    case SourceKind::kIteratorItem: return iterator_place(parent);
    default: return nullptr;
  }
}

PyObject* fetch(const Node& node, PyObject* parent) noexcept {
  if (parent == nullptr) return kMissing;
  switch (node.kind) {
    case SourceKind::kDictItem: return dict_item(node, parent);
    case SourceKind::kTypeAttr: return type_attr(node, parent);
    case SourceKind::kDequeItem: return deque_item(node, parent);
    case SourceKind::kTensorGrad: {
      PyObject* grad = aten::grad_of(parent);
      return grad != nullptr ? grad : kMissing;
    }
    default: break;
  }
  const void* place = fetch_address(node, parent);
  if (place == nullptr) return kMissing;
  PyObject* value = *static_cast<PyObject* const*>(place);
  return value == nullptr && is_null_none(node) ? Py_None : value;
}

}  // namespace braze::guard
