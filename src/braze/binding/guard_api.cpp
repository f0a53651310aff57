// Guards from Python: what the tests and the benchmark of guards build and check. Not used by the package.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <ctime>
#include <optional>

#include "braze/guard/guard.h"
#include "braze/support/check.h"

namespace braze::binding {
namespace {

namespace py = pybind11;
using guard::GuardKind;
using guard::SourceId;
using guard::SourceKind;

constexpr const char* kSourceKinds[] = {
    "slot",         "function",         "held",           "globals",    "builtins",
    "closure_cell", "cell_contents",    "code",           "defaults",   "kwdefaults",
    "method_self",  "method_function",  "type",           "dict",       "item",
    "type_attr",    "member_slot",      "element",        "grad",       "partial_func",
    "partial_args", "partial_keywords", "weakref_target", "deque_item", "iterator_item"};
static_assert(std::size(kSourceKinds) == static_cast<std::size_t>(SourceKind::kIteratorItem) + 1);

constexpr const char* kGuardKinds[] = {"identity",     "exact_type", "constant",       "tensor",     "length",
                                       "dict_keys",    "dict_has",   "instance_lacks", "type_lacks", "alias",
                                       "distinct",     "none",       "null",           "set",        "iterator",
                                       "numpy_scalar", "array",      "environment"};
static_assert(std::size(kGuardKinds) == static_cast<std::size_t>(GuardKind::kEnvironment) + 1);

template <class Kind, std::size_t n>
Kind kind_named(const char* const (&names)[n], std::string_view name) {
  for (std::size_t i = 0; i < n; ++i) {
    if (names[i] == name) return static_cast<Kind>(i);
  }
  throw py::value_error("no kind named " + std::string(name));
}

guard::Borrowed<> borrowed(const py::object& o) {
  return o.is_none() ? guard::Borrowed<>() : guard::Borrowed<>::of(o.ptr());
}

/// This thread's time on a processor: other processes do not count.
double thread_nanoseconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

/// One source table, one builder (until build) and the set built from them. A slot given as `empty` is NULL.
class Guards {
 public:
  Guards() : builder_(std::in_place, sources_) {}

  std::uint32_t source(const std::string& kind, std::optional<std::uint32_t> parent, std::uint32_t index,
                       const py::object& key) {
    const SourceId above = parent ? SourceId{*parent} : SourceId{};
    return sources_.add(kind_named<SourceKind>(kSourceKinds, kind), above, index, borrowed(key)).index;
  }

  void require(const std::string& kind, std::optional<std::uint32_t> source, const py::object& expected,
               std::uint32_t index, const py::object& key, bool expect_none) {
    const SourceId id = source ? SourceId{*source} : SourceId{};
    const auto value = expect_none ? guard::Borrowed<>::of(Py_None) : borrowed(expected);
    builder_->require(kind_named<GuardKind>(kGuardKinds, kind), id, value, index, borrowed(key));
  }

  void name_slots(const py::object& code) {
    sources_.name_slots(guard::Borrowed<PyCodeObject>::of(reinterpret_cast<PyCodeObject*>(code.ptr())));
  }

  void build(const std::vector<std::uint32_t>& fetched, std::size_t slots) {
    std::vector<SourceId> ids;
    for (const std::uint32_t f : fetched) ids.push_back(SourceId{f});
    set_ = builder_->build(ids, slots);
    builder_.reset();  // it holds examples
  }

  std::optional<py::list> check(const py::list& slots, const py::object& function) {
    std::vector<PyObject*> out(set_->fetched());
    if (set_->state() != guard::TorchState::current()) return std::nullopt;
    if (!set_->check(pointers(slots).data(), function_of(function), out.data())) return std::nullopt;
    py::list result;
    for (PyObject* o : out) result.append(o == nullptr ? empty() : py::reinterpret_borrow<py::object>(o));
    return result;
  }

