// Calls: what kind of callable it is, and binding the arguments of Python functions.
#include "braze/capture/interpreter.h"
#include "braze/capture/transaction.h"
#include "braze/support/text.h"

namespace braze::capture {

namespace {

constexpr std::size_t kDeepestFrames = 150;

std::string name_of(Borrowed<> callable) {
  for (const char* attr : {"__qualname__", "__name__"})
    if (Owned<> name = attribute(callable, attr); name && PyUnicode_Check(name.get())) return utf8(name.borrow());
  return type_of(callable)->tp_name;
}

bool has_marker(Borrowed<PyFunctionObject> function) {
  PyObject* dict = function->func_dict;
  return dict != nullptr && (PyDict_GetItemString(dict, "_torchdynamo_disable") == Py_True ||
                             PyDict_GetItemString(dict, "_braze_disable") == Py_True);
}

std::string module_of(Borrowed<PyFunctionObject> function) {
  return utf8(borrow(PyDict_GetItemString(function->func_globals, "__name__")));
}

}  // namespace

void Interpreter::call(CallSite site, int operands) {
  const std::size_t caller = frames_.size() - 1;
  Owned<> result = begin_call(std::move(site));
  Frame& f = frames_[caller];
  f.slots.resize(f.slots.size() - static_cast<std::size_t>(operands));
  if (result) f.slots.push_back({std::move(result), SourceId()});
  else f.call_pc = f.current;
}

Owned<> Interpreter::call_now(Borrowed<> callable, std::vector<Owned<>> args, Borrowed<> names) {
  const std::size_t base = frames_.size();
  CallSite site{share(callable), std::move(args), share(names)};
  Owned<> result = begin_call(std::move(site));
  return result ? std::move(result) : nested(base);
}

Owned<> Interpreter::begin_call(CallSite site) {
  for (int hops = 0; hops < 20; ++hops) {
    PyObject* p = site.callable.get();
    if (PyMethod_Check(p)) {
      site.args.insert(site.args.begin(), share(PyMethod_GET_SELF(p)));
      site.callable = share(PyMethod_GET_FUNCTION(p));
      continue;
    }
    if (Py_TYPE(p) == Known::get().partial) {
      Owned<> function = attribute(site.callable.borrow(), "func"), args = attribute(site.callable.borrow(), "args"),
              keywords = attribute(site.callable.borrow(), "keywords");
      for (Py_ssize_t i = PyTuple_GET_SIZE(args.get()); i-- > 0;)
        site.args.insert(site.args.begin(), share(PyTuple_GET_ITEM(args.get(), i)));
      Owned<> names = take(PyList_New(0));
      std::vector<Owned<>> values;
      const std::size_t given = site.names ? static_cast<std::size_t>(PyTuple_GET_SIZE(site.names.get())) : 0;
      PyObject *key = nullptr, *value = nullptr;
      for (Py_ssize_t at = 0; PyDict_Next(keywords.get(), &at, &key, &value);) {
        if (site.names && py::check(PySequence_Contains(site.names.get(), key))) continue;
        py::check(PyList_Append(names.get(), key));
        values.push_back(share(value));
      }
      for (std::size_t i = 0; i < given; ++i)
        py::check(PyList_Append(names.get(), PyTuple_GET_ITEM(site.names.get(), static_cast<Py_ssize_t>(i))));
      site.args.insert(site.args.end() - static_cast<std::ptrdiff_t>(given), values.begin(), values.end());
      site.names = take(PyList_AsTuple(names.get()));
      site.callable = std::move(function);
      continue;
    }
    if (PyFunction_Check(p)) return call_function(site.callable.borrow().as<PyFunctionObject>(), site);
    if (PyType_Check(p)) return call_type(site.callable.borrow(), site);
    if (PyCFunction_Check(p)) return call_native(site);
    if (Py_TYPE(p) == &PyMethodDescr_Type || Py_TYPE(p) == &PyWrapperDescr_Type ||
        Py_TYPE(p) == &PyClassMethodDescr_Type)
      return call_method_of(site.callable.borrow(), site);
    if (Py_TYPE(p) == &_PyMethodWrapper_Type) {
      Owned<> self = attribute(site.callable.borrow(), "__self__"),
              name = attribute(site.callable.borrow(), "__name__");
      Owned<> owner = attribute(site.callable.borrow(), "__objclass__");
      Borrowed<> descriptor = look_up(reinterpret_cast<PyTypeObject*>(owner.get()), name.borrow());
      if (!descriptor || Py_TYPE(descriptor.get()) != &PyWrapperDescr_Type) world_.stop("a call of a method wrapper");
      site.args.insert(site.args.begin(), self);
      return call_method_of(descriptor, site);
    }
    if (Py_TYPE(p) == &PyStaticMethod_Type) {
      site.callable = attribute(site.callable.borrow(), "__func__");
      world_.pin(site.callable.borrow());
      continue;
    }
    return call_instance(site);
  }
  world_.stop("a call through too many wrappers");
}

/// An instance: torch.nn.Module's fast path, or its class's __call__.
Owned<> Interpreter::call_instance(CallSite& site) {
  Borrowed<> object = site.callable.borrow();
  PyTypeObject* type = type_of(object);
  if (type == Known::get().op_overload || type == Known::get().op_overload_packet) {
    const std::string name = utf8(attribute(object, "__name__").borrow());
    return call_torch(site, name.substr(0, name.find('.')));
  }
  if (type == Known::get().lru_cache_wrapper) return call_cached(site);
  Borrowed<> method = world_.type_look_up(type, interned("__call__"));
  if (!method) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not callable", type->tp_name);
    throw py::PyError();
  }
  if (method.get() == Known::get().module_call.get() && world_.record_of(object) != nullptr) return call_module(site);
  if (!PyFunction_Check(method.get())) world_.stop(std::string("a call of a ") + type->tp_name);
  CallSite inner{share(method), std::move(site.args), site.names};
  inner.args.insert(inner.args.begin(), share(object));
  return begin_call(std::move(inner));
}

