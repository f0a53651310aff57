// The check itself: compare words; where one differs, walk its node's subtree again.
#include <algorithm>

#include "braze/guard/compat.h"
#include "braze/guard/constant.h"
#include "braze/guard/explain.h"
#include "braze/guard/program.h"
#include "braze/support/check.h"

namespace braze::guard {
namespace {

/// The value of a node that must be walked again before anything below it is trusted.
PyObject* const kUnknown = reinterpret_cast<PyObject*>(2);
/// No word of memory that is compared holds this.
constexpr std::uint64_t kNever = ~std::uint64_t{0};
/// What the items of a tuple are compared with: they are part of the tuple itself.
constexpr std::uint64_t kNothing = 0;

std::uint64_t read(const void* address) noexcept { return *static_cast<const volatile std::uint64_t*>(address); }

class CompiledGuardSet final : public GuardSet {
 public:
  explicit CompiledGuardSet(Program program)
      : p_(std::move(program)),
        values_(p_.nodes.size(), kUnknown),
        words_(p_.word_roles.size(), Word{&kNothing, kNever}) {
    for (const CompiledGuard& g : p_.guards) {
      if (g.weak) weak_.push_back(g.weak.get());
    }
  }

  bool check(PyObject* const* slots, PyFunctionObject* function, PyObject** out) noexcept override {
    if (is_busy_) return false;  // user code ran inside a look-up
    is_busy_ = true;
    const bool all_hold = check_roots(slots, function) && check_words() && check_dynamic() && check_explicit() &&
                          p_.tensor_guard.check(values_.data());
    is_busy_ = false;
    if (!all_hold) return false;
    for (std::size_t i = 0; i < p_.fetched.size(); ++i) out[i] = values_[p_.fetched[i]];
    return true;
  }

  const TorchState& state() const noexcept override { return p_.state; }
  std::size_t fetched() const override { return p_.fetched.size(); }

  std::string explain_failure(PyObject* const* slots, PyFunctionObject* function) override {
    return guard::explain_failure(p_, slots, function);
  }

  std::vector<std::string> texts() const override { return guard_texts(p_); }

  bool is_dead() const noexcept override {
    return std::any_of(weak_.begin(), weak_.end(), [](PyObject* w) { return PyWeakref_GET_OBJECT(w) == Py_None; });
  }

  int traverse(visitproc visit, void* arg) override;

 private:
  bool check_roots(PyObject* const* slots, PyFunctionObject* function) noexcept {
    if (!held_are_walked_) {
      for (const std::uint32_t n : p_.held) {
        if (!walk(n, p_.nodes[n].key.get())) return false;
      }
      held_are_walked_ = true;
    }
    for (const std::uint32_t n : p_.roots) {
      const Node& node = p_.nodes[n];
      PyObject* value = node.kind == SourceKind::kSlot ? slots[node.index] : reinterpret_cast<PyObject*>(function);
      if (value == values_[n] && has_type(node, value)) continue;
      if (!walk(n, value)) return false;
    }
    return true;
  }

  bool check_words() noexcept {
    const Word* const begin = words_.data();
    const Word* const end = begin + words_.size();
    for (const Word* w = begin; w != end; ++w) {
      if (read(w->address) == w->expected) [[likely]]
        continue;
      if (!repair(static_cast<std::uint32_t>(w - begin))) return false;
    }
    return true;
  }

  bool check_dynamic() noexcept {
    for (const std::uint32_t n : p_.dynamic) {
      for (std::uint32_t i = n; i < p_.nodes[n].end; ++i) {
        PyObject* value = fetch(p_.nodes[i], values_[p_.nodes[i].parent]);
        if (!accept(i, value)) return false;
        values_[i] = value;
      }
    }
    return true;
  }

  bool check_explicit() noexcept {
    for (const CompiledGuard& g : p_.explicit_guards) {
      PyObject* value = values_[g.node];
      const bool is_like = g.kind == GuardKind::kAlias      ? value == values_[g.index]
                           : g.kind == GuardKind::kDistinct ? value != values_[g.index]
                                                            : holds(g, value);
      if (!is_like) return false;
    }
    return true;
  }

  static bool has_type(const Node& node, PyObject* value) noexcept {
    if (!node.has_fixed_type) return true;
    return value != nullptr && Py_TYPE(value) == reinterpret_cast<PyTypeObject*>(node.type.get());
  }

