// Interning of sources and their texts for users.
#include "braze/guard/source.h"

#include "braze/guard/constant.h"
#include "braze/support/check.h"

namespace braze::guard {
namespace {

bool is_name_or_int(PyObject* key) { return PyUnicode_CheckExact(key) || PyLong_CheckExact(key); }

std::uint64_t key_hash(PyObject* key) {
  if (key == nullptr) return 0;
  if (is_name_or_int(key)) return static_cast<std::uint64_t>(PyObject_Hash(key));
  return reinterpret_cast<std::uintptr_t>(key) >> 4;
}

bool are_same_keys(PyObject* a, PyObject* b) {
  if (a == b) return true;
  return a != nullptr && b != nullptr && is_name_or_int(a) && are_equal_constants(a, b);
}

std::uint64_t mix(std::uint64_t h, std::uint64_t value) { return (h ^ value) * 0x9E3779B97F4A7C15ULL; }

std::string string_of(PyObject* text) {
  const char* chars = PyUnicode_AsUTF8(text);
  if (chars == nullptr) PyErr_Clear();
  return chars != nullptr ? chars : "?";
}

/// Writes the text of one source; looks at its ancestors to write `self.lin.weight` for three nested dict reads.
class Writer {
 public:
  Writer(std::span<const Source> sources, Borrowed<PyCodeObject> code) : sources_(sources), code_(code) {}

  std::string text(SourceId id) const {
    const Source& s = sources_[id.index];
    switch (s.kind) {
      case SourceKind::kSlot: return slot_text(s.index);
      case SourceKind::kFunction: return code_ ? string_of(code_->co_qualname) : "function";
      case SourceKind::kHeld: return held_text(s.key.get());
      case SourceKind::kGlobals: return text(s.parent) + ".__globals__";
      case SourceKind::kBuiltins: return text(s.parent) + ".__builtins__";
      case SourceKind::kClosureCell: return support::format("{}.__closure__[{}]", text(s.parent), s.index);
      case SourceKind::kCellContents: return cell_text(s);
      case SourceKind::kCode: return text(s.parent) + ".__code__";
      case SourceKind::kDefaults: return text(s.parent) + ".__defaults__";
      case SourceKind::kKwDefaults: return text(s.parent) + ".__kwdefaults__";
      case SourceKind::kMethodSelf: return text(s.parent) + ".__self__";
      case SourceKind::kMethodFunction: return text(s.parent) + ".__func__";
      case SourceKind::kType: return support::format("type({})", text(s.parent));
      case SourceKind::kInstanceDict: return text(s.parent) + ".__dict__";
      case SourceKind::kDictItem: return item_text(s);
      case SourceKind::kTypeAttr: return text(s.parent) + "." + string_of(s.key.get());
      case SourceKind::kMemberSlot:
        return text(s.parent) + "." + string_of(reinterpret_cast<PyDescrObject*>(s.key.get())->d_name);
      case SourceKind::kListItem:
      case SourceKind::kDequeItem: return support::format("{}[{}]", text(s.parent), s.index);
      case SourceKind::kTensorGrad: return text(s.parent) + ".grad";
      case SourceKind::kPartialFunc: return text(s.parent) + ".func";
      case SourceKind::kPartialArgs: return text(s.parent) + ".args";
      case SourceKind::kPartialKeywords: return text(s.parent) + ".keywords";
      case SourceKind::kWeakrefTarget: return text(s.parent) + "()";
      case SourceKind::kIteratorItem: return support::format("what {} iterates over", text(s.parent));
    }
    return "?";
  }

 private:
  std::string slot_text(std::uint32_t index) const {
    PyObject* names = code_ ? code_->co_localsplusnames : nullptr;
    if (names == nullptr || index >= static_cast<std::uint32_t>(PyTuple_GET_SIZE(names))) {
      return support::format("slot[{}]", index);
    }
    return string_of(PyTuple_GET_ITEM(names, index));
  }

  static std::string held_text(PyObject* object) {
    if (PyModule_Check(object)) {
      const char* name = PyModule_GetName(object);
      if (name == nullptr) PyErr_Clear();
      return name != nullptr ? name : "module";
    }
    return PyType_Check(object) ? reinterpret_cast<PyTypeObject*>(object)->tp_name : describe(object);
  }

  std::string cell_text(const Source& s) const {
    const Source& cell = sources_[s.parent.index];
    if (code_ && cell.kind == SourceKind::kClosureCell && sources_[cell.parent.index].kind == SourceKind::kFunction) {
      const auto free_from = static_cast<std::uint32_t>(code_->co_nlocalsplus - code_->co_nfreevars);
      return slot_text(free_from + cell.index);
    }
    return text(s.parent) + ".cell_contents";
  }

  bool is_module_table(const Source& s) const {
    if (s.kind != SourceKind::kDictItem || sources_[s.parent.index].kind != SourceKind::kInstanceDict) return false;
    if (!PyUnicode_CheckExact(s.key.get())) return false;
    const std::string name = string_of(s.key.get());
    return name == "_modules" || name == "_parameters" || name == "_buffers";
  }

  /// `owner.name`, or `owner[0]` for the children of a sequential module.
  static std::string member_text(const std::string& owner, const std::string& name) {
    const bool is_number = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    return is_number ? support::format("{}[{}]", owner, name) : owner + "." + name;
  }

  std::string item_text(const Source& s) const {
    const Source& dict = sources_[s.parent.index];
    if (PyUnicode_CheckExact(s.key.get())) {
      const std::string name = string_of(s.key.get());
      if (dict.kind == SourceKind::kGlobals || dict.kind == SourceKind::kBuiltins) return name;
      if (dict.kind == SourceKind::kInstanceDict) return member_text(text(dict.parent), name);
      if (is_module_table(dict)) return member_text(text(sources_[dict.parent.index].parent), name);
    }
    return support::format("{}[{}]", text(s.parent), describe(s.key.get()));
  }

  std::span<const Source> sources_;
  Borrowed<PyCodeObject> code_;
};

}  // namespace

std::string source_text(std::span<const Source> sources, SourceId at, Borrowed<PyCodeObject> code) {
  return Writer(sources, code).text(at);
}

SourceId SourceTable::add(SourceKind kind, SourceId parent, std::uint32_t index, Borrowed<> key) {
  BRAZE_CHECK(parent.is_none() || parent.index < sources_.size(), "source {} is not in the table", parent.index);
  std::uint64_t hash = mix(static_cast<std::uint64_t>(kind), parent.index);
  hash = mix(mix(hash, index), key_hash(key.get()));
  for (auto [it, end] = by_hash_.equal_range(hash); it != end; ++it) {
    const Source& s = sources_[it->second.index];
    if (s.kind == kind && s.parent == parent && s.index == index && are_same_keys(s.key.get(), key.get())) {
      return it->second;
    }
  }
  const SourceId id{sources_.size()};
  sources_.push_back({kind, parent, index, Owned<>::share(key)});
  by_hash_.emplace(hash, id);
  return id;
}

}  // namespace braze::guard