/// functools.lru_cache: a library's function of constants with a constant result is called once, as eager calls it
/// (version checks, logger.warning_once); others keep their cache by being performed.
Owned<> Interpreter::call_cached(CallSite& site) {
  Borrowed<> function = site.callable.borrow();
  const std::string module = utf8(attribute(function, "__module__").borrow());
  bool is_library = module.rfind("transformers.", 0) == 0 || module.rfind("torch.", 0) == 0 ||
                    module.rfind("huggingface_hub.", 0) == 0;
  const bool is_logging = is_library && name_of(function).ends_with("_once") && !site.args.empty();
  for (std::size_t i = is_logging ? 1 : 0; i < site.args.size(); ++i)
    is_library =
        is_library && (is_plain_constant(site.args[i].borrow()) || is_identity_constant(site.args[i].borrow()));
  if (is_library) {
    const trace::Tracer::Pause pause(world_.tracer);
    Owned<> result = real_call(site);
    if (is_plain_constant(result.borrow()) || is_identity_constant(result.borrow())) {
      if (!is_plain_constant(result.borrow())) world_.pin(result.borrow());
      return result;
    }
  }
  world_.stop("a call of " + name_of(function) + ", which keeps a cache", "call it outside of the compiled function");
}

bool Interpreter::has_hooks(Borrowed<> module) {
  Owned<> dict = world_.dict_of(module);
  auto is_empty = [&](Borrowed<> owner, const char* name) {
    Owned<> hooks = world_.dict_get(owner, interned(name));
    return !hooks || hooks.get() == Py_None || (PyDict_Check(hooks.get()) && length(hooks.borrow()) == 0);
  };
  for (const char* name : {"_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks"})
    if (!is_empty(dict.borrow(), name)) return true;
  const Owned<>& globals = Known::get().torch_nn_module_globals;
  Owned<> visible = world_.wrap(world_.held(globals.borrow()), globals.borrow());
  for (const char* name :
       {"_global_backward_pre_hooks", "_global_backward_hooks", "_global_forward_hooks", "_global_forward_pre_hooks"})
    if (!is_empty(visible.borrow(), name)) return true;
  return false;
}

/// What Module.__call__ does: without hooks straight to forward, else PyTorch's own _call_impl, interpreted.
Owned<> Interpreter::call_module(CallSite& site) {
  Owned<> module = site.callable;
  Owned<> compiled = get_attribute(module.borrow(), interned("_compiled_call_impl"));
  if (compiled.get() != Py_None) {
    site.callable = std::move(compiled);
    return begin_call(std::move(site));
  }
  if (has_hooks(module.borrow())) {
    site.args.insert(site.args.begin(), module);
    site.callable = Known::get().module_call_impl;
    world_.pin(site.callable.borrow());
    return begin_call(std::move(site));
  }
  Owned<> self;
  Owned<> forward = load_attribute(module.borrow(), interned("forward"), &self);
  Owned<> positionals = take(PyTuple_New(static_cast<Py_ssize_t>(positional(site)))), keywords = take(PyDict_New());
  for (std::size_t i = 0; i < positional(site); ++i)
    PyTuple_SET_ITEM(positionals.get(), static_cast<Py_ssize_t>(i), share(site.args[i]).release());
  for (std::size_t i = positional(site); i < site.args.size(); ++i)
    py::check(PyDict_SetItem(keywords.get(),
                             PyTuple_GET_ITEM(site.names.get(), static_cast<Py_ssize_t>(i - positional(site))),
                             site.args[i].get()));
  if (self) site.args.insert(site.args.begin(), self);
  site.callable = std::move(forward);
  const std::size_t depth = frames_.size();
  Owned<> result = begin_call(std::move(site));
  if (!result && frames_.size() == depth + 1) {
    frame().module = std::move(module);
    frame().positional = std::move(positionals);
    frame().keywords = std::move(keywords);
  }
  return result;
}

