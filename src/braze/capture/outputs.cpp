// Which objects can be made again, and how; what changed in the old world.
#include "braze/capture/outputs.h"

#include "braze/capture/callbacks.h"
#include "braze/capture/pending_number.h"
#include "braze/support/check.h"
#include "braze/support/text.h"

namespace braze::capture {

namespace {

/// The innermost native base: decides how instances of a Python class are allocated.
PyTypeObject* native_base(PyTypeObject* type) {
  while (type->tp_flags & Py_TPFLAGS_HEAPTYPE) type = type->tp_base;
  return type;
}

bool is_pure_iterator(PyTypeObject* type) {
  return !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) && type->tp_iternext != nullptr && type != &PyGen_Type;
}

bool is_same_key(Borrowed<> a, Borrowed<> b) {
  if (a == b) return true;
  return is_plain_constant(a) && is_plain_constant(b) &&
         py::check(PyObject_RichCompareBool(a.get(), b.get(), Py_EQ)) != 0;
}

}  // namespace

OutputBuilder::OutputBuilder(Interpreter& interpreter) : interpreter_(interpreter), world_(interpreter.world()) {}

OutputBuilder::Index OutputBuilder::emit(Step step) {
  BRAZE_CHECK(!step.object || !is_tensor(step.object.borrow()) || !world_.tracer.is_fake(step.object.borrow()),
              "a fake tensor in a recipe");
  data_.steps.push_back(std::move(step));
  return static_cast<Index>(data_.steps.size() - 1);
}

OutputBuilder::Index OutputBuilder::constant(Borrowed<> object) { return emit({Make::kConstant, share(object)}); }

OutputBuilder::Index OutputBuilder::fetch(SourceId source) {
  auto [it, is_new] = fetches_.try_emplace(source.index, 0);
  if (is_new) {
    it->second = emit({Make::kFetch, {}, {}, static_cast<std::uint32_t>(fetched_.size())});
    fetched_.push_back(source);
  }
  return it->second;
}

OutputBuilder::Index OutputBuilder::fail(Borrowed<> object, std::string reason) {
  if (!failure_) failure_ = Failure{std::move(reason), interpreter_.birth_of(object)};
  return emit({Make::kNull});
}

OutputBuilder::Index OutputBuilder::visit(Borrowed<> object) {
  if (!object) return emit({Make::kNull});
  if (auto it = made_.find(object.get()); it != made_.end()) return it->second;
  kept_.push_back(share(object));  // addresses stay unique while they are keys
  const Index index = make(object);
  made_[object.get()] = index;
  return index;
}

OutputBuilder::Index OutputBuilder::make(Borrowed<> object) {
  PyObject* p = object.get();
  if (Record* record = world_.record_of(object)) return fetch(record->source);
  if (Borrowed<> original = original_of(object)) return visit(original);
  if (world_.is_pinned(object) || is_plain_constant(object)) return constant(object);
  if (is_pending(object)) {
    const PendingNumber number = pending_number(object);
    if (number.op == 0) return fetch(number.source);
    const Index left = visit(number.left), right = visit(number.right);
    return emit({Make::kCall,
                 attribute(borrow(PyDict_GetItemString(PyImport_GetModuleDict(), "operator")),
                           number.op == '+' ? "add" : "sub"),
                 {left, right}});
  }
  if (is_tensor(object)) {
    if (!world_.tracer.is_fake(object)) return fail(object, "a real tensor made during the capture");
    tensors_.push_back(share(object));
    return emit({Make::kTensor, {}, {}, static_cast<std::uint32_t>(tensors_.size() - 1)});
  }
  if (PySlice_Check(p)) {
    auto* slice = reinterpret_cast<PySliceObject*>(p);
    return emit(
        {Make::kSlice, {}, {visit(borrow(slice->start)), visit(borrow(slice->stop)), visit(borrow(slice->step))}});
  }
  if (PyFunction_Check(p) || PyMethod_Check(p) || PyCFunction_Check(p) || Py_TYPE(p) == Known::get().partial ||
      Py_TYPE(p) == &PySuper_Type)
    return make_callable(object);
  if (is_identity_constant(object)) return constant(object);
  if (is_pure_iterator(Py_TYPE(p))) return make_iterator_steps(object);
  if (is_generator_object(object)) return fail(object, "a generator that is not finished");
  Index container = make_container(object);
  if (container != UINT32_MAX) return container;
  return make_instance(object);
}

