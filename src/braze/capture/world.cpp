// Wrapping: one place decides how each type of old object is seen and guarded.
#include "braze/capture/world.h"

#include "braze/capture/known.h"
#include "braze/capture/pending_number.h"
#include "braze/support/text.h"

namespace braze::capture {

namespace {

constexpr Py_ssize_t kLargestContainer = 20000;

bool is_enum_member(Borrowed<> object) {
  return Known::get().enum_type != nullptr &&
         PyType_IsSubtype(Py_TYPE(as_object(type_of(object))), Known::get().enum_type);
}

std::string type_name(Borrowed<> object) { return type_of(object)->tp_name; }

}  // namespace

Borrowed<> stop_exception() {
  // never destroyed: the interpreter goes first
  static const Owned<>& type =
      *new Owned<>(take(PyErr_NewException("braze._C.CaptureStopped", PyExc_BaseException, nullptr)));
  return type.borrow();
}

bool is_plain_constant(Borrowed<> object) {
  PyObject* p = object.get();
  if (p == Py_None || p == Py_Ellipsis || p == Py_NotImplemented || PyBool_Check(p) || PyLong_CheckExact(p) ||
      PyFloat_CheckExact(p) || PyUnicode_CheckExact(p) || PyBytes_CheckExact(p) || PyComplex_CheckExact(p))
    return true;
  if (!PyTuple_CheckExact(p) || PyTuple_GET_SIZE(p) > 1000) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(p); ++i)
    if (!is_plain_constant(borrow(PyTuple_GET_ITEM(p, i)))) return false;
  return true;
}

bool is_identity_constant(Borrowed<> object) {
  PyObject* p = object.get();
  const Known& known = Known::get();
  PyTypeObject* t = Py_TYPE(p);
  if (PyType_Check(p) || PyFunction_Check(p) || PyModule_Check(p) || PyCode_Check(p)) return true;
  if (PyCFunction_Check(p)) {
    PyObject* self = PyCFunction_GET_SELF(p);
    return self == nullptr || PyModule_Check(self) || PyType_Check(self);
  }
  return t == &PyMethodDescr_Type || t == &PyWrapperDescr_Type || t == &PyGetSetDescr_Type ||
         t == &PyMemberDescr_Type || t == &PyClassMethodDescr_Type || t == &PyProperty_Type ||
         t == &PyClassMethod_Type || t == &PyStaticMethod_Type || t == &PyRange_Type || t == &PySlice_Type ||
         t == known.dtype || t == known.layout || t == known.memory_format || t == known.device ||
         t == known.lru_cache_wrapper || t == known.op_overload || t == known.op_overload_packet ||
         t == known.cached_property || is_enum_member(object);
}

World::World(bool is_start) : guards(sources), is_start_(is_start) {}

bool World::is_unique(SourceId source) const {
  const guard::Source& s = sources[source];
  switch (s.kind) {
    case SourceKind::kHeld: return true;
    case SourceKind::kInstanceDict:
    case SourceKind::kGlobals:
    case SourceKind::kBuiltins:
    case SourceKind::kClosureCell: return is_unique(s.parent);
    default: return identified_.contains(source.index);
  }
}

void World::set_pending(Pending p) {
  pending = std::move(p);
  PyErr_SetNone(stop_exception().get());
}
void World::stop(std::string reason, std::string advice) {
  set_pending({Pending::Kind::kStop, Break{std::move(reason), std::move(advice), "", 0, ""}});
  throw py::PyError();
}
void World::stop_void(std::string reason) {
  set_pending({Pending::Kind::kStop, Break{std::move(reason), "", "", 0, ""}, 0, true});
  throw py::PyError();
}
void World::refuse(std::string reason) {
  set_pending({Pending::Kind::kRefuse, Break{std::move(reason), "", "", 0, ""}});
  throw py::PyError();
}

SourceId World::held(Borrowed<> object) { return sources.add(SourceKind::kHeld, SourceId(), 0, object); }

void World::pin(Borrowed<> object) { pinned_.try_emplace(object.get(), share(object)); }

Record* World::record_of(Borrowed<> visible) const {
  auto it = by_visible_.find(visible.get());
  return it == by_visible_.end() ? nullptr : it->second;
}
Record* World::record_of_real(Borrowed<> real) const {
  auto it = by_real_.find(real.get());
  return it == by_real_.end() ? nullptr : it->second;
}

SourceId World::source_of(Borrowed<> visible) {
  if (Record* record = record_of(visible)) return record->source;
  return held(visible);
}

