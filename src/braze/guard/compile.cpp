// The second half of compiling guards: sources become nodes in pre-order, facts become guards and words of nodes.
#include <algorithm>

#include "braze/guard/compat.h"
#include "braze/guard/constant.h"
#include "braze/guard/program.h"
#include "braze/guard/rewrite.h"
#include "braze/py/py_error.h"
#include "braze/support/check.h"

#include <structmember.h>

namespace braze::guard {
namespace {

bool is_per_call(SourceKind kind) { return kind == SourceKind::kSlot || kind == SourceKind::kFunction; }
bool is_tagged(SourceKind kind) { return kind == SourceKind::kDictItem || kind == SourceKind::kTypeAttr; }
bool is_dynamic(SourceKind kind) { return kind == SourceKind::kDequeItem || kind == SourceKind::kTensorGrad; }

/// Reading the child means reading the parent's memory by the layout of its type.
bool reads_layout(SourceKind child) { return child != SourceKind::kType && child != SourceKind::kTensorGrad; }

bool reads_layout(GuardKind kind) {
  switch (kind) {
    case GuardKind::kExactType:
    case GuardKind::kLength:
    case GuardKind::kDictKeys:
    case GuardKind::kDictHas:
    case GuardKind::kSetContents:
    case GuardKind::kIteratorState:
    case GuardKind::kArrayMeta:
    case GuardKind::kTypeLacks: return true;
    default: return false;
  }
}

class Compiler {
 public:
  Compiler(SourceTable& sources, const Rewritten& facts, const TorchState& state) : sources_(sources), facts_(facts) {
    program_.state = state;
    program_.code = Owned<PyCodeObject>::share(sources.code());
  }

  Program run() {
    compat::verify_layouts();
    find_needed();
    place_nodes();
    place_guards();
    for (std::uint32_t n = 0; n < program_.nodes.size(); ++n) place_words(n);
    for (const SourceId id : facts_.fetched) program_.fetched.push_back(node_of_[id.index]);
    add_tensors();
    return std::move(program_);
  }

 private:
  void need(SourceId id) {
    for (; !id.is_none() && !needed_[id.index]; id = sources_[id].parent) needed_[id.index] = true;
  }

  void find_needed() {
    needed_.assign(sources_.size(), false);
    for (const Guard& g : facts_.guards) {
      BRAZE_CHECK(!g.source.is_none() && g.source.index < sources_.size(), "a guard has no source");
      need(g.source);
      if (g.kind == GuardKind::kAlias || g.kind == GuardKind::kDistinct) need(SourceId{g.index});
    }
    for (const SourceId id : facts_.fetched) need(id);
  }

  /// Children of a source have greater ids, so one backwards pass lists them in order; then a walk with a stack.
  void place_nodes() {
    std::vector<std::vector<std::uint32_t>> children(sources_.size());
    std::vector<std::uint32_t> stack;
    for (std::size_t i = sources_.size(); i-- > 0;) {
      if (!needed_[i]) continue;
      const SourceId parent = sources_[SourceId{i}].parent;
      (parent.is_none() ? stack : children[parent.index]).push_back(static_cast<std::uint32_t>(i));
    }
    node_of_.assign(sources_.size(), ~0U);
    while (!stack.empty()) {
      const std::uint32_t source = stack.back();
      stack.pop_back();
      place_node(SourceId{source});
      stack.insert(stack.end(), children[source].begin(), children[source].end());
    }
    for (std::uint32_t n = static_cast<std::uint32_t>(program_.nodes.size()); n-- > 0;) {
      Node& node = program_.nodes[n];
      node.end = std::max(node.end, n + 1);
      if (node.parent != ~0U) {
        Node& parent = program_.nodes[node.parent];
        parent.end = std::max(parent.end, node.end);
      }
    }
  }

  void place_node(SourceId id) {
    const Source& s = sources_[id];
    const auto n = static_cast<std::uint32_t>(program_.nodes.size());
    Node node;
    node.kind = s.kind;
    node.index = s.index;
    node.key = s.key;
    node.is_tagged = is_tagged(s.kind);
    node.is_dynamic = is_dynamic(s.kind);
    if (!s.parent.is_none()) {
      node.parent = node_of_[s.parent.index];
      Node& parent = program_.nodes[node.parent];
      parent.has_fixed_type |= reads_layout(s.kind);
      const bool outermost = node.is_dynamic && !parent.is_dynamic;
      if (outermost) program_.dynamic.push_back(n);
      node.is_dynamic |= parent.is_dynamic;
    }
    check_source(node);
    if (is_per_call(s.kind)) program_.roots.push_back(n);
    if (s.kind == SourceKind::kHeld) {
      program_.held.push_back(n);
      node.type = Owned<>::share(reinterpret_cast<PyObject*>(Py_TYPE(s.key.get())));
    }
    if (s.kind == SourceKind::kDictItem) node.hash = hash_of(s.key.get());
    node_of_[id.index] = n;
    program_.sources.push_back({s.kind, s.parent.is_none() ? SourceId{} : SourceId{node.parent}, s.index, s.key});
    program_.nodes.push_back(std::move(node));
  }