std::vector<OutputBuilder::Index> OutputBuilder::visit_all(Borrowed<> sequence) {
  std::vector<Index> parts;
  Owned<> items = take(PySequence_Tuple(sequence.get()));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
    parts.push_back(visit(borrow(PyTuple_GET_ITEM(items.get(), i))));
  return parts;
}

std::vector<OutputBuilder::Index> OutputBuilder::visit_items(Borrowed<> dict) {
  std::vector<Index> parts;
  Owned<> keys = take(PyODict_Check(dict.get()) ? PySequence_Tuple(dict.get())
                      : nullptr == dict.get()   ? nullptr
                                                : PySequence_Tuple(take(PyDict_Keys(dict.get())).get()));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys.get()); ++i) {
    PyObject* key = PyTuple_GET_ITEM(keys.get(), i);
    parts.push_back(visit(borrow(key)));
    parts.push_back(visit(borrow(PyDict_GetItemWithError(dict.get(), key))));
  }
  return parts;
}

OutputBuilder::Index OutputBuilder::make_container(Borrowed<> object) {
  PyObject* p = object.get();
  const Known& known = Known::get();
  PyTypeObject* type = Py_TYPE(p);
  if (PyTuple_CheckExact(p)) return emit({Make::kTuple, {}, visit_all(object)});
  if (PyTuple_Check(p)) {
    if (type == known.size) return constant(object);
    if (type->tp_dictoffset != 0) return fail(object, std::string("a live ") + type->tp_name);
    return emit({Make::kTupleOf, share(as_object(type)), visit_all(object)});
  }
  if (PyFrozenSet_CheckExact(p)) return emit({Make::kFrozenSet, {}, visit_all(object)});
  auto deferred = [&](Step step) {
    const Index index = emit(std::move(step));
    unfilled_.emplace_back(share(object), index);
    return index;
  };
  if (PyList_CheckExact(p)) return deferred({Make::kList});
  if (PyDict_CheckExact(p)) return deferred({Make::kDict});
  if (PySet_CheckExact(p)) return deferred({Make::kSet});
  if (PyCell_Check(p)) return deferred({Make::kCell});
  if (type == known.deque)
    return deferred({Make::kDeque, share(as_object(type)), {visit(attribute(object, "maxlen").borrow())}});
  if (type == known.default_dict)
    return deferred({Make::kCall, share(as_object(type)), {visit(attribute(object, "default_factory").borrow())}});
  if (PyDict_Check(p) &&
      (type == known.ordered_dict || native_base(type) == known.ordered_dict || native_base(type) == &PyDict_Type))
    return deferred({Make::kDictLike, share(as_object(type))});
  if (type == &PyDictKeys_Type || type == &PyDictValues_Type || type == &PyDictItems_Type) {
    PyObject* dict = reinterpret_cast<PyObject*>(reinterpret_cast<_PyDictViewObject*>(p)->dv_dict);
    const char* name = type == &PyDictKeys_Type ? "keys" : type == &PyDictValues_Type ? "values" : "items";
    Owned<> method = attribute(borrow(as_object(Py_TYPE(dict))), name);
    return emit({Make::kCall, method, {visit(borrow(dict))}});
  }
  return UINT32_MAX;
}