Record& World::add(RecordKind kind, SourceId source, Borrowed<> real, Owned<> visible) {
  auto record = std::make_unique<Record>();
  record->kind = kind;
  record->source = source;
  record->real = share(real);
  record->visible = std::move(visible);
  by_visible_[record->visible.get()] = record.get();
  by_real_[real.get()] = record.get();
  records_.push_back(std::move(record));
  return *records_.back();
}

Owned<> World::wrap(SourceId source, Borrowed<> real) {
  if (Record* known = record_of_real(real)) {
    if (known->source != source) guards.require(GuardKind::kAlias, source, {}, known->source.index);
    return known->visible;
  }
  PyObject* p = real.get();
  if (p == Py_None) return wrap_constant(source, real, GuardKind::kNone);
  if (is_plain_constant(real)) return wrap_constant(source, real, GuardKind::kConstant);
  if (is_identity_constant(real)) return wrap_constant(source, real, GuardKind::kIdentity);
  if (is_tensor(real)) return wrap_tensor(source, real);
  if (PyMethod_Check(p)) return wrap_method(source, real);
  if (Py_TYPE(p) == Known::get().partial) return wrap_partial(source, real);
  if (PyTuple_Check(p)) return wrap_tuple(source, real);
  if (PyDict_Check(p) || PyList_CheckExact(p) || PyAnySet_CheckExact(p) || PyCell_Check(p) ||
      Py_TYPE(p) == Known::get().deque)
    return wrap_container(source, real);
  return wrap_instance(source, real);
}

Owned<> World::wrap_constant(SourceId source, Borrowed<> real, GuardKind kind) {
  if (sources[source].kind != SourceKind::kHeld) guards.require(kind, source, real);
  if (kind == GuardKind::kIdentity) pin(real);
  return share(real);
}

Owned<> World::wrap_tensor(SourceId source, Borrowed<> real) {
  const Known& known = Known::get();
  PyTypeObject* type = type_of(real);
  if (type != known.tensor && type != known.parameter && type != known.buffer)
    stop("a tensor of the subclass " + type_name(real),
         "convert it to a plain torch.Tensor before the compiled region");
  if (tracer.is_fake(real)) stop("a tensor that another capture is tracing");
  guards.require(GuardKind::kTensor, source, real);
  Owned<> fake = tracer.fake_of(real);
  if (auto poison = tracer.take_poison()) stop_void(poison->reason);
  return add(RecordKind::kTensor, source, real, std::move(fake)).visible;
}

Owned<> World::wrap_tuple(SourceId source, Borrowed<> real) {
  guards.require(GuardKind::kExactType, source, borrow(as_object(type_of(real))));
  const Py_ssize_t n = PyTuple_GET_SIZE(real.get());
  guards.require(GuardKind::kLength, source, {}, static_cast<std::uint32_t>(n));
  if (!PyTuple_CheckExact(real.get()) && type_of(real)->tp_dictoffset != 0)
    stop("a tuple with attributes of its own: " + type_name(real));
  if (!PyTuple_CheckExact(real.get()) && type_of(real)->tp_itemsize != static_cast<Py_ssize_t>(sizeof(PyObject*)))
    stop("a tuple of the unusual type " + type_name(real));
  Owned<> items = take(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    SourceId item = sources.add(SourceKind::kListItem, source, static_cast<std::uint32_t>(i));
    PyTuple_SET_ITEM(items.get(), i, wrap(item, borrow(PyTuple_GET_ITEM(real.get(), i))).release());
  }
  Owned<> visible = items;
  if (!PyTuple_CheckExact(real.get())) {
    Owned<> args = take(PyTuple_Pack(1, items.get()));
    const bool has_own_new = type_of(real)->tp_new != PyTuple_Type.tp_new;
    if (has_own_new && type_of(real) != Known::get().size && !look_up(type_of(real), "_fields") &&
        !look_up(type_of(real), "n_sequence_fields"))
      stop("a tuple of the unusual type " + type_name(real));
    const bool is_python_new = has_own_new && look_up(type_of(real), "_fields");
    visible = take(is_python_new ? PyTuple_Type.tp_new(type_of(real), args.get(), nullptr)
                                 : type_of(real)->tp_new(type_of(real), args.get(), nullptr));
  }
  Record& record = add(RecordKind::kTuple, source, real, std::move(visible));
  record.filled = true;
  return record.visible;
}

Owned<> World::wrap_method(SourceId source, Borrowed<> real) {
  guards.require(GuardKind::kExactType, source, borrow(as_object(type_of(real))));
  Owned<> function = wrap(sources.add(SourceKind::kMethodFunction, source), borrow(PyMethod_GET_FUNCTION(real.get())));
  Owned<> self = wrap(sources.add(SourceKind::kMethodSelf, source), borrow(PyMethod_GET_SELF(real.get())));
  return add(RecordKind::kMethod, source, real, take(PyMethod_New(function.get(), self.get()))).visible;
}