  static void check_source(const Node& node) {
    const bool is_root = is_per_call(node.kind) || node.kind == SourceKind::kHeld;
    BRAZE_CHECK(is_root == (node.parent == ~0U), "a source of kind {} has {} parent", static_cast<int>(node.kind),
                is_root ? "a" : "no");
    const bool wants_key =
        is_tagged(node.kind) || node.kind == SourceKind::kHeld || node.kind == SourceKind::kMemberSlot;
    BRAZE_CHECK(!wants_key || node.key, "a source of kind {} has no key", static_cast<int>(node.kind));
    if (node.kind != SourceKind::kMemberSlot) return;
    BRAZE_CHECK(Py_IS_TYPE(node.key.get(), &PyMemberDescr_Type), "a member slot's key is a {}",
                Py_TYPE(node.key.get())->tp_name);
    const int type = reinterpret_cast<PyMemberDescrObject*>(node.key.get())->d_member->type;
    BRAZE_CHECK(type == T_OBJECT_EX || type == T_OBJECT,
                "only slots of objects can be read through a member descriptor");
  }

  static Py_hash_t hash_of(PyObject* key) {
    BRAZE_CHECK(is_guardable_key(Borrowed<>::of(key)), "a dict key of type {} has a hash of its own",
                Py_TYPE(key)->tp_name);
    return PyObject_Hash(key);
  }

  void place_guards() {
    std::vector<CompiledGuard> guards;
    for (const Guard& g : facts_.guards) {
      CompiledGuard c{g.kind, node_of_[g.source.index], g.index, g.expected, {}, g.key, 0};
      if (place_special(c)) continue;
      Node& node = program_.nodes[c.node];
      node.has_fixed_type |= reads_layout(g.kind);
      if (g.kind == GuardKind::kExactType) fix_type(node, g.expected);
      if (g.kind == GuardKind::kNullSlot) node.may_be_null = true;
      if (g.kind == GuardKind::kDictHas) c.hash = hash_of(g.key.get());
      if (g.kind == GuardKind::kIdentity) weaken(c);
      if (g.kind == GuardKind::kConstant) {
        BRAZE_CHECK(is_constant(g.expected.get()), "a {} is not a constant", Py_TYPE(g.expected.get())->tp_name);
      }
      guards.push_back(std::move(c));
    }
    std::stable_sort(guards.begin(), guards.end(), [](const auto& a, const auto& b) { return a.node < b.node; });
    for (std::uint32_t i = 0; i < guards.size(); ++i) {
      Node& node = program_.nodes[guards[i].node];
      if (node.last_guard == 0) node.first_guard = i;
      node.last_guard = i + 1;
    }
    program_.guards = std::move(guards);
  }

  /// Guards that no walk evaluates.
  bool place_special(CompiledGuard& c) {
    switch (c.kind) {
      case GuardKind::kTensor: place_tensor(c); return true;
      case GuardKind::kAlias:
      case GuardKind::kDistinct: c.index = node_of_[c.index]; break;
      case GuardKind::kSetContents:
      case GuardKind::kIteratorState:
      case GuardKind::kArrayMeta: program_.nodes[c.node].has_fixed_type = true; break;
      default: return false;
    }
    program_.explicit_guards.push_back(std::move(c));
    return true;
  }

  /// Facts about one tensor add up.
  void place_tensor(CompiledGuard& c) {
    auto [known, is_new] = tensor_at_.emplace(c.node, program_.tensors.size());
    if (is_new) {
      program_.tensors.push_back(std::move(c));
    } else {
      program_.tensors[known->second].index |= c.index;
    }
  }

  void add_tensors() {
    for (CompiledGuard& c : program_.tensors) {
      aten::TensorGuard::Notes notes;
      notes.is_argument = is_argument(c.node);
      notes.has_storage_offset = (c.index & kTensorOffset) != 0;
      notes.is_view = (c.index & kTensorIsView) != 0;
      c.index = static_cast<std::uint32_t>(program_.tensor_guard.add(c.expected.borrow(), c.node, notes));
      c.expected = {};
    }
    program_.tensor_guard.seal();
  }

  /// Handed over in a slot, perhaps in a container: another one at each call, very likely.
  bool is_argument(std::uint32_t n) const {
    while (program_.nodes[n].kind == SourceKind::kListItem || program_.nodes[n].kind == SourceKind::kDictItem) {
      n = program_.nodes[n].parent;
    }
    return program_.nodes[n].kind == SourceKind::kSlot;
  }

  static void fix_type(Node& node, const Owned<>& type) {
    BRAZE_CHECK(!node.type || node.type == type, "a value is guarded to have two types");
    node.type = type;
  }