OutputBuilder::Index OutputBuilder::make_callable(Borrowed<> object) {
  PyObject* p = object.get();
  if (PyMethod_Check(p))
    return emit({Make::kMethod, {}, {visit(borrow(PyMethod_GET_FUNCTION(p))), visit(borrow(PyMethod_GET_SELF(p)))}});
  if (Py_TYPE(p) == &PySuper_Type)
    return emit({Make::kSuper,
                 {},
                 {visit(attribute(object, "__thisclass__").borrow()), visit(attribute(object, "__self__").borrow())}});
  if (PyCFunction_Check(p)) {
    PyObject* self = PyCFunction_GET_SELF(p);
    if (self == nullptr || PyModule_Check(self) || PyType_Check(self)) return constant(object);
    if (Py_TYPE(self)->tp_flags & Py_TPFLAGS_HEAPTYPE) return fail(object, "a bound native method of an object");
    return emit({Make::kAttribute, attribute(object, "__name__"), {visit(borrow(self))}});
  }
  if (Py_TYPE(p) == Known::get().partial) {
    Owned<> keywords = attribute(object, "keywords");
    std::vector<Index> parts = {visit(attribute(object, "func").borrow())};
    for (Index part : visit_all(attribute(object, "args").borrow())) parts.push_back(part);
    if (PyDict_GET_SIZE(keywords.get()) > 0) {
      parts.insert(parts.begin(), visit(keywords.borrow()));
      fill_pending();  // the partial copies its keywords
      return emit({Make::kPartialKeywords, share(as_object(Py_TYPE(p))), std::move(parts)});
    }
    return emit({Make::kPartial, share(as_object(Py_TYPE(p))), std::move(parts)});
  }
  auto* f = reinterpret_cast<PyFunctionObject*>(p);
  const Index index = emit({Make::kFunction, share(f->func_code), {constant(borrow(f->func_globals))}});
  unfilled_.emplace_back(share(object), index);
  return index;
}

/// Native iterators tell how to make them again: (callable, arguments[, state]).
OutputBuilder::Index OutputBuilder::make_iterator_steps(Borrowed<> object) {
  Owned<> reduced = Owned<>::steal(PyObject_CallMethod(object.get(), "__reduce__", nullptr));
  if (!reduced || !PyTuple_Check(reduced.get()) || PyTuple_GET_SIZE(reduced.get()) < 2) {
    PyErr_Clear();
    return fail(object, std::string("a live iterator of type ") + type_of(object)->tp_name);
  }
  kept_.push_back(reduced);
  Index made = emit(
      {Make::kCall, share(PyTuple_GET_ITEM(reduced.get(), 0)), visit_all(borrow(PyTuple_GET_ITEM(reduced.get(), 1)))});
  if (PyTuple_GET_SIZE(reduced.get()) > 2 && PyTuple_GET_ITEM(reduced.get(), 2) != Py_None)
    made = emit({Make::kSetState, {}, {made, visit(borrow(PyTuple_GET_ITEM(reduced.get(), 2)))}});
  fill_pending();  // an iterator over a list must find it filled
  return made;
}

OutputBuilder::Index OutputBuilder::make_instance(Borrowed<> object) {
  PyTypeObject* type = type_of(object);
  if (PyExceptionInstance_Check(object.get())) {
    const Index index = emit({Make::kException, share(as_object(type)), visit_all(attribute(object, "args").borrow())});
    unfilled_.emplace_back(share(object), index);
    return index;
  }
  if (type == Known::get().finfo || type == Known::get().iinfo) {
    Owned<> name = attribute(object, "dtype");
    Owned<> dtype =
        attribute(borrow(PyDict_GetItemString(PyImport_GetModuleDict(), "torch")), utf8(name.borrow()).c_str());
    return emit({Make::kCall, share(as_object(type)), {constant(dtype.borrow())}});
  }
  const bool is_plain = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) && native_base(type) == &PyBaseObject_Type &&
                        type->tp_finalize == nullptr && type->tp_del == nullptr;
  if (!is_plain && type != Known::get().simple_namespace)
    return fail(object, std::string("a live object of type ") + type->tp_name);
  const Index index = emit({Make::kInstance, share(as_object(type))});
  unfilled_.emplace_back(share(object), index);
  return index;
}