Owned<> World::wrap_partial(SourceId source, Borrowed<> real) {
  guards.require(GuardKind::kExactType, source, borrow(as_object(type_of(real))));
  Owned<> function = wrap(sources.add(SourceKind::kPartialFunc, source), attribute(real, "func").borrow());
  Owned<> args = wrap(sources.add(SourceKind::kPartialArgs, source), attribute(real, "args").borrow());
  Owned<> keywords = wrap(sources.add(SourceKind::kPartialKeywords, source), attribute(real, "keywords").borrow());
  fill(keywords.borrow());
  Owned<> all = take(PyTuple_New(PyTuple_GET_SIZE(args.get()) + 1));
  PyTuple_SET_ITEM(all.get(), 0, share(function).release());
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args.get()); ++i)
    PyTuple_SET_ITEM(all.get(), i + 1, share(PyTuple_GET_ITEM(args.get(), i)).release());
  Owned<> visible = take(PyObject_Call(as_object(type_of(real)), all.get(), keywords.get()));
  return add(RecordKind::kPartial, source, real, std::move(visible)).visible;
}

Owned<> World::wrap_instance(SourceId source, Borrowed<> real) {
  guards.require(GuardKind::kExactType, source, borrow(as_object(type_of(real))));
  pin(borrow(as_object(type_of(real))));
  if (is_start_ && PyType_IsSubtype(type_of(real), Known::get().module)) {
    guards.require(GuardKind::kIdentity, source, real);
    identified_.emplace(source.index, true);
  }
  return add(RecordKind::kInstance, source, real, share(real)).visible;
}

Owned<> World::new_like(Borrowed<> real) {
  PyTypeObject* type = type_of(real);
  if (PyCell_Check(real.get())) return take(PyCell_New(nullptr));
  Owned<> empty = take(PyTuple_New(0));
  if (type == Known::get().deque) {
    Owned<> maxlen = attribute(real, "maxlen");
    return take(PyObject_CallFunctionObjArgs(as_object(type), empty.get(), maxlen.get(), nullptr));
  }
  Borrowed<> own_new = look_up(type, "__new__");
  if (own_new && (PyFunction_Check(own_new.get()) || Py_TYPE(own_new.get()) == &PyStaticMethod_Type) &&
      (type->tp_flags & Py_TPFLAGS_HEAPTYPE))
    stop("a dict subclass with its own __new__: " + type_name(real));
  if (type->tp_finalize != nullptr || type->tp_del != nullptr) stop("a container with __del__: " + type_name(real));
  return take(type->tp_new(type, empty.get(), nullptr));
}

Owned<> World::wrap_container(SourceId source, Borrowed<> real) {
  guards.require(GuardKind::kExactType, source, borrow(as_object(type_of(real))));
  RecordKind kind = RecordKind::kList;
  if (PyDict_Check(real.get())) kind = RecordKind::kDict;
  else if (PyAnySet_Check(real.get())) kind = RecordKind::kSet;
  else if (PyCell_Check(real.get())) kind = RecordKind::kCell;
  else if (type_of(real) == Known::get().deque) kind = RecordKind::kDeque;
  if (kind == RecordKind::kDeque) guards.require(GuardKind::kIdentity, source, real);  // pins maxlen
  Record& record = add(kind, source, real, new_like(real));
  if (type_of(real) == Known::get().default_dict) {
    Borrowed<> member = look_up(type_of(real), "default_factory");
    Owned<> factory = attribute(real, "default_factory");
    SourceId slot = sources.add(SourceKind::kMemberSlot, source, 0, member);
    if (factory.get() == Py_None) guards.require(GuardKind::kNullSlot, slot);
    Owned<> seen = factory.get() == Py_None ? none() : wrap(slot, factory.borrow());
    py::check(PyObject_SetAttrString(record.visible.get(), "default_factory", seen.get()));
  }
  if (PyFrozenSet_CheckExact(real.get())) {
    guards.require(GuardKind::kSetContents, source, real);
    for (Owned<> it = take(PyObject_GetIter(real.get()));;) {
      Owned<> item = Owned<>::steal(PyIter_Next(it.get()));
      if (!item) break;
      if (!is_plain_constant(item.borrow())) stop("a frozenset of objects");
    }
    record.visible = share(real);
    by_visible_[real.get()] = &record;
    record.filled = true;
  }
  return record.visible;
}

