// A torch call on fakes: all or nothing. If it throws, its nodes are dropped and the segment ends before it.
#pragma once

#include <chrono>

#include "braze/capture/interpreter.h"

namespace braze::capture {

template <class Call>
Owned<> Interpreter::transaction(const char* what, Call call, std::span<const Owned<>> written) {
  trace::Tracer& tracer = world_.tracer;
  const Frame& f = frame();
  tracer.set_location(PyUnicode_AsUTF8(f.code->co_filename), py::CodeInfo::line_at(f.code.borrow(), f.current));
  const trace::Tracer::Mark mark = tracer.mark();
  trace::Tracer::Layouts layouts(tracer, written);
  Owned<> result;
  const auto start = std::chrono::steady_clock::now();
  try {
    result = call();
    layouts.restore();
  } catch (const py::PyError&) {
    if (!world_.pending) fail_transaction(what, mark);
    throw;
  }
  world_.trace_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (world_.pending) throw py::PyError();
  if (auto poison = tracer.take_poison()) fail_poisoned(*poison, mark);
  return result;
}

}  // namespace braze::capture