/// Attributes and member slots of a fresh instance.
void OutputBuilder::fill_instance(Borrowed<> object, Index target) {
  PyTypeObject* type = type_of(object);
  if (Owned<> dict = instance_dict(object); dict && PyDict_GET_SIZE(dict.get()) > 0) {
    std::vector<Index> parts = visit_items(dict.borrow());
    parts.insert(parts.begin(), target);
    emit({Make::kFillAttributes, {}, std::move(parts)});
  }
  PyObject* mro = type->tp_mro;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
    if (!(base->tp_flags & Py_TPFLAGS_HEAPTYPE)) continue;
    PyObject *name = nullptr, *member = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(base->tp_dict, &at, &name, &member);) {
      if (Py_TYPE(member) != &PyMemberDescr_Type) continue;
      Owned<> value = Owned<>::steal(Py_TYPE(member)->tp_descr_get(member, object.get(), as_object(type)));
      if (value) emit({Make::kFillSlot, share(member), {target, visit(value.borrow())}});
      else PyErr_Clear();
    }
  }
}

void OutputBuilder::fill_pending() {
  while (!unfilled_.empty()) {
    auto [object, target] = std::move(unfilled_.back());
    unfilled_.pop_back();
    PyObject* p = object.get();
    auto with = [target = target](std::vector<Index> parts) {
      parts.insert(parts.begin(), target);
      return parts;
    };
    if (PyList_CheckExact(p)) {
      if (PyList_GET_SIZE(p) > 0) emit({Make::kFillList, {}, with(visit_all(object.borrow()))});
    } else if (PyDict_Check(p)) {
      if (PyDict_GET_SIZE(p) > 0) emit({Make::kFillDict, {}, with(visit_items(object.borrow()))});
      if (!PyDict_CheckExact(p)) fill_instance(object.borrow(), target);
    } else if (PySet_CheckExact(p)) {
      if (PySet_GET_SIZE(p) > 0) emit({Make::kFillSet, {}, with(visit_all(object.borrow()))});
    } else if (Py_TYPE(p) == Known::get().deque) {
      emit({Make::kFillDeque, {}, with(visit_all(object.borrow()))});
    } else if (PyCell_Check(p)) {
      if (PyCell_GET(p) != nullptr) emit({Make::kFillCell, {}, with({visit(borrow(PyCell_GET(p)))})});
    } else if (PyFunction_Check(p)) {
      auto* f = reinterpret_cast<PyFunctionObject*>(p);
      std::vector<Index> parts;
      for (PyObject* part : {f->func_closure, f->func_defaults, f->func_kwdefaults, f->func_annotations, f->func_name,
                             f->func_qualname, f->func_doc, f->func_dict})
        parts.push_back(visit(borrow(part)));
      emit({Make::kFillFunction, {}, with(std::move(parts))});
    } else {
      fill_instance(object.borrow(), target);
    }
  }
}

void OutputBuilder::returns(Borrowed<> value) {
  data_.result = visit(value);
  fill_pending();
}

