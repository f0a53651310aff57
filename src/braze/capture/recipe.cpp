// Running a recipe: make, fill, commit. Everything that can fail for want of memory comes before the first effect.
#include "braze/capture/recipe.h"

#include "braze/support/check.h"
#include "braze/support/text.h"

namespace braze::capture {

namespace {

using support::format;

constexpr const char* kMakeNames[] = {"null",
                                      "constant",
                                      "fetch",
                                      "tensor",
                                      "tuple",
                                      "tuple_of",
                                      "list",
                                      "dict",
                                      "set",
                                      "frozenset",
                                      "deque",
                                      "dict_like",
                                      "slice",
                                      "cell",
                                      "method",
                                      "function",
                                      "partial",
                                      "partial_keywords",
                                      "super",
                                      "instance",
                                      "exception",
                                      "call",
                                      "attribute",
                                      "set_state",
                                      "fill_list",
                                      "fill_dict",
                                      "fill_set",
                                      "fill_deque",
                                      "fill_cell",
                                      "fill_slot",
                                      "fill_attributes",
                                      "fill_function",
                                      "store_item",

                                      "replace_list",
                                      "replace_dict",
                                      "replace_set",
                                      "replace_deque",
                                      "store_cell",
                                      "store_slot",
                                      "native_state"};

PyTypeObject* as_type(const Owned<>& object) { return reinterpret_cast<PyTypeObject*>(object.get()); }

void store_in_dict(PyObject* dict, PyObject* key, PyObject* value) {
  py::check(PyODict_Check(dict) ? PyODict_SetItem(dict, key, value) : PyDict_SetItem(dict, key, value));
}

void clear_dict(PyObject* dict) {
  if (!PyODict_Check(dict)) return PyDict_Clear(dict);
  take(PyObject_CallMethodObjArgs(as_object(&PyODict_Type), interned("clear").get(), dict, nullptr));
}

class Runner {
 public:
  Runner(std::span<PyObject* const> fetched, std::span<const Owned<>> tensors) : fetched_(fetched), tensors_(tensors) {}
  void run(const Step& step);
  std::vector<Owned<>> values;