void World::fill(Borrowed<> visible) {
  Record* record = record_of(visible);
  if (record == nullptr || record->filled) return;
  switch (record->kind) {
    case RecordKind::kList:
    case RecordKind::kDeque: return fill_list(*record);
    case RecordKind::kDict: return fill_dict(*record);
    case RecordKind::kSet: return fill_set(*record);
    case RecordKind::kCell: return fill_cell(*record);
    default: return;
  }
}

void World::fill_list(Record& record) {
  record.filled = true;
  const bool is_list = record.kind == RecordKind::kList;
  const Py_ssize_t n = py::check(static_cast<int>(PyObject_Size(record.real.get())));
  if (n > kLargestContainer)
    stop(support::format("a {} of {} elements", type_name(record.real.borrow()), n), "keep it in a tensor");
  guards.require(GuardKind::kLength, record.source, {}, static_cast<std::uint32_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    Owned<> real = take(PySequence_GetItem(record.real.get(), i));
    Owned<> item = wrap(sources.add(is_list ? SourceKind::kListItem : SourceKind::kDequeItem, record.source,
                                    static_cast<std::uint32_t>(i)),
                        real.borrow());
    if (is_list) py::check(PyList_Append(record.visible.get(), item.get()));
    else take(PyObject_CallMethodOneArg(record.visible.get(), interned("append").get(), item.get()));
    record.before.push_back(std::move(item));
  }
}

void World::fill_set(Record& record) {
  record.filled = true;
  Owned<> order = take(PySequence_Tuple(record.real.get()));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(order.get()); ++i) {
    if (!is_plain_constant(borrow(PyTuple_GET_ITEM(order.get(), i)))) stop("a set of objects", "use a list or a dict");
  }
  guards.require(GuardKind::kSetContents, record.source, order.borrow());
  py::check(_PySet_Update(record.visible.get(), record.real.get()));
  record.before.push_back(take(PyFrozenSet_New(order.get())));
  record.before.push_back(std::move(order));
}

void World::check_order(Borrowed<> set) {
  fill(set);
  Record* record = record_of(set);
  if (record == nullptr || !PySet_CheckExact(set.get())) return;
  Owned<> now = take(PySequence_Tuple(set.get()));
  if (py::check(PyObject_RichCompareBool(now.get(), record->before[1].get(), Py_EQ)) == 0)
    stop("iteration over a set that was changed", "iterate over sorted(...) or use a dict");
}

void World::fill_cell(Record& record) {
  record.filled = true;
  SourceId contents = sources.add(SourceKind::kCellContents, record.source);
  PyObject* real = PyCell_GET(record.real.get());
  if (real == nullptr) {
    guards.require(GuardKind::kNullSlot, contents);
    record.before.emplace_back();
    return;
  }
  Owned<> value = read_number(contents, borrow(real));
  py::check(PyCell_Set(record.visible.get(), value.get()));
  record.before.push_back(std::move(value));
}

void World::fill_deep(Borrowed<> visible) {
  fill(visible);
  PyObject* p = visible.get();
  if (PyList_CheckExact(p)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(p); ++i) fill_deep(borrow(PyList_GET_ITEM(p, i)));
  } else if (PyTuple_Check(p)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(p); ++i) fill_deep(borrow(PyTuple_GET_ITEM(p, i)));
  } else if (PyDict_Check(p)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(p, &at, &key, &value);) fill_deep(borrow(value));
  }
}

/// A value that may be a counter: an int stays pending until someone looks at it.
Owned<> World::read_number(SourceId source, Borrowed<> real) {
  if (!PyLong_CheckExact(real.get())) return wrap(source, real);
  guards.require(GuardKind::kExactType, source, borrow(as_object(&PyLong_Type)));
  return make_pending(real, source);
}

Owned<> World::cell_get(Borrowed<> cell) {
  fill(cell);
  return share(PyCell_GET(cell.get()));
}
void World::cell_set(Borrowed<> cell, Borrowed<> value) {
  fill(cell);
  py::check(PyCell_Set(cell.get(), value.get()));
}

Owned<> World::concrete(Borrowed<> object) {
  if (!is_pending(object)) return share(object);
  const PendingNumber number = pending_number(object);
  if (number.op == 0) {
    guards.require(GuardKind::kConstant, number.source, number.value);
  } else {
    concrete(number.left);
    concrete(number.right);
  }
  return share(number.value);
}

void World::note_identity(Borrowed<> a, Borrowed<> b) {
  Record *ra = record_of(a), *rb = record_of(b);
  if (ra == nullptr || rb == nullptr || ra == rb) return;
  guards.require(GuardKind::kDistinct, ra->source, {}, rb->source.index);
}

}  // namespace braze::capture
