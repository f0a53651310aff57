// compile_callable, stats, reset, explain: frame/ as plain Python values. The typed API is python/braze.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "braze/frame/compiled_function.h"
#include "braze/py/py_error.h"
#include "braze/support/options.h"

namespace braze::binding {

namespace {

namespace pb = pybind11;
using frame::Callable;
using frame::Entry;

runtime::Backend backend_of(const std::string& name) {
  if (name == "eager") return runtime::Backend::kEager;
  if (name == "aot_eager") return runtime::Backend::kAotEager;
  if (name == "braze") return runtime::Backend::kBraze;
  throw pb::value_error("unknown backend " + name);
}

frame::CompileOptions options_of(const pb::dict& settings) {
  frame::CompileOptions options;
  options.recompile_limit = static_cast<int>(support::options().recompile_limit);
  if (settings.contains("fullgraph")) options.fullgraph = settings["fullgraph"].cast<bool>();
  if (settings.contains("backend")) options.backend = backend_of(settings["backend"].cast<std::string>());
  if (settings.contains("options") && !settings["options"].is_none()) {
    const auto more = settings["options"].cast<pb::dict>();
    if (more.contains("recompile_limit")) options.recompile_limit = more["recompile_limit"].cast<int>();
  }
  return options;
}

pb::object compile_callable(const pb::object& original, const pb::dict& settings) {
  try {
    return pb::reinterpret_steal<pb::object>(frame::make_compiled_function(py::Borrowed<>::of(original.ptr()),
                                                                           py::Borrowed<>::of(settings.ptr()),
                                                                           options_of(settings))
                                                 .release());
  } catch (const py::PyError&) {
    throw pb::error_already_set();
  }
}

pb::dict stats() {
  const frame::Totals sums = frame::totals();
  pb::dict result;
  result["graphs"] = sums.graphs;
  result["compiles"] = sums.compiles;
  result["kernels"] = sums.kernels.size();
  result["eager_fallbacks"] = sums.fallbacks;
  result["internal_errors"] = sums.internal_errors;
  result["pending"] = 0;
  return result;
}

pb::dict break_data(const capture::Break& found) {
  pb::dict data;
  data["file"] = found.file;
  data["line"] = found.line;
  data["function"] = found.function;
  data["reason"] = found.reason;
  data["advice"] = found.advice;
  return data;
}

pb::list recompile_data(const Callable& callable) {
  pb::list result;
  for (const auto& recompile : callable.statistics.recompiles) {
    pb::dict data;
    data["where"] = recompile.where;
    data["reason"] = recompile.reason;
    result.append(data);
  }
  return result;
}

/// Each kernel once, by name; `total` counts uses.
pb::list kernel_data(const Callable& callable, std::size_t& total) {
  std::map<std::string, runtime::KernelReport> unique;
  callable.cache.for_each_entry([&](const Entry& entry) {
    if (!entry.executable) return;
    for (auto& kernel : entry.executable->kernels()) {
      ++total;
      unique.try_emplace(kernel.name, kernel);
    }
  });
  pb::list result;
  for (const auto& [name, kernel] : unique) {
    pb::dict data;
    data["name"] = kernel.name;
    data["source"] = kernel.source;
    data["summary"] = kernel.summary;
    data["origins"] = kernel.origins;
    result.append(data);
  }
  return result;
}

/// capture, trace, joint; partition, passes, lower, fuse, tile, emit, toolchain: the passes are one phase.
pb::dict phase_data(const Callable& callable) {
  static const std::set<std::string_view> own = {"partition", "lower", "fuse", "tile", "emit", "toolchain"};
  std::map<std::string, double> seconds(callable.statistics.phases.begin(), callable.statistics.phases.end());
  for (const auto& time : callable.plan_maker->times())
    seconds[own.contains(time.name) ? time.name : "passes"] += time.seconds;
  pb::dict result;
  for (const char* name :
       {"capture", "trace", "joint", "partition", "passes", "lower", "fuse", "tile", "emit", "toolchain"})
    if (seconds.contains(name)) result[name] = seconds[name];
  return result;
}

pb::dict fallback_data(const frame::Statistics& statistics) {
  pb::dict result;
  for (std::size_t i = 0; i < frame::kFallbacks; ++i)
    if (statistics.fallbacks[i] > 0)
      result[frame::fallback_name(static_cast<frame::Fallback>(i))] = statistics.fallbacks[i];
  return result;
}

void add_entry_data(const Callable& callable, pb::dict& result) {
  pb::list guards;
  std::size_t bytes = 0;
  callable.cache.for_each_entry([&](const Entry& entry) {
    for (const auto& text : entry.guards->texts()) guards.append(text);
    if (entry.executable) bytes += entry.executable->bytes_held();
  });
  result["guards"] = guards;
  result["bytes_held"] = bytes;
}

/// The plans of the entries that served last, one per program point, replayed from C++.
double plan_us(const Callable& callable) {
  double seconds = 0;
  callable.cache.for_each_last_served([&](const Entry& entry) {
    if (entry.executable) seconds += entry.executable->replay_seconds();
  });
  return seconds * 1e6;
}

pb::dict explain(const pb::object& compiled) {
  const Callable* const callable = frame::callable_of(py::Borrowed<>::of(compiled.ptr()));
  if (callable == nullptr) throw pb::type_error("expected what braze.compile returned");
  const auto& statistics = callable->statistics;
  pb::dict result;
  pb::list breaks, unsupported;
  for (const auto& found : statistics.breaks) breaks.append(break_data(found));
  for (const auto& note : statistics.notes) unsupported.append(frame::place_of(note) + ": " + note.reason);
  std::size_t total = 0;
  result["graphs"] = statistics.graphs;
  result["breaks"] = breaks;
  result["kernels"] = kernel_data(*callable, total);
  result["kernels_total"] = total;
  result["recompiles"] = recompile_data(*callable);
  result["refusals"] = callable->plan_maker->refusals();
  result["compiled_share"] =
      statistics.eager_operators > 0 ? statistics.compiled_operators / statistics.eager_operators : 0.0;
  result["plan_us"] = plan_us(*callable);
  result["phases"] = phase_data(*callable);
  result["fallbacks"] = fallback_data(statistics);
  result["unsupported"] = unsupported;
  add_entry_data(*callable, result);
  return result;
}

}  // namespace

void register_frame(pb::module_& m) {
  m.def("compile_callable", compile_callable, pb::arg("f"), pb::arg("settings"),
        "A CompiledFunction for any callable; TypeError for anything else.");
  m.def("stats", stats, "Counters of the process since the last reset.");
  m.def("reset", frame::reset_all, "Drop all entries and counters.");
  m.def("explain", explain, pb::arg("compiled"), "What is known of one compiled callable, as plain values.");
  m.attr("CompiledFunction") =
      pb::reinterpret_borrow<pb::object>(reinterpret_cast<PyObject*>(frame::compiled_function_type().get()));
}

}  // namespace braze::binding