  std::string explain(const py::list& slots, const py::object& function) {
    return set_->explain_failure(pointers(slots).data(), function_of(function));
  }

  double nanoseconds(const py::list& slots, const py::object& function, std::size_t repeats) {
    const auto values = pointers(slots);
    std::vector<PyObject*> out(set_->fetched());
    const double start = thread_nanoseconds();
    std::size_t failures = 0;
    for (std::size_t i = 0; i < repeats; ++i) {
      failures += set_->check(values.data(), function_of(function), out.data()) ? 0 : 1;
    }
    const double spent = thread_nanoseconds() - start;
    BRAZE_CHECK(failures == 0, "{} of {} checks failed", failures, repeats);
    return spent / static_cast<double>(repeats);
  }

  std::string text(std::uint32_t source) const { return sources_.text(SourceId{source}); }
  std::vector<std::string> texts() const { return set_->texts(); }
  bool is_dead() const { return set_->is_dead(); }

  /// How many references to each object the set shows to the garbage collector.
  std::vector<py::object> referents() {
    std::vector<py::object> result;
    auto visit = [](PyObject* o, void* arg) {
      static_cast<std::vector<py::object>*>(arg)->push_back(py::reinterpret_borrow<py::object>(o));
      return 0;
    };
    set_->traverse(visit, &result);
    return result;
  }

  static py::object empty() { return py::module_::import("braze._C").attr("empty_slot"); }

 private:
  static std::vector<PyObject*> pointers(const py::list& slots) {
    std::vector<PyObject*> result;
    const py::object null = empty();
    for (const auto& o : slots) result.push_back(o.is(null) ? nullptr : o.ptr());
    return result;
  }

  static PyFunctionObject* function_of(const py::object& f) {
    return f.is_none() ? nullptr : reinterpret_cast<PyFunctionObject*>(f.ptr());
  }

  guard::SourceTable sources_;
  std::optional<guard::GuardBuilder> builder_;
  std::unique_ptr<guard::GuardSet> set_;
};

std::string state_difference(const std::vector<std::uint64_t>& before) {
  guard::TorchState state;
  std::copy_n(before.begin(), std::size(state.words), state.words);
  return guard::TorchState::current().difference(state);
}

}  // namespace

void register_guard(py::module_& m) {
  m.attr("empty_slot") = py::module_::import("builtins").attr("object")();  // stands for NULL
  py::class_<Guards>(m, "Guards", "Sources and guards on live objects, for tests.")
      .def(py::init<>())
      .def("source", &Guards::source, py::arg("kind"), py::arg("parent") = py::none(), py::arg("index") = 0,
           py::arg("key") = py::none())
      .def("require", &Guards::require, py::arg("kind"), py::arg("source"), py::arg("expected") = py::none(),
           py::arg("index") = 0, py::arg("key") = py::none(), py::arg("expect_none") = false)
      .def("name_slots", &Guards::name_slots)
      .def("build", &Guards::build, py::arg("fetched"), py::arg("slots"))
      .def("check", &Guards::check, py::arg("slots"), py::arg("function") = py::none())
      .def("explain", &Guards::explain, py::arg("slots"), py::arg("function") = py::none())
      .def("nanoseconds", &Guards::nanoseconds, py::arg("slots"), py::arg("function") = py::none(),
           py::arg("repeats") = 1000)
      .def("text", &Guards::text)
      .def("texts", &Guards::texts)
      .def("is_dead", &Guards::is_dead)
      .def("referents", &Guards::referents);
  m.def("torch_state", [] {
    const guard::TorchState now = guard::TorchState::current();
    return std::vector<std::uint64_t>(std::begin(now.words), std::end(now.words));
  });
  m.def("torch_state_difference", &state_difference, "What differs now from an earlier torch_state(), in words.");
  m.def("torch_state_is_foreign", [] { return guard::TorchState::current().has_foreign_modes(); });
}

}  // namespace braze::binding
