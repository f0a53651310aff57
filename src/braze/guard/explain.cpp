// Walks all sources the slow way and says what is different.
#include "braze/guard/explain.h"

#include <algorithm>

#include "braze/guard/constant.h"
#include "braze/support/text.h"

namespace braze::guard {
namespace {

using support::format;

std::string class_name(PyObject* type) { return reinterpret_cast<PyTypeObject*>(type)->tp_name; }

std::string name_of(const Program& p, std::uint32_t node) {
  return source_text(p.sources, SourceId{node}, p.code.borrow());
}

std::string expected_object(const CompiledGuard& g) {
  if (!g.weak) return describe(g.expected.get());
  PyObject* target = PyWeakref_GET_OBJECT(g.weak.get());
  return target == Py_None ? "an object that is gone" : describe(target);
}

/// What is required, without the name of the source.
std::string requirement(const Program& p, const CompiledGuard& g) {
  switch (g.kind) {
    case GuardKind::kIdentity: return "is " + expected_object(g);
    case GuardKind::kExactType: return "is a " + class_name(g.expected.get());
    case GuardKind::kConstant: return "== " + describe(g.expected.get());
    case GuardKind::kTensor: return "is like " + p.tensor_guard.text(g.index);
    case GuardKind::kLength: return format("has length {}", g.index);
    case GuardKind::kDictKeys: return "has the keys " + describe(g.expected.get());
    case GuardKind::kDictHas: return format("{} the key {}", g.index != 0 ? "has" : "lacks", describe(g.key.get()));
    case GuardKind::kTypeLacks: return "has no attribute " + describe(g.key.get());
    case GuardKind::kAlias: return "is the same object as " + name_of(p, g.index);
    case GuardKind::kDistinct: return "is not the same object as " + name_of(p, g.index);
    case GuardKind::kNone: return "is None";
    case GuardKind::kNullSlot: return "is unbound";
    case GuardKind::kSetContents: return "has the elements of " + describe(g.expected.get());
    case GuardKind::kIteratorState: return format("is a {} at position {}", class_name(g.expected.get()), g.index);
    case GuardKind::kNumpyScalar: return "has the type and value of " + describe(g.expected.get());
    case GuardKind::kArrayMeta: return "has the same dtype, shape and strides";
    default: return "holds";
  }
}

std::string present(const CompiledGuard& g, PyObject* value) {
  if (value == kMissing) return "it is not there";
  if (value == nullptr) return "it is unbound";
  switch (g.kind) {
    case GuardKind::kExactType: return "it is a " + std::string(Py_TYPE(value)->tp_name);
    case GuardKind::kLength: return format("its length is {}", PyObject_Size(value));
    case GuardKind::kDictHas:
    case GuardKind::kTypeLacks: return g.index != 0 ? "it lacks it" : "it has it";
    case GuardKind::kDictKeys:
    case GuardKind::kSetContents: return "they are others";
    case GuardKind::kIdentity:
      if (g.weak || !is_constant(value)) return "it is " + describe(value) + " (another object)";
      [[fallthrough]];
    default: return "it is " + describe(value);
  }
}

class Explainer {
 public:
  Explainer(Program& p, PyObject* const* slots, PyFunctionObject* function)
      : p_(p), slots_(slots), function_(function), values_(p.nodes.size(), nullptr) {}

  std::string run() {
    const TorchState now = TorchState::current();
    if (now != p_.state) return now.difference(p_.state);
    for (std::uint32_t n = 0; n < p_.nodes.size(); ++n) {
      values_[n] = value_of(p_.nodes[n]);
      std::string text = failure_at(n);
      if (!text.empty()) return text;
    }
    for (const CompiledGuard& g : p_.explicit_guards) {
      if (!holds_between(g)) return failure_text(p_, g, values_[g.node]);
    }
    return tensor_failure();
  }

 private:
  PyObject* value_of(const Node& node) const {
    if (node.kind == SourceKind::kSlot) return slots_[node.index];
    if (node.kind == SourceKind::kFunction) return reinterpret_cast<PyObject*>(function_);
    if (node.kind == SourceKind::kHeld) return node.key.get();
    return fetch(node, values_[node.parent]);
  }

  std::string failure_at(std::uint32_t n) const {
    const Node& node = p_.nodes[n];
    PyObject* value = values_[n];
    if (value == kMissing) return name_of(p_, n) + " is not there";
    if (value == nullptr && !node.may_be_null) return name_of(p_, n) + " is unbound";
    if (node.has_fixed_type && node.type && value != nullptr &&
        Py_TYPE(value) != reinterpret_cast<PyTypeObject*>(node.type.get())) {
      return format("{} is a {}, expected a {}", name_of(p_, n), Py_TYPE(value)->tp_name, class_name(node.type.get()));
    }
    for (std::uint32_t g = node.first_guard; g < node.last_guard; ++g) {
      if (!holds(p_.guards[g], value)) return failure_text(p_, p_.guards[g], value);
    }
    return "";
  }

  bool holds_between(const CompiledGuard& g) const {
    if (g.kind == GuardKind::kAlias) return values_[g.node] == values_[g.index];
    if (g.kind == GuardKind::kDistinct) return values_[g.node] != values_[g.index];
    return holds(g, values_[g.node]);
  }

  std::string tensor_failure() {
    std::size_t number = 0;
    const std::string text = p_.tensor_guard.explain(values_.data(), number);
    if (text.empty() || number == p_.tensor_guard.size()) return text;
    return format("{}: {}", name_of(p_, p_.tensors[number].node), text);
  }

  Program& p_;
  PyObject* const* slots_;
  PyFunctionObject* function_;
  std::vector<PyObject*> values_;
};

}  // namespace

std::string guard_text(const Program& p, const CompiledGuard& g) {
  return name_of(p, g.node) + " " + requirement(p, g);
}

std::string failure_text(const Program& p, const CompiledGuard& g, PyObject* value) {
  return format("{}: {}", guard_text(p, g), present(g, value));
}

std::string explain_failure(Program& program, PyObject* const* slots, PyFunctionObject* function) {
  return Explainer(program, slots, function).run();
}

std::vector<std::string> guard_texts(const Program& p) {
  std::vector<std::string> texts;
  for (const auto* guards : {&p.guards, &p.explicit_guards, &p.tensors}) {
    for (const CompiledGuard& g : *guards) texts.push_back(guard_text(p, g));
  }
  return texts;
}

}  // namespace braze::guard
