// The loop, the frame's slots, and how exceptions find their handlers.
#include "braze/capture/interpreter.h"

#include "braze/capture/compat/dispatch.h"
#include "braze/capture/pending_number.h"
#include "braze/support/check.h"
#include "braze/support/text.h"

namespace braze::capture {

namespace {
constexpr std::size_t kMostFrames = 200;
constexpr std::size_t kMostInstructions = 3'000'000;
}  // namespace

Interpreter::Interpreter(World& world, const Facts& facts) : world_(world), facts_(facts) {}

Owned<> Interpreter::run(Frame start) {
  frames_.push_back(std::move(start));
  return loop(0);
}

/// Runs until frame number `base` returns.
Owned<> Interpreter::loop(std::size_t base) {
  for (;;) {
    Frame& f = frame();
    const py::Instruction& i = f.info->at(f.pc);
    f.current = f.pc;
    f.pc = i.next;
    ++ordinal_;
    if (nested_ == 0) is_dirty_ = false;
    try {
      if (nested_ == 0 && facts_.stop_at == ordinal_) world_.stop(facts_.reason.reason, facts_.reason.advice);
      if (ordinal_ > kMostInstructions) world_.stop("the capture became too long");
      if (i.opcode == py::Opcode::RETURN_VALUE && frames_.size() == base + 1) {
        Owned<> result = pop();
        if (base > 0) frames_.pop_back();
        return result;
      }
      if (i.opcode == py::Opcode::YIELD_VALUE && frames_.size() == base + 1 && f.is_generator) return pop();
      execute<CallSite>(*this, i);
    } catch (const py::PyError&) {
      if (!world_.pending && unwind(base)) continue;
      if (world_.pending) settle();
      throw;
    }
  }
}

/// Decides where a stop takes effect: here, or, if the instruction has run Python below native code, before it.
void Interpreter::settle() {
  Pending& pending = *world_.pending;
  frame().pc = frame().current;
  if (pending.kind != Pending::Kind::kStop) return;
  if (pending.reason.file.empty()) pending.reason = place(std::move(pending.reason));
  if (nested_ == 0 && !is_dirty_ && !pending.voids_trace) return;
  pending.kind = Pending::Kind::kRestart;
  pending.at = ordinal();
}

/// A nested run: native code, or an instruction other than CALL, runs Python.
Owned<> Interpreter::nested(std::size_t base) {
  Nesting nesting(*this);
  return loop(base);
}

Interpreter::Nesting::Nesting(Interpreter& self) : self_(self) {
  if (self_.nested_++ == 0) self_.native_ordinal_ = self_.ordinal_;
  self_.is_dirty_ = true;
}

/// The instruction that raised it first: an exception that leaves the function after it was caught is raised there
/// anew, for real, and has eager's traceback.
std::size_t Interpreter::first_raise_of(Borrowed<> exception) const {
  for (const auto& [known, at] : raised_)
    if (known.get() == exception.get()) return at;
  return ordinal();
}

/// Finds the handler of the exception that is set, in the frames above `base`. Nothing is unwound if there is none.
bool Interpreter::unwind(std::size_t base) {
  std::size_t level = frames_.size();
  std::optional<py::Handler> handler;
  while (level > base) {
    const Frame& f = frames_[level - 1];
    handler = f.info->handler_at(level == frames_.size() ? f.current : f.call_pc);
    if (handler) break;
    --level;
  }
  if (!handler && base > 0) {
    frames_.resize(base);
    return false;
  }
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Owned<> t = Owned<>::steal(type), exception = Owned<>::steal(value), tb = Owned<>::steal(traceback);
  if (!handler) {
    Break reason{std::string("an exception leaves the function: ") + type_of(exception.borrow())->tp_name, "", "", 0,
                 ""};
    reason.raises = true;
    const std::size_t first = handled_ ? raise_ordinal_ : first_raise_of(exception.borrow());
    const bool is_here = !handled_ && first == ordinal();
    world_.set_pending({is_here ? Pending::Kind::kStop : Pending::Kind::kRestart, place(std::move(reason)), first});
    return false;
  }
  if (tb) PyException_SetTraceback(exception.get(), tb.get());
  const std::size_t first = first_raise_of(exception.borrow());
  if (!handled_) raise_ordinal_ = first;
  if (first == ordinal()) raised_.emplace_back(exception, first);
  const bool is_top = level == frames_.size();
  frames_.resize(level);
  Frame& f = frame();
  const std::size_t depth = static_cast<std::size_t>(f.code->co_nlocalsplus + handler->depth);
  BRAZE_CHECK(f.slots.size() >= depth, "stack of {} slots below the handler's depth {}", f.slots.size(), depth);
  f.slots.resize(depth);
  if (handler->push_lasti) push(take(PyLong_FromLong(is_top ? f.current : f.call_pc)));
  push(std::move(exception));
  f.call_pc = -1;
  f.pc = handler->target;
  return true;
}

Break Interpreter::place(Break reason) const {
  if (frames_.empty()) return reason;
  const Frame& f = frames_.back();
  reason.file = utf8(borrow(f.code->co_filename));
  reason.function = utf8(borrow(f.code->co_qualname));
  reason.line = py::CodeInfo::line_at(f.code.borrow(), f.current);
  return reason;
}

std::size_t Interpreter::birth_of(Borrowed<> object) const {
  auto it = births_.find(object.get());
  return it == births_.end() ? 0 : it->second;
}
void Interpreter::note_birth(Borrowed<> object) { births_[object.get()] = ordinal(); }

void Interpreter::realise(Value& value) {
  if (value.lazy.is_none()) return;
  SourceId source = value.lazy;
  if (!value.object) {
    world_.guards.require(GuardKind::kNullSlot, source);
  } else {
    value.object = world_.wrap(source, value.object.borrow());
  }
  value.lazy = SourceId();
}

Borrowed<> Interpreter::peek(int depth) {
  Value& value = frame().slots[frame().slots.size() - static_cast<std::size_t>(depth)];
  realise(value);
  if (is_pending(value.object.borrow())) value.object = world_.concrete(value.object.borrow());
  return value.object.borrow();
}
Borrowed<> Interpreter::peek_moved(int depth) {
  Value& value = frame().slots[frame().slots.size() - static_cast<std::size_t>(depth)];
  realise(value);
  return value.object.borrow();
}
Owned<> Interpreter::pop() {
  peek_moved(1);
  Owned<> object = std::move(frame().slots.back().object);
  frame().slots.pop_back();
  return object;
}
void Interpreter::push(Owned<> object) { frame().slots.push_back({std::move(object), SourceId()}); }
void Interpreter::drop(int count) {
  auto& slots = frame().slots;
  slots.resize(slots.size() - static_cast<std::size_t>(count));
}

/// The slot may hold the last reference to an old object: what its end runs must run now, not at the segment's end.
void Interpreter::check_drop(const Value& value) {
  if (!value.object || !has_finaliser(value.object.borrow())) return;
  if (value.lazy.is_none() && world_.record_of(value.object.borrow()) == nullptr) return;
  world_.stop("the end of a " + std::string(type_of(value.object.borrow())->tp_name) + ", which has a finaliser");
}
void Interpreter::check_top() { check_drop(frame().slots.back()); }
void Interpreter::check_local(int index) { check_drop(frame().slots[static_cast<std::size_t>(index)]); }

void Interpreter::swap(int depth) {
  auto& slots = frame().slots;
  std::swap(slots.back(), slots[slots.size() - static_cast<std::size_t>(depth)]);
}
Borrowed<> Interpreter::local(int index) {
  Value& value = frame().slots[static_cast<std::size_t>(index)];
  realise(value);
  return value.object.borrow();
}
void Interpreter::set_local(int index, Owned<> object) {
  frame().slots[static_cast<std::size_t>(index)] = {std::move(object), SourceId()};
}
void Interpreter::make_cell(int index) {
  Borrowed<> initial = local(index);
  set_local(index, take(PyCell_New(initial.get())));
}
void Interpreter::copy_free_variables(int count) {
  Frame& f = frame();
  PyObject* closure = f.function->func_closure;
  const int first = f.code->co_nlocalsplus - count;
  for (int i = 0; i < count; ++i) {
    Borrowed<> cell = borrow(PyTuple_GET_ITEM(closure, i));
    const bool is_old = world_.is_pinned(f.function.borrow()) || world_.record_of(f.function.borrow()) != nullptr;
    Owned<> visible = share(cell);
    if (is_old)
      visible = world_.wrap(world_.sources.add(SourceKind::kClosureCell, world_.source_of(f.function.borrow()),
                                               static_cast<std::uint32_t>(i)),
                            cell);
    set_local(first + i, std::move(visible));
  }
}

Owned<> Interpreter::load_global(Borrowed<> name) {
  Frame& f = frame();
  if (!f.globals) f.globals = world_.globals_of(f.function.borrow());
  if (Owned<> value = world_.dict_get(f.globals.borrow(), name)) return value;
  if (!f.builtins) f.builtins = world_.builtins_of(f.function.borrow());
  if (Owned<> value = world_.dict_get(f.builtins.borrow(), name)) return value;
  PyErr_Format(PyExc_NameError, "name '%U' is not defined", name.get());
  throw py::PyError();
}
void Interpreter::store_global(Borrowed<> name, Borrowed<> value) {
  Frame& f = frame();
  if (!f.globals) f.globals = world_.globals_of(f.function.borrow());
  world_.dict_set(f.globals.borrow(), name, value);
}
void Interpreter::delete_global(Borrowed<> name) {
  Frame& f = frame();
  if (!f.globals) f.globals = world_.globals_of(f.function.borrow());
  if (!world_.dict_remove(f.globals.borrow(), name)) {
    PyErr_Format(PyExc_NameError, "name '%U' is not defined", name.get());
    throw py::PyError();
  }
}
Owned<> Interpreter::load_cell(Borrowed<> cell, int index) {
  Owned<> value = world_.cell_get(cell);
  if (!value) {
    Frame& f = frame();
    raise_unbound(borrow(PyTuple_GET_ITEM(f.code->co_localsplusnames, index)),
                  index >= f.code->co_nlocalsplus - f.code->co_nfreevars);
  }
  return value;
}

void Interpreter::raise_unbound(Borrowed<> name, bool is_free) {
  if (is_free)
    PyErr_Format(PyExc_NameError,
                 "cannot access free variable '%U' where it is not associated with a value in enclosing scope",
                 name.get());
  else
    PyErr_Format(PyExc_UnboundLocalError, "cannot access local variable '%U' where it is not associated with a value",
                 name.get());
  throw py::PyError();
}

void Interpreter::return_value(Owned<> value) {
  frames_.pop_back();
  frame().call_pc = -1;
  push(std::move(value));
}
void Interpreter::start_generator() {
  if (!frame().is_generator) leave("RETURN_GENERATOR");
  push(none());  // what the first send() brings
}
void Interpreter::yield_value() { world_.stop("a yield outside of a captured generator"); }
void Interpreter::leave(const char* what) {
  notes.push_back(place(Break{support::format("opcode {}", what), "", "", 0, ""}));
  world_.stop(support::format("opcode {}", what));
}

Owned<> Interpreter::swap_handled(Owned<> exception) {
  std::swap(handled_, exception);
  return exception;
}

bool Interpreter::matches_exception(Borrowed<> exception, Borrowed<> type) {
  world_.fill_deep(type);
  if (!PyType_Check(type.get()) && !PyTuple_Check(type.get())) world_.stop("an except clause that names no class");
  return PyErr_GivenExceptionMatches(exception.get(), type.get()) != 0;
}

void Interpreter::raise(Borrowed<> exception, Borrowed<> cause) {
  if (!exception) {
    if (!handled_) py::raise(PyExc_RuntimeError, "No active exception to reraise");
    reraise(handled_.borrow());
  }
  Owned<> value = share(exception);
  if (PyType_Check(exception.get())) value = call_now(exception, {});
  if (!PyExceptionInstance_Check(value.get())) py::raise(PyExc_TypeError, "exceptions must derive from BaseException");
  if (cause) {
    Owned<> c = cause.get() == Py_None ? Owned<>{} : share(cause);
    if (c && PyType_Check(c.get())) c = call_now(cause, {});
    PyException_SetCause(value.get(), c.release());
  }
  if (handled_ && handled_.get() != value.get()) PyException_SetContext(value.get(), share(handled_).release());
  PyErr_SetObject(as_object(type_of(value.borrow())), value.get());
  throw py::PyError();
}

void Interpreter::reraise(Borrowed<> exception) {
  PyErr_SetObject(as_object(type_of(exception)), exception.get());
  throw py::PyError();
}

}  // namespace braze::capture