Owned<> Interpreter::call_function(Borrowed<PyFunctionObject> function, CallSite& site) {
  const Known& known = Known::get();
  switch (known.meaning(function)) {
    case Meaning::kTrue:
      notes.push_back(place(Break{name_of(function) + "() is answered True", "", "", 0, ""}));
      return boolean(true);
    case Meaning::kFalse: return boolean(false);
    case Meaning::kTrusted:
    case Meaning::kTorchQuery: return torch_transaction(site);
    case Meaning::kBreak: world_.stop("a call of " + name_of(function));
    default: break;
  }
  if (has_marker(function)) world_.stop("a call of " + name_of(function) + ", which is marked as not to be compiled");
  if (function.object() == known.module_wrapped_call.get() && !site.args.empty() &&
      world_.record_of(site.args[0].borrow()) != nullptr && !site.names) {
    CallSite inner{site.args[0], {site.args.begin() + 1, site.args.end()}, site.names};
    return call_module(inner);
  }
  if (function->vectorcall != _PyFunction_Vectorcall)
    world_.stop("a call of " + name_of(function) + ", which is specialised natively");
  const std::string module = module_of(function);
  if (Known::is_trusted_module(module)) {
    bool is_safe = true;
    for (const Owned<>& arg : site.args) is_safe = is_safe && is_native(arg.borrow());
    if (is_safe) return torch_transaction(site);
  }
  if (module == "torch._tensor") {
    static const std::unordered_set<std::string> allowed = {
        "__rsub__",    "__rdiv__",     "__rtruediv__",  "__itruediv__", "__pow__",     "__ipow__",
        "__rpow__",    "__floordiv__", "__rfloordiv__", "__rmod__",     "__rmatmul__", "__rlshift__",
        "__rrshift__", "norm",         "split",         "stft",         "istft",       "__len__",
        "unflatten",   "dim_order",    "__truediv__",   "__eq__"};
    if (!allowed.contains(utf8(borrow(function->func_name))))
      world_.stop("a call of Tensor." + utf8(borrow(function->func_name)));
    return torch_transaction(site);
  }
  push_frame(function, site);
  const int flags = frames_.back().code->co_flags;
  if (flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) {
    Frame made = std::move(frames_.back());
    frames_.pop_back();
    if (!(flags & CO_GENERATOR)) world_.stop("a call of the coroutine " + name_of(function));
    return make_generator(std::move(made));
  }
  return {};
}

void Interpreter::push_frame(Borrowed<PyFunctionObject> function, CallSite& site) {
  if (frames_.size() > kDeepestFrames) world_.stop("a call chain of more than 150 frames");
  Frame callee;
  callee.function = Owned<PyFunctionObject>::share(function);
  callee.code = Owned<PyCodeObject>::share(reinterpret_cast<PyCodeObject*>(function->func_code));
  callee.info = &py::CodeInfo::of(callee.code.borrow());
  callee.slots.resize(static_cast<std::size_t>(callee.code->co_nlocalsplus));
  if (world_.is_pinned(function)) {
    SourceId code = world_.sources.add(SourceKind::kCode, world_.held(function));
    world_.guards.require(GuardKind::kIdentity, code, callee.code.borrow());
  }
  bind(callee, site);
  frames_.push_back(std::move(callee));
}

/// The default of positional parameter `index` (of `count`), or null.
Owned<> Interpreter::function_default(Borrowed<PyFunctionObject> function, int index, int count) {
  PyObject* defaults = function->func_defaults;
  const int first = count - (defaults == nullptr ? 0 : static_cast<int>(PyTuple_GET_SIZE(defaults)));
  if (index < first || defaults == nullptr) return {};
  Borrowed<> raw = borrow(PyTuple_GET_ITEM(defaults, index - first));
  if (!world_.is_pinned(function)) return share(raw);
  SourceId all = world_.sources.add(SourceKind::kDefaults, world_.held(function));
  world_.guards.require(GuardKind::kExactType, all, borrow(as_object(&PyTuple_Type)));
  world_.guards.require(GuardKind::kLength, all, {}, static_cast<std::uint32_t>(PyTuple_GET_SIZE(defaults)));
  return world_.wrap(world_.sources.add(SourceKind::kListItem, all, static_cast<std::uint32_t>(index - first)), raw);
}