 private:
  PyObject* part(const Step& step, std::size_t i) const { return values[step.parts[i]].get(); }
  Owned<> tuple_of(const Step& step, std::size_t first = 0) const {
    Owned<> items = take(PyTuple_New(static_cast<Py_ssize_t>(step.parts.size() - first)));
    for (std::size_t i = first; i < step.parts.size(); ++i)
      PyTuple_SET_ITEM(items.get(), static_cast<Py_ssize_t>(i - first), Py_NewRef(part(step, i)));
    return items;
  }
  Owned<> make(const Step& step) const;
  Owned<> make_tuple(const Step& step) const;
  Owned<> make_function(const Step& step) const;
  void fill(const Step& step) const;
  void fill_function(const Step& step) const;
  std::span<PyObject* const> fetched_;
  std::span<const Owned<>> tensors_;
};

void Runner::run(const Step& step) {
  if (step.make >= Make::kFillList) {
    fill(step);
    values.emplace_back();
  } else {
    values.push_back(make(step));
  }
}

Owned<> Runner::make_tuple(const Step& step) const {
  Owned<> items = tuple_of(step);
  if (step.make == Make::kTuple) return items;
  PyTypeObject* type = as_type(step.object);
  Owned<> args = take(PyTuple_Pack(1, items.get()));
  const bool has_python_new = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) && look_up(type, "_fields");
  return take(has_python_new ? PyTuple_Type.tp_new(type, args.get(), nullptr)
                             : type->tp_new(type, args.get(), nullptr));
}

Owned<> Runner::make(const Step& step) const {
  Owned<> empty = take(PyTuple_New(0));
  switch (step.make) {
    case Make::kNull: return {};
    case Make::kConstant: return step.object;
    case Make::kFetch: return share(fetched_[step.index]);
    case Make::kTensor: return tensors_[step.index];
    case Make::kTuple:
    case Make::kTupleOf: return make_tuple(step);
    case Make::kList: return take(PyList_New(0));
    case Make::kDict: return take(PyDict_New());
    case Make::kSet: return take(PySet_New(nullptr));
    case Make::kFrozenSet: return take(PyFrozenSet_New(tuple_of(step).get()));
    case Make::kDeque:
      return take(PyObject_CallFunctionObjArgs(step.object.get(), empty.get(), part(step, 0), nullptr));
    case Make::kDictLike: return take(as_type(step.object)->tp_new(as_type(step.object), empty.get(), nullptr));
    case Make::kSlice: return take(PySlice_New(part(step, 0), part(step, 1), part(step, 2)));
    case Make::kCell: return take(PyCell_New(nullptr));
    case Make::kMethod: return take(PyMethod_New(part(step, 0), part(step, 1)));
    case Make::kFunction: return take(PyFunction_New(step.object.get(), part(step, 0)));
    case Make::kPartialKeywords: return take(PyObject_Call(step.object.get(), tuple_of(step, 1).get(), part(step, 0)));
    case Make::kPartial:
    case Make::kCall: return take(PyObject_CallObject(step.object.get(), tuple_of(step).get()));
    case Make::kSuper:
      return take(PyObject_CallFunctionObjArgs(as_object(&PySuper_Type), part(step, 0), part(step, 1), nullptr));
    case Make::kInstance: return take(as_type(step.object)->tp_alloc(as_type(step.object), 0));
    case Make::kException:
      return take(as_type(step.object)->tp_new(as_type(step.object), tuple_of(step).get(), nullptr));
    case Make::kAttribute: return take(PyObject_GetAttr(part(step, 0), step.object.get()));
    case Make::kSetState:
      take(PyObject_CallMethodOneArg(part(step, 0), interned("__setstate__").get(), part(step, 1)));
      return share(part(step, 0));
    default: BRAZE_CHECK(false, "step {} makes nothing", kMakeNames[static_cast<int>(step.make)]);
  }
  return {};
}

void Runner::fill_function(const Step& step) const {
  auto* f = reinterpret_cast<PyFunctionObject*>(part(step, 0));
  PyObject** slots[] = {&f->func_closure, &f->func_defaults, &f->func_kwdefaults, &f->func_annotations,
                        &f->func_name,    &f->func_qualname, &f->func_doc,        &f->func_dict};
  for (std::size_t i = 0; i + 1 < step.parts.size(); ++i)
    if (PyObject* value = part(step, i + 1)) Py_XSETREF(*slots[i], Py_NewRef(value));
}

void Runner::fill(const Step& step) const {
  PyObject* target = step.parts.empty() ? nullptr : part(step, 0);
  switch (step.make) {
    case Make::kFillList:
      for (std::size_t i = 1; i < step.parts.size(); ++i) py::check(PyList_Append(target, part(step, i)));
      return;
    case Make::kReplaceList: {
      Owned<> items = tuple_of(step, 1);
      py::check(PyList_SetSlice(target, step.index, PyList_GET_SIZE(target), items.get()));
      return;
    }
    case Make::kReplaceDict: clear_dict(target); [[fallthrough]];
    case Make::kFillDict:
      for (std::size_t i = 1; i + 1 < step.parts.size(); i += 2)
        store_in_dict(target, part(step, i), part(step, i + 1));
      return;
    case Make::kReplaceSet: py::check(PySet_Clear(target)); [[fallthrough]];
    case Make::kFillSet:
      for (std::size_t i = 1; i < step.parts.size(); ++i) py::check(PySet_Add(target, part(step, i)));
      return;
    case Make::kReplaceDeque: take(PyObject_CallMethod(target, "clear", nullptr)); [[fallthrough]];
    case Make::kFillDeque:
      for (std::size_t i = 1; i < step.parts.size(); ++i)
        take(PyObject_CallMethodOneArg(target, interned("append").get(), part(step, i)));
      return;
    case Make::kFillCell:
    case Make::kStoreCell: py::check(PyCell_Set(target, part(step, 1))); return;
    case Make::kFillSlot:
    case Make::kStoreSlot:
      py::check(Py_TYPE(step.object.get())->tp_descr_set(step.object.get(), target, part(step, 1)));
      return;
    case Make::kFillAttributes: {
      Owned<> dict = instance_dict(borrow(target));
      for (std::size_t i = 1; i + 1 < step.parts.size(); i += 2)
        py::check(PyDict_SetItem(dict.get(), part(step, i), part(step, i + 1)));
      return;
    }
    case Make::kFillFunction: return fill_function(step);
    case Make::kStoreItem: return store_in_dict(target, part(step, 1), part(step, 2));
    case Make::kNativeState: take(PyObject_CallObject(step.object.get(), part(step, 0))); return;
    default: BRAZE_CHECK(false, "step {} fills nothing", kMakeNames[static_cast<int>(step.make)]);
  }
}

class DataRecipe final : public Recipe {
 public:
  explicit DataRecipe(RecipeData data) : data_(std::move(data)) {}