  /// The word differs: look up again what a dict or type gave, walk again what hangs on a field.
  bool repair(std::uint32_t word) noexcept {
    const std::uint32_t n = p_.word_nodes[word];
    const WordRole role = p_.word_roles[word];
    if (values_[n] != kUnknown && (role == WordRole::kDict || role == WordRole::kVersion)) {
      return refresh(n, word);
    }
    const Node& node = p_.nodes[n];
    PyObject* value = values_[n];
    if (node.kind == SourceKind::kHeld) {
      value = node.key.get();
    } else if (node.parent != ~0U) {
      value = fetch(node, values_[node.parent]);
    }
    return walk(n, value);
  }

  /// The dict or type `n` moved: its own guards, and the values read through it, are compared again; what is still
  /// the same object keeps its words, which are compared next.
  bool refresh(std::uint32_t n, std::uint32_t word) noexcept {
    if (!accept(n, values_[n])) return false;
    for (std::uint32_t c = n + 1; c < p_.nodes[n].end; c = p_.nodes[c].end) {
      const Node& child = p_.nodes[c];
      if (!child.is_tagged || child.is_dynamic) continue;
      PyObject* value = fetch(child, values_[n]);
      if (value == values_[c] && has_type(child, value)) continue;
      if (!walk(c, value)) return false;
    }
    record(word);
    return true;
  }

  /// Guards of one node; a constant's remembered object is replaced by an equal one.
  bool accept(std::uint32_t n, PyObject* value) noexcept {
    Node& node = p_.nodes[n];
    if (value == kMissing || (value == nullptr && !node.may_be_null)) return false;
    if (node.has_fixed_type) {
      if (value == nullptr) return false;
      if (!node.type) node.type = Owned<>::share(reinterpret_cast<PyObject*>(Py_TYPE(value)));
      if (!has_type(node, value)) return false;
    }
    for (std::uint32_t i = node.first_guard; i < node.last_guard; ++i) {
      CompiledGuard& g = p_.guards[i];
      if (!holds(g, value)) return false;
      const bool is_content = g.kind == GuardKind::kConstant || g.kind == GuardKind::kNumpyScalar;
      if (is_content && g.expected.get() != value) g.expected = Owned<>::share(value);
    }
    return true;
  }

  /// Fetches and compares the whole subtree with `value` at its root, then records its words. If a guard of the root
  /// itself fails, nothing was touched; if one below does, the subtree is forgotten.
  bool walk(std::uint32_t n, PyObject* value) noexcept {
    if (!accept(n, value)) return false;
    values_[n] = value;
    const std::uint32_t end = p_.nodes[n].end;
    for (std::uint32_t i = n + 1; i < end;) {
      const Node& node = p_.nodes[i];
      if (node.is_dynamic) {
        i = node.end;
        continue;
      }
      values_[i] = fetch(node, values_[node.parent]);
      if (!accept(i, values_[i])) {
        forget(n);
        return false;
      }
      ++i;
    }
    for (std::uint32_t w = p_.nodes[n].first_word; w < p_.nodes[end - 1].last_word; ++w) record(w);
    return true;
  }

  void forget(std::uint32_t n) noexcept {
    const std::uint32_t end = p_.nodes[n].end;
    std::fill(values_.begin() + n, values_.begin() + end, kUnknown);
    for (std::uint32_t w = p_.nodes[n].first_word; w < p_.nodes[end - 1].last_word; ++w) words_[w].expected = kNever;
    if (p_.nodes[n].kind == SourceKind::kHeld) held_are_walked_ = false;
  }

  void record(std::uint32_t word) noexcept {
    const void* address = address_of(word);
    words_[word] = address != nullptr ? Word{address, read(address)} : Word{&kNothing, kNever};
  }

  /// Where the fact of a word lives, given the node's present value.
  const void* address_of(std::uint32_t word) noexcept {
    const std::uint32_t n = p_.word_nodes[word];
    const Node& node = p_.nodes[n];
    PyObject* value = values_[n];
    switch (p_.word_roles[word]) {
      case WordRole::kFetch: return fetch_address(node, values_[node.parent]);
      case WordRole::kType: return &value->ob_type;
      case WordRole::kWeak: return weak_address(node, word);
      case WordRole::kDict: return compat::version_of(value);
      case WordRole::kVersion: return version_address(value);
      case WordRole::kItems:
        return PyList_Check(value) ? static_cast<const void*>(&reinterpret_cast<PyListObject*>(value)->ob_item)
                                   : &kNothing;
      case WordRole::kLength: return length_address(value);
    }
    return nullptr;
  }