void Interpreter::bind(Frame& callee, CallSite& site) {
  PyCodeObject* code = callee.code.get();
  Borrowed<PyFunctionObject> function = callee.function.borrow();
  const int positional = code->co_argcount, keyword_only = code->co_kwonlyargcount, total = positional + keyword_only;
  const int named = site.names ? static_cast<int>(PyTuple_GET_SIZE(site.names.get())) : 0;
  const int given = static_cast<int>(site.args.size()) - named;
  const bool has_varargs = code->co_flags & CO_VARARGS, has_keywords = code->co_flags & CO_VARKEYWORDS;
  auto slot = [&](int i) -> Value& { return callee.slots[static_cast<std::size_t>(i)]; };
  auto parameter = [&](int i) { return PyTuple_GET_ITEM(code->co_localsplusnames, i); };
  auto fail = [&](const std::string& text) {
    PyErr_Format(PyExc_TypeError, "%U() %s", function->func_qualname, text.c_str());
    throw py::PyError();
  };
  for (int i = 0; i < std::min(given, positional); ++i) slot(i).object = site.args[static_cast<std::size_t>(i)];
  if (given > positional && !has_varargs)
    fail(support::format("takes {} positional arguments but {} were given", positional, given));
  if (has_varargs) {
    Owned<> rest = take(PyTuple_New(std::max(0, given - positional)));
    for (int i = positional; i < given; ++i)
      PyTuple_SET_ITEM(rest.get(), i - positional, share(site.args[static_cast<std::size_t>(i)]).release());
    slot(total).object = std::move(rest);
  }
  Owned<> extra = has_keywords ? take(PyDict_New()) : Owned<>{};
  for (int k = 0; k < named; ++k) {
    PyObject* name = PyTuple_GET_ITEM(site.names.get(), k);
    const Owned<>& value = site.args[static_cast<std::size_t>(given + k)];
    int found = -1;
    for (int i = code->co_posonlyargcount; i < total && found < 0; ++i)
      if (parameter(i) == name || PyUnicode_Compare(parameter(i), name) == 0) found = i;
    if (found >= 0 && slot(found).object) fail("got multiple values for argument '" + utf8(borrow(name)) + "'");
    if (found >= 0) slot(found).object = value;
    else if (has_keywords) py::check(PyDict_SetItem(extra.get(), name, value.get()));
    else fail("got an unexpected keyword argument '" + utf8(borrow(name)) + "'");
  }
  if (has_keywords) slot(total + (has_varargs ? 1 : 0)).object = std::move(extra);
  for (int i = 0; i < positional; ++i) {
    if (slot(i).object) continue;
    Owned<> value = function_default(function, i, positional);
    if (!value) fail("missing 1 required positional argument: '" + utf8(borrow(parameter(i))) + "'");
    slot(i).object = std::move(value);
  }
  for (int i = positional; i < total; ++i) {
    if (slot(i).object) continue;
    Owned<> value;
    if (function->func_kwdefaults != nullptr) {
      Owned<> defaults = share(function->func_kwdefaults);
      if (world_.is_pinned(function))
        defaults = world_.wrap(world_.sources.add(SourceKind::kKwDefaults, world_.held(function)), defaults.borrow());
      value = world_.dict_get(defaults.borrow(), borrow(parameter(i)));
    }
    if (!value) fail("missing 1 required keyword-only argument: '" + utf8(borrow(parameter(i))) + "'");
    slot(i).object = std::move(value);
  }
}

/// Performs the call natively, with containers filled.
Owned<> Interpreter::real_call(CallSite& site) {
  std::vector<PyObject*> args;
  for (const Owned<>& arg : site.args) args.push_back(arg.get());
  const std::size_t named = site.names ? static_cast<std::size_t>(PyTuple_GET_SIZE(site.names.get())) : 0;
  Owned<> result = Owned<>::steal(
      PyObject_Vectorcall(site.callable.get(), args.data(), args.size() - named, named ? site.names.get() : nullptr));
  if (world_.pending || !result) throw py::PyError();
  return result;
}

}  // namespace braze::capture