  static void weaken(CompiledGuard& c) {
    if (is_held_strongly(c.expected.get())) return;
    c.weak = Owned<>::steal(py::check(PyWeakref_NewRef(c.expected.get(), nullptr)));
    c.expected = {};
  }

  bool has_child(std::uint32_t n, SourceKind kind) const {
    const Node& node = program_.nodes[n];
    for (std::uint32_t c = n + 1; c < node.end; c = program_.nodes[c].end) {
      if (program_.nodes[c].kind == kind) return true;
    }
    return false;
  }

  bool has_guard(const Node& node, std::initializer_list<GuardKind> kinds) const {
    for (std::uint32_t g = node.first_guard; g < node.last_guard; ++g) {
      if (std::find(kinds.begin(), kinds.end(), program_.guards[g].kind) != kinds.end()) return true;
    }
    return false;
  }

  void add_word(WordRole role, std::uint32_t n) {
    program_.word_roles.push_back(role);
    program_.word_nodes.push_back(n);
  }

  /// A type word is not needed where the type is compared anyway (slots) or where neither the object nor its type can
  /// have changed while the version on the way to it stayed the same.
  bool needs_type_word(const Node& node) const {
    if (!node.has_fixed_type || is_per_call(node.kind)) return false;
    const bool can_be_replaced = !node.is_tagged && node.kind != SourceKind::kHeld;
    return can_be_replaced || !node.type || !compat::is_permanent(reinterpret_cast<PyTypeObject*>(node.type.get()));
  }

  void place_words(std::uint32_t n) {
    Node& node = program_.nodes[n];
    node.first_word = static_cast<std::uint32_t>(program_.word_roles.size());
    if (!node.is_dynamic) {
      if (node.parent != ~0U && !node.is_tagged) add_word(WordRole::kFetch, n);
      if (needs_type_word(node)) add_word(WordRole::kType, n);
      for (std::uint32_t g = node.first_guard; g < node.last_guard; ++g) {
        if (program_.guards[g].weak) add_word(WordRole::kWeak, n);
      }
      const bool is_dict =
          has_child(n, SourceKind::kDictItem) || has_guard(node, {GuardKind::kDictHas, GuardKind::kDictKeys});
      const bool is_sequence = has_child(n, SourceKind::kListItem);
      if (is_dict) add_word(WordRole::kDict, n);
      if (has_child(n, SourceKind::kTypeAttr) || has_guard(node, {GuardKind::kTypeLacks}))
        add_word(WordRole::kVersion, n);
      if (is_sequence) add_word(WordRole::kItems, n);
      if (is_sequence || (!is_dict && has_guard(node, {GuardKind::kLength}))) add_word(WordRole::kLength, n);
    }
    node.last_word = static_cast<std::uint32_t>(program_.word_roles.size());
    for (std::uint32_t g = node.first_guard; g < node.last_guard; ++g) {
      const CompiledGuard& keys = program_.guards[g];
      if (keys.kind == GuardKind::kDictKeys && may_be_ordered(node)) program_.explicit_guards.push_back(keys);
    }
  }

  /// The order of an OrderedDict changes without a new version.
  static bool may_be_ordered(const Node& node) {
    return !node.type || PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(node.type.get()), &PyODict_Type) != 0;
  }

  SourceTable& sources_;
  const Rewritten& facts_;
  Program program_;
  std::vector<bool> needed_;
  std::vector<std::uint32_t> node_of_;
  std::unordered_map<std::uint32_t, std::size_t> tensor_at_;
};

}  // namespace

bool is_held_strongly(PyObject* o) noexcept {
  return PyType_Check(o) || PyCode_Check(o) || is_constant(o) || PyType_SUPPORTS_WEAKREFS(Py_TYPE(o)) == 0;
}

bool is_guardable_key(Borrowed<> key) noexcept {
  return is_constant(key.get()) || Py_TYPE(key.get())->tp_hash == PyBaseObject_Type.tp_hash;
}

bool is_guardable_scalar(Borrowed<> object) noexcept {
  static constexpr std::string_view kTypes[] = {
      "numpy.bool",    "numpy.bool_",   "numpy.int8",    "numpy.int16",     "numpy.int32",     "numpy.int64",
      "numpy.uint8",   "numpy.uint16",  "numpy.uint32",  "numpy.uint64",    "numpy.longlong",  "numpy.ulonglong",
      "numpy.float16", "numpy.float32", "numpy.float64", "numpy.complex64", "numpy.complex128"};
  PyTypeObject* type = Py_TYPE(object.get());
  return PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE) &&
         std::find(std::begin(kTypes), std::end(kTypes), type->tp_name) != std::end(kTypes);
}

Program compile_guards(SourceTable& sources, std::span<const Guard> guards, std::span<const SourceId> fetched,
                       const TorchState& state) {
  const Rewritten facts = rewrite_guards(sources, guards, fetched);
  return Compiler(sources, facts, state).run();
}

}  // namespace braze::guard
