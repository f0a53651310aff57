// One function per outcome of DESIGN's failure policy.
#include "braze/frame/failure.h"

#include <algorithm>
#include <string>

#include "braze/frame/callable.h"
#include "braze/py/code_object.h"
#include "braze/py/py_error.h"
#include "braze/support/check.h"
#include "braze/support/error.h"
#include "braze/support/log.h"
#include "braze/support/options.h"

namespace braze::frame {

namespace {

std::string place_of(const PointState& point) {
  const char* file = PyUnicode_AsUTF8(point.code->co_filename);
  const char* function = PyUnicode_AsUTF8(point.code->co_qualname);
  if (file == nullptr || function == nullptr) PyErr_Clear();
  return support::format("{}:{} in {}", file != nullptr ? file : "?",
                         py::CodeInfo::line_at(point.code, std::max(point.pc, 0)),
                         function != nullptr ? function : "?");
}

Step raised(const std::string& message) {
  PyErr_SetString(PyExc_RuntimeError, message.c_str());
  return Step::of(Step::Kind::kRaised);
}

Step internal_error(Callable& callable, const PointState& point, const char* what) {
  ++callable.statistics.internal_errors;
  const std::string text = support::format(
      "internal error of Braze at {}: {}. The region runs in eager. Please report it with this program.",
      place_of(point), what);
  if (support::options().strict) return raised(text);
  support::warn_once(text);
  return not_run(callable, Fallback::kInternalError);
}

Step compile_error(Callable& callable, const PointState& point, const char* what) {
  const std::string text =
      support::format("compiling failed at {}: {}. The region runs in eager.", place_of(point), what);
  if (support::options().strict) return raised(text);
  support::warn_once(text);
  return not_run(callable, Fallback::kCompileError);
}

}  // namespace

Step not_run(Callable& callable, Fallback reason) {
  callable.statistics.add_fallback(reason);
  return Step::of(Step::Kind::kNotRun);
}

Step run_failed(Callable& callable) {
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0) return Step::of(Step::Kind::kRaised);
  PyErr_Clear();
  return not_run(callable, Fallback::kRunFailed);
}

Step failed(Callable& callable, const PointState& point, std::exception_ptr error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const py::PyError&) {
    return run_failed(callable);
  } catch (const support::CompileError& e) {
    return compile_error(callable, point, e.what());
  } catch (const std::exception& e) {
    return internal_error(callable, point, e.what());
  } catch (...) {
    return internal_error(callable, point, "an exception of unknown type");
  }
}

Step refuse_break(const Callable& callable, const capture::Break& found) {
  return raised(support::format("braze.compile(fullgraph=True): {} does not become one graph. {}: {}.{}{}",
                                callable.name, place_of(found), found.reason,
                                found.advice.empty() ? "" : " To change: ", found.advice));
}

}  // namespace braze::frame