/// A frame of torch's Module._wrapped_call_impl or _call_impl that waits in its call of the next one.
FramePlan OutputBuilder::module_frame(Borrowed<> function, const Frame& frame, bool is_last_call) {
  FramePlan plan;
  plan.code = Owned<PyCodeObject>::share(reinterpret_cast<PyCodeObject*>(function.as<PyFunctionObject>()->func_code));
  plan.function = constant(function);
  const py::CodeInfo& info = py::CodeInfo::of(plan.code.borrow());
  for (int pc : info.starts()) {
    if (info.at(pc).opcode != py::Opcode::CALL_FUNCTION_EX || (plan.call_pc >= 0 && !is_last_call)) continue;
    plan.call_pc = pc;
    plan.pc = info.at(pc).next;
  }
  const auto* kinds = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(plan.code->co_localspluskinds));
  for (int i = 0; i < plan.code->co_nlocalsplus; ++i) {
    const std::string name = utf8(borrow(PyTuple_GET_ITEM(plan.code->co_localsplusnames, i)));
    Owned<> value = name == "self"     ? frame.module
                    : name == "args"   ? frame.positional
                    : name == "kwargs" ? frame.keywords
                                       : Owned<>{};
    if (name == "forward_call") value = take(PyMethod_New(Owned<>(frame.function).get(), frame.module.get()));
    if (kinds[i] & CO_FAST_CELL) value = take(PyCell_New(value.get()));
    plan.slots.push_back(visit(value.borrow()));
  }
  return plan;
}

void OutputBuilder::add_module_frames(const Frame& frame) {
  const Known& known = Known::get();
  FramePlan outer = module_frame(known.module_wrapped_call.borrow(), frame, true);
  FramePlan inner = module_frame(known.module_call_impl.borrow(), frame, false);
  if (outer.call_pc < 0 || inner.call_pc < 0) return;
  data_.frames.push_back(std::move(outer));
  data_.frames.push_back(std::move(inner));
}

void OutputBuilder::stops(bool with_module_frames) {
  data_.returns = false;
  for (Frame& f : interpreter_.frames()) {
    if (f.module && with_module_frames) add_module_frames(f);
    FramePlan plan;
    plan.code = f.code;
    plan.function = visit(Owned<>(f.function).borrow());
    const bool is_last = &f == &interpreter_.frames().back();
    plan.pc = is_last ? f.pc : f.pc;
    plan.call_pc = is_last ? -1 : f.call_pc;
    for (Value& value : f.slots)
      plan.slots.push_back(value.lazy.is_none() ? visit(value.object.borrow())
                           : value.object       ? fetch(value.lazy)
                                                : emit({Make::kNull}));
    data_.frames.push_back(std::move(plan));
  }
  fill_pending();
}

void OutputBuilder::native_state(const NativeState& before, const NativeState& after) {
  for (auto& [function, args] : before.changes_to(after))
    data_.effects.push_back({Make::kNativeState, function, {constant(args.borrow())}});
}

void OutputBuilder::effects() {
  for (const auto& record : world_.records()) {
    PyObject* visible = record->visible.get();
    switch (record->kind) {
      case RecordKind::kDict: dict_effect(*record); break;
      case RecordKind::kList:
      case RecordKind::kDeque: list_effect(*record); break;
      case RecordKind::kSet:
        if (record->filled && PySet_Check(visible) && !record->before.empty() &&
            py::check(PyObject_RichCompareBool(visible, record->before[0].get(), Py_EQ)) == 0) {
          std::vector<Index> parts = {fetch(record->source)};
          for (Index part : visit_all(record->visible.borrow())) parts.push_back(part);
          data_.effects.push_back({Make::kReplaceSet, {}, std::move(parts)});
          note_distinct(*record);
        }
        break;
      case RecordKind::kCell:
        if (record->filled && PyCell_GET(visible) != record->before[0].get()) {
          data_.effects.push_back({Make::kStoreCell, {}, {fetch(record->source), visit(borrow(PyCell_GET(visible)))}});
          note_distinct(*record);
        }
        break;
      case RecordKind::kInstance:
        for (auto& [member, value] : record->slots) {
          data_.effects.push_back({Make::kStoreSlot, member, {fetch(record->source), visit(value.borrow())}});
          note_distinct(*record);
        }
        break;
      default: break;
    }
  }
  fill_pending();
}

