// Builtin functions and types that consume or wrap iterables; functions given to them are interpreted.
#include <string_view>

#include "braze/capture/callbacks.h"
#include "braze/capture/interpreter.h"
#include "braze/capture/transaction.h"

namespace braze::capture {

namespace {

/// What each positional argument is: i iterable, f function, v value; the last one repeats.
std::string_view shape_of(const std::string& name) {
  static const std::unordered_map<std::string, std::string_view> shapes = {
      {"list", "i"},          {"tuple", "i"},         {"set", "i"},
      {"frozenset", "i"},     {"enumerate", "iv"},    {"zip", "i"},
      {"map", "fi"},          {"filter", "fi"},       {"reversed", "i"},
      {"chain", "i"},         {"islice", "iv"},       {"count", "v"},
      {"repeat", "v"},        {"product", "i"},       {"zip_longest", "i"},
      {"accumulate", "if"},   {"starmap", "fi"},      {"takewhile", "fi"},
      {"dropwhile", "fi"},    {"combinations", "iv"}, {"combinations_with_replacement", "iv"},
      {"permutations", "iv"}, {"cycle", "i"},         {"filterfalse", "fi"},
      {"pairwise", "i"},      {"compress", "i"},      {"deque", "iv"}};
  auto it = shapes.find(name);
  return it == shapes.end() ? std::string_view{} : it->second;
}

}  // namespace

Owned<> Interpreter::smallest(CallSite& site, int comparison) {
  Borrowed<> key = keyword(site, "key"), fallback = keyword(site, "default");
  if (key && key.get() == Py_None) key = {};
  Owned<> items = take(PyList_New(0));
  if (positional(site) == 1) extend_list(items.borrow(), site.args[0].borrow());
  else
    for (std::size_t i = 0; i < positional(site); ++i) py::check(PyList_Append(items.get(), site.args[i].get()));
  Owned<> best, best_key;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    Owned<> item = share(PyList_GET_ITEM(items.get(), i));
    Owned<> value = key ? call_now(key, {item}) : item;
    if (best) {
      Owned<> better = compare(comparison, value.borrow(), best_key.borrow());
      if (!truth(better.borrow())) continue;
    }
    best = std::move(item), best_key = std::move(value);
  }
  if (best) return best;
  if (fallback) return share(fallback);
  py::raise(PyExc_ValueError,
            comparison == Py_LT ? "min() arg is an empty sequence" : "max() arg is an empty sequence");
}

/// `list` is fresh or a shadow. Keys are computed here and compared natively.
Owned<> Interpreter::sort(CallSite& site, Borrowed<> list, bool in_place) {
  Borrowed<> key = keyword(site, "key"), reverse = keyword(site, "reverse");
  const bool is_reversed = reverse && truth(reverse);
  Owned<> items = take(PyList_AsTuple(list.get()));
  const Py_ssize_t n = PyTuple_GET_SIZE(items.get());
  Owned<> keys = take(PyList_New(0)), order = take(PyList_New(0));  // indices, sorted by their keys: stable as Python's
  for (Py_ssize_t i = 0; i < n; ++i) {
    Owned<> item = share(PyTuple_GET_ITEM(items.get(), i));
    Owned<> value = key && key.get() != Py_None ? call_now(key, {item}) : item;
    py::check(PyList_Append(keys.get(), value.get()));
    py::check(PyList_Append(order.get(), take(PyLong_FromSsize_t(i)).get()));
  }
  if (!is_native(keys.borrow())) world_.stop("a sort of objects");
  if (is_fake_inside(keys.borrow())) world_.stop("a sort by tensors");
  Owned<> arguments = take(PyDict_New());
  py::check(
      PyDict_SetItemString(arguments.get(), "key", take(PyObject_GetAttrString(keys.get(), "__getitem__")).get()));
  py::check(PyDict_SetItemString(arguments.get(), "reverse", is_reversed ? Py_True : Py_False));
  Owned<> method = take(PyObject_GetAttrString(order.get(), "sort")), empty = take(PyTuple_New(0));
  take(PyObject_Call(method.get(), empty.get(), arguments.get()));
  Owned<> sorted = take(PyList_New(n));
  for (Py_ssize_t i = 0; i < n; ++i)
    PyList_SET_ITEM(sorted.get(), i,
                    share(PyTuple_GET_ITEM(items.get(), PyLong_AsSsize_t(PyList_GET_ITEM(order.get(), i)))).release());
  if (!in_place) return sorted;
  py::check(PyList_SetSlice(list.get(), 0, n, sorted.get()));
  return none();
}