  /// The i-th weak guard of a node has the i-th of its kWeak words.
  const void* weak_address(const Node& node, std::uint32_t word) const noexcept {
    std::uint32_t before = 0;
    for (std::uint32_t w = node.first_word; w < word; ++w) before += p_.word_roles[w] == WordRole::kWeak ? 1 : 0;
    for (std::uint32_t g = node.first_guard; g < node.last_guard; ++g) {
      if (p_.guards[g].weak && before-- == 0) {
        return &reinterpret_cast<PyWeakReference*>(p_.guards[g].weak.get())->wr_object;
      }
    }
    return nullptr;
  }

  /// Types that get no version any more are looked up on every call.
  static const void* version_address(PyObject* value) noexcept {
    auto* type = reinterpret_cast<PyTypeObject*>(value);
    return PyType_Check(value) && compat::assign_version(type) ? compat::version_of(type) : nullptr;
  }

  static const void* length_address(PyObject* value) noexcept {
    if (PyDict_Check(value)) return &reinterpret_cast<PyDictObject*>(value)->ma_used;
    if (PyAnySet_Check(value)) return &reinterpret_cast<PySetObject*>(value)->used;
    return &reinterpret_cast<PyVarObject*>(value)->ob_size;
  }

  Program p_;
  std::vector<PyObject*> values_;  ///< per node: its value, borrowed; or kUnknown
  std::vector<Word> words_;
  std::vector<PyObject*> weak_;  ///< weak references, owned by the guards
  bool held_are_walked_ = false;
  bool is_busy_ = false;
};

int visit_all(std::initializer_list<PyObject*> objects, visitproc visit, void* arg) {
  for (PyObject* o : objects) Py_VISIT(o);
  return 0;
}

int CompiledGuardSet::traverse(visitproc visit, void* arg) {
  for (const Node& n : p_.nodes) {
    if (const int stop = visit_all({n.key.get(), n.type.get()}, visit, arg)) return stop;
  }
  for (const Source& s : p_.sources) Py_VISIT(s.key.get());
  for (const auto* guards : {&p_.guards, &p_.explicit_guards, &p_.tensors}) {
    for (const CompiledGuard& g : *guards) {
      if (const int stop = visit_all({g.expected.get(), g.weak.get(), g.key.get()}, visit, arg)) return stop;
    }
  }
  Py_VISIT(p_.code.object());
  return 0;
}

}  // namespace

struct GuardBuilder::State {
  SourceTable& sources;
  TorchState torch_state;
  std::vector<Guard> guards;
  std::unordered_multimap<std::uint64_t, std::size_t> by_source;
};

GuardBuilder::GuardBuilder(SourceTable& sources, const TorchState& state)
    : state_(std::make_shared<State>(State{sources, state, {}, {}})) {}

void GuardBuilder::require(GuardKind kind, SourceId source, Borrowed<> expected, std::uint32_t index, Borrowed<> key) {
  const std::uint64_t hash = static_cast<std::uint64_t>(kind) << 32 | source.index;
  for (auto [it, end] = state_->by_source.equal_range(hash); it != end; ++it) {
    const Guard& g = state_->guards[it->second];
    const bool same_key = g.key.get() == key.get() || (g.key && key && are_equal_constants(g.key.get(), key.get()));
    if (g.index == index && g.expected.get() == expected.get() && same_key) return;
  }
  state_->by_source.emplace(hash, state_->guards.size());
  state_->guards.push_back({kind, source, index, Owned<>::share(expected), Owned<>::share(key)});
}

std::span<const Guard> GuardBuilder::guards() const { return state_->guards; }

std::unique_ptr<GuardSet> GuardBuilder::build(std::span<const SourceId> fetched, std::size_t slots) {
  for (const Source& s : state_->sources.sources()) {
    BRAZE_CHECK(s.kind != SourceKind::kSlot || s.index < slots, "slot {} of {}", s.index, slots);
  }
  return std::make_unique<CompiledGuardSet>(
      compile_guards(state_->sources, state_->guards, fetched, state_->torch_state));
}

}  // namespace braze::guard