void OutputBuilder::list_effect(Record& record) {
  if (!record.filled) return;
  Owned<> now = take(PySequence_Tuple(record.visible.get()));
  const std::size_t n = static_cast<std::size_t>(PyTuple_GET_SIZE(now.get()));
  std::size_t same = 0;
  while (same < n && same < record.before.size() &&
         PyTuple_GET_ITEM(now.get(), static_cast<Py_ssize_t>(same)) == record.before[same].get())
    ++same;
  if (same == n && same == record.before.size()) return;
  const bool is_list = record.kind == RecordKind::kList;
  std::vector<Index> parts = {fetch(record.source)};
  for (std::size_t i = is_list ? same : 0; i < n; ++i)
    parts.push_back(visit(borrow(PyTuple_GET_ITEM(now.get(), static_cast<Py_ssize_t>(i)))));
  data_.effects.push_back({is_list ? Make::kReplaceList : Make::kReplaceDeque,
                           {},
                           std::move(parts),
                           static_cast<std::uint32_t>(is_list ? same : 0)});
  note_distinct(record);
}

void OutputBuilder::dict_effect(Record& record) {
  Borrowed<> visible = record.visible.borrow();
  if (!record.filled) {
    if (record.writes.empty()) return;
    const Index target = fetch(record.source);
    for (const Owned<>& key : record.writes) {
      Borrowed<> value = borrow(PyDict_GetItemWithError(visible.get(), key.get()));
      data_.effects.push_back({Make::kStoreItem, {}, {target, visit(key.borrow()), visit(value)}});
    }
    return note_distinct(record);
  }
  Owned<> keys =
      take(PySequence_Tuple(PyODict_Check(visible.get()) ? visible.get() : take(PyDict_Keys(visible.get())).get()));
  const std::size_t n = static_cast<std::size_t>(PyTuple_GET_SIZE(keys.get())), old = record.before.size() / 2;
  bool is_prefix = n >= old;
  for (std::size_t i = 0; i < old && is_prefix; ++i)
    is_prefix =
        is_same_key(borrow(PyTuple_GET_ITEM(keys.get(), static_cast<Py_ssize_t>(i))), record.before[2 * i].borrow());
  auto value_at = [&](std::size_t i) {
    return borrow(PyDict_GetItemWithError(visible.get(), PyTuple_GET_ITEM(keys.get(), static_cast<Py_ssize_t>(i))));
  };
  if (is_prefix) {
    bool is_changed = false;
    for (std::size_t i = 0; i < n; ++i) {
      if (i < old && value_at(i).get() == record.before[2 * i + 1].get()) continue;
      is_changed = true;
      Borrowed<> key = borrow(PyTuple_GET_ITEM(keys.get(), static_cast<Py_ssize_t>(i)));
      data_.effects.push_back({Make::kStoreItem, {}, {fetch(record.source), visit(key), visit(value_at(i))}});
    }
    if (is_changed) note_distinct(record);
    return;
  }
  std::vector<Index> parts = {fetch(record.source)};
  for (std::size_t i = 0; i < n; ++i) {
    parts.push_back(visit(borrow(PyTuple_GET_ITEM(keys.get(), static_cast<Py_ssize_t>(i)))));
    parts.push_back(visit(value_at(i)));
  }
  data_.effects.push_back({Make::kReplaceDict, {}, std::move(parts)});
  note_distinct(record);
}

/// Another object of the same type must not turn out to be this one on a later call.
void OutputBuilder::note_distinct(const Record& changed) {
  for (const auto& other : world_.records())
    if (other.get() != &changed && other->kind == changed.kind &&
        type_of(other->visible.borrow()) == type_of(changed.visible.borrow()) &&
        !world_.are_known_distinct(changed, *other))
      world_.guards.require(GuardKind::kDistinct, changed.source, {}, other->source.index);
}

std::unique_ptr<Recipe> OutputBuilder::build(std::size_t offset) {
  for (Step& step : data_.steps)
    if (step.make == Make::kFetch) step.index += static_cast<std::uint32_t>(offset);
  return make_recipe(std::move(data_));
}

}  // namespace braze::capture