/// Functions that reduce an iterable to one value.
Owned<> Interpreter::call_reducing(CallSite& site, const std::string& name) {
  const std::size_t given = positional(site);
  if (name == "min" || name == "max") {
    if (given == 0) py::raise(PyExc_TypeError, "expected at least 1 argument");
    return smallest(site, name == "min" ? Py_LT : Py_GT);
  }
  if ((name == "any" || name == "all") && given == 1) {
    Owned<> it = get_iterator(site.args[0].borrow());
    while (Owned<> item = next(it.borrow()))
      if (truth(item.borrow()) == (name == "any")) return boolean(name == "any");
    return boolean(name == "all");
  }
  if (name == "sum" && given >= 1) {
    Owned<> total = site.args.size() > 1 ? site.args[1] : take(PyLong_FromLong(0));
    Owned<> it = get_iterator(site.args[0].borrow());
    while (Owned<> item = next(it.borrow())) total = binary(0, total.borrow(), item.borrow());
    return total;
  }
  if (name == "reduce" && given >= 2) {
    Owned<> it = get_iterator(site.args[1].borrow());
    Owned<> total = given > 2 ? site.args[2] : next(it.borrow());
    if (!total) py::raise(PyExc_TypeError, "reduce() of empty iterable with no initial value");
    while (Owned<> item = next(it.borrow())) total = call_now(site.args[0].borrow(), {total, item});
    return total;
  }
  if (name == "sorted" && given == 1) {
    Owned<> list = take(PyList_New(0));
    extend_list(list.borrow(), site.args[0].borrow());
    return sort(site, list.borrow(), false);
  }
  if (name == "OrderedDict" || name == "defaultdict") {
    const std::size_t own = name == "defaultdict" && given > 0 ? 1 : 0;
    Owned<> dict = take(own ? PyObject_CallOneArg(site.callable.get(), site.args[0].get())
                            : PyObject_CallNoArgs(site.callable.get()));
    CallSite update{site.callable, {site.args.begin() + static_cast<std::ptrdiff_t>(own), site.args.end()}, site.names};
    update.args.insert(update.args.begin(), dict);
    call_dict_method(update, "update");
    return dict;
  }
  if (name == "reversed" && given == 1) {
    bool found = false;
    if (type_of(site.args[0].borrow())->tp_flags & Py_TPFLAGS_HEAPTYPE) {
      Owned<> result = call_special(site.args[0].borrow(), "__reversed__", {}, found);
      if (found) return result;
    }
    if (is_old_opaque(site.args[0].borrow()) || is_tensor(site.args[0].borrow()) || found)
      world_.stop("reversed() of an object");
    world_.fill(site.args[0].borrow());
    return real_call(site);
  }
  return {};
}

Owned<> Interpreter::call_iterating(CallSite& site, const std::string& name) {
  if (site.args.size() > positional(site) || !site.args.empty()) is_dirty_ = true;  // iterables may have moved on
  if (Owned<> result = call_reducing(site, name)) return result;
  const std::size_t given = positional(site);
  const std::string_view shape = shape_of(name);
  if (shape.empty()) world_.stop("a call of " + name + "()");
  for (std::size_t i = 0; i < given; ++i) {
    const char kind = shape[std::min(i, shape.size() - 1)];
    if (kind == 'i') site.args[i] = iterable_for_native(site.args[i].borrow());
    if (kind == 'f') site.args[i] = callable_for_native(site.args[i].borrow());
    if (kind == 'v' && name != "repeat" && !is_plain_constant(site.args[i].borrow()))
      world_.stop("a call of " + name + "() with an object");
  }
  for (std::size_t i = given; i < site.args.size(); ++i) {
    PyObject* key = PyTuple_GET_ITEM(site.names.get(), static_cast<Py_ssize_t>(i - given));
    if (PyUnicode_CompareWithASCIIString(key, "func") == 0) site.args[i] = callable_for_native(site.args[i].borrow());
  }
  if ((name == "set" || name == "frozenset") && given == 1) {
    Owned<> list = take(PyList_New(0));
    extend_list(list.borrow(), site.args[0].borrow());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) note_hash(borrow(PyList_GET_ITEM(list.get(), i)));
    site.args[0] = std::move(list);
  }
  Owned<> result = real_call(site);
  if (PyIter_Check(result.get())) note_birth(result.borrow());
  return result;
}

}  // namespace braze::capture
