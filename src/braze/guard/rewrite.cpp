// The first half of compiling guards: facts that are views of other facts become those, so that fewer kinds reach the
// program and equal objects are read once.
#include "braze/guard/rewrite.h"

#include <unordered_map>

#include "braze/py/py_error.h"
#include "braze/support/check.h"

namespace braze::guard {
namespace {

using py::check;

Owned<> str(const char* text) { return Owned<>::steal(check(PyUnicode_InternFromString(text))); }

class Rewriter {
 public:
  Rewriter(SourceTable& sources, std::span<const Guard> guards) : sources_(sources) {
    for (const Guard& g : guards) {
      if (g.kind == GuardKind::kExactType) types_.emplace(g.source, g.expected.borrow());
    }
    for (const Guard& g : guards) add(g);
  }

  SourceId source(SourceId id) {
    if (id.is_none()) return id;
    const auto known = renamed_.find(id);
    if (known != renamed_.end()) return known->second;
    const Source s = sources_[id];
    const SourceId parent = source(s.parent);
    SourceId result = id;
    const auto type = s.kind == SourceKind::kType ? types_.find(s.parent) : types_.end();
    if (type != types_.end()) {
      result = sources_.add(SourceKind::kHeld, {}, 0, type->second);  // one node for all objects of the type
    } else if (parent != s.parent) {
      result = sources_.add(s.kind, parent, s.index, s.key.borrow());
    }
    renamed_.emplace(id, result);
    return result;
  }

  std::vector<Guard> take() { return std::move(result_); }

 private:
  void add(const Guard& g) {
    switch (g.kind) {
      case GuardKind::kInstanceLacks: return add_lacks(g);
      case GuardKind::kEnvironment: return add_environment(g);
      case GuardKind::kNumpyScalar: return add_scalar(g);
      case GuardKind::kArrayMeta: return add_array(g);
      default: break;
    }
    Guard copy = g;
    copy.source = source(g.source);
    if (g.kind == GuardKind::kAlias || g.kind == GuardKind::kDistinct) {
      copy.index = source(SourceId{g.index}).index;
    }
    result_.push_back(std::move(copy));
  }

  /// No key in the instance's dict. Without a dict in its type there is nothing to guard but the type.
  void add_lacks(const Guard& g) {
    const auto type = types_.find(g.source);
    const bool has_dict = type == types_.end() || has_instance_dict(type->second);
    if (!has_dict) return;
    const SourceId dict = source(sources_.add(SourceKind::kInstanceDict, g.source));
    result_.push_back({GuardKind::kDictHas, dict, 0, {}, g.key});
  }

  static bool has_instance_dict(Borrowed<> type) {
    return reinterpret_cast<PyTypeObject*>(type.get())->tp_dictoffset != 0;
  }

  /// os.environ._data holds the encoded environment that os.environ shows.
  void add_environment(const Guard& g) {
    auto os = Owned<>::steal(check(PyImport_ImportModule("os")));
    auto environ = Owned<>::steal(check(PyObject_GetAttrString(os.get(), "environ")));
    const SourceId module = sources_.add(SourceKind::kHeld, {}, 0, os.borrow());
    const SourceId names = sources_.add(SourceKind::kInstanceDict, module);
    const SourceId object = sources_.add(SourceKind::kDictItem, names, 0, str("environ").borrow());
    result_.push_back(
        {GuardKind::kExactType, object, 0, Owned<>::share(reinterpret_cast<PyObject*>(Py_TYPE(environ.get()))), {}});
    const SourceId attributes = sources_.add(SourceKind::kInstanceDict, object);
    const SourceId data = sources_.add(SourceKind::kDictItem, attributes, 0, str("_data").borrow());
    auto key = Owned<>::steal(check(PyUnicode_EncodeFSDefault(g.key.get())));
    if (g.expected.get() == nullptr || g.expected.get() == Py_None) {
      result_.push_back({GuardKind::kDictHas, data, 0, {}, key});
      return;
    }
    auto value = Owned<>::steal(check(PyUnicode_EncodeFSDefault(g.expected.get())));
    const SourceId item = sources_.add(SourceKind::kDictItem, data, 0, key.borrow());
    result_.push_back({GuardKind::kConstant, item, 0, std::move(value), {}});
  }

  void add_scalar(const Guard& g) {
    BRAZE_CHECK(is_guardable_scalar(g.expected.borrow()), "a {} cannot be guarded by its bits",
                Py_TYPE(g.expected.get())->tp_name);
    auto size = Owned<>::steal(check(PyObject_GetAttrString(g.expected.get(), "itemsize")));
    const auto bytes = static_cast<std::uint32_t>(PyLong_AsUnsignedLong(size.get()));
    result_.push_back({GuardKind::kNumpyScalar, source(g.source), bytes, g.expected, {}});
  }

  /// The example array is not kept: (type, dtype, sizes + strides, flags).
  void add_array(const Guard& g) {
    auto get = [&](const char* name) { return Owned<>::steal(check(PyObject_GetAttrString(g.expected.get(), name))); };
    auto flags_object = get("flags");
    auto flags = Owned<>::steal(check(PyObject_GetAttrString(flags_object.get(), "num")));
    auto shape = get("shape");
    auto strides = get("strides");
    auto both = Owned<>::steal(check(PySequence_Concat(shape.get(), strides.get())));
    auto dtype = get("dtype");
    auto packed =
        Owned<>::steal(check(PyTuple_Pack(4, Py_TYPE(g.expected.get()), dtype.get(), both.get(), flags.get())));
    result_.push_back({GuardKind::kArrayMeta, source(g.source), 0, std::move(packed), {}});
  }

  SourceTable& sources_;
  std::unordered_map<SourceId, Borrowed<>> types_;
  std::unordered_map<SourceId, SourceId> renamed_;
  std::vector<Guard> result_;
};

}  // namespace

Rewritten rewrite_guards(SourceTable& sources, std::span<const Guard> guards, std::span<const SourceId> fetched) {
  Rewriter rewriter(sources, guards);
  Rewritten result;
  for (const SourceId id : fetched) result.fetched.push_back(rewriter.source(id));
  result.guards = rewriter.take();
  return result;
}

}  // namespace braze::guard