  Owned<> finish(std::span<PyObject* const> fetched, std::span<const Owned<>> tensors, FrameChain& chain) override {
    Runner runner(fetched, tensors);
    runner.values.reserve(data_.steps.size());
    for (const Step& step : data_.steps) runner.run(step);
    FrameChain made = frames(runner);
    for (const Step& effect : data_.effects) {
      runner.run(effect);
      runner.values.pop_back();
    }
    chain = std::move(made);
    return data_.returns ? runner.values[data_.result] : Owned<>{};
  }

  std::string text() const override {
    std::string result;
    auto line = [&](const std::string& left, const Step& step) {
      result += left + kMakeNames[static_cast<int>(step.make)];
      if (step.make == Make::kFetch || step.make == Make::kTensor) result += format(" {}", step.index);
      if (step.object) result += " " + shown(step.object);
      std::string parts;
      for (std::uint32_t p : step.parts) parts += (parts.empty() ? "#" : ", #") + std::to_string(p);
      if (!parts.empty()) result += "(" + parts + ")";
      result += "\n";
    };
    for (std::size_t i = 0; i < data_.steps.size(); ++i) line(format("#{} = ", i), data_.steps[i]);
    for (const Step& effect : data_.effects) line("effect ", effect);
    if (data_.returns) result += format("return #{}\n", data_.result);
    for (const FramePlan& f : data_.frames) {
      result += "frame " + utf8(borrow(f.code->co_qualname)) + ":";
      for (std::uint32_t s : f.slots)
        result += data_.steps[s].make == Make::kNull ? std::string(" -") : format(" #{}", s);
      result += "\n";
    }
    return result;
  }

  int traverse(visitproc visit, void* arg) override {
    for (const std::vector<Step>* steps : {&data_.steps, &data_.effects})
      for (const Step& step : *steps)
        if (step.object)
          if (const int stop = visit(step.object.get(), arg)) return stop;
    return 0;
  }

 private:
  FrameChain frames(const Runner& runner) const {
    FrameChain chain;
    for (const FramePlan& plan : data_.frames) {
      FrameState state;
      state.function = Owned<>(runner.values[plan.function]).as<PyFunctionObject>();
      state.code = plan.code;
      state.pc = plan.pc;
      state.call_pc = plan.call_pc;
      for (std::uint32_t slot : plan.slots) state.slots.push_back(runner.values[slot]);
      chain.push_back(std::move(state));
    }
    return chain;
  }

  static std::string shown(const Owned<>& object) {
    if (PyType_Check(object.get())) return utf8(attribute(object.borrow(), "__qualname__").borrow());
    if (Owned<> name = attribute(object.borrow(), "__qualname__"); name && PyUnicode_Check(name.get()))
      return utf8(name.borrow());
    if (PyModule_Check(object.get())) return utf8(attribute(object.borrow(), "__name__").borrow());
    if (PyDict_Check(object.get())) return "globals";
    if (PyCode_Check(object.get())) return utf8(borrow(reinterpret_cast<PyCodeObject*>(object.get())->co_qualname));
    Owned<> text = take(PyObject_Repr(object.get()));
    return utf8(text.borrow()).substr(0, 80);
  }

  RecipeData data_;
};

}  // namespace

std::unique_ptr<Recipe> make_recipe(RecipeData data) { return std::make_unique<DataRecipe>(std::move(data)); }

}  // namespace braze::capture
