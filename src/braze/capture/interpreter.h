// The bytecode interpreter of a capture: frames of values, and what each kind of operation means on them.
//
// The handlers (handlers/*.h) are templates over a machine; this is the recording one (perform.cpp has the real one).
// A handler looks at its operands in place, computes, and only then changes the frame, so that a stop leaves the frame
// as it was before the instruction. CALL of a Python function pushes a frame; whatever else runs Python code
// (properties, operators, iterators, callbacks from native code) runs in a nested loop, and a stop there restarts the
// capture with the outermost such instruction as the stop.
#pragma once

#include <exception>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "braze/capture/known.h"
#include "braze/capture/world.h"
#include "braze/py/code_object.h"

namespace braze::capture {

/// A slot. With a `lazy` source the object is the raw old one, not yet looked at and not guarded.
struct Value {
  Owned<> object;
  SourceId lazy;
};

struct Frame {
  Owned<PyFunctionObject> function;
  Owned<PyCodeObject> code;
  const py::CodeInfo* info = nullptr;
  int pc = 0;        ///< next instruction
  int current = 0;   ///< instruction under way
  int call_pc = -1;  ///< the call that waits for a callee frame
  std::vector<Value> slots;
  Owned<> globals, builtins;  ///< visible dicts
  Owned<> module;  ///< entered through Module.__call__ of this module, whose own frames were skipped; with its
  Owned<> positional, keywords;  ///< arguments: they stand for those frames where code looks at frames
  bool is_generator = false;     ///< runs in a nested loop until it yields
};

struct CallSite {
  Owned<> callable;
  std::vector<Owned<>> args;  ///< positional, then those named by `names`
  Owned<> names;              ///< tuple of str, or null
};

class Interpreter {
 public:
  Interpreter(World& world, const Facts& facts);

  /// Runs until the outermost frame returns. On PyError with world.pending set, frames() is the state at the stop.
  Owned<> run(Frame start);
  std::vector<Frame>& frames() { return frames_; }
  std::size_t birth_of(Borrowed<> object) const;  ///< number of the instruction that made it; 0 if not noted
  std::size_t ordinal() const { return nested_ == 0 ? ordinal_ : native_ordinal_; }
  const Owned<>& handled() const { return handled_; }
  std::size_t raise_ordinal() const { return raise_ordinal_; }
  Break place(Break reason) const;  ///< completes file, line, function
  World& world() { return world_; }
  std::vector<Break> notes;

  // The machine's interface for handlers ------------------------------------------------------------------------------
  Borrowed<> peek(int depth);        ///< 1 is the top; may be null
  Borrowed<> peek_moved(int depth);  ///< for a value that is only moved: may be a pending number
  Owned<> pop();
  void push(Owned<> object);
  void drop(int count);
  void check_top();  ///< stops if the value that goes now has a finaliser to run
  void check_local(int index);
  void swap(int depth);
  void jump(int pc) { frame().pc = pc; }
  Borrowed<> local(int index);
  void set_local(int index, Owned<> object);
  void make_cell(int index);
  void copy_free_variables(int count);
  Borrowed<> constant(int index) { return borrow(PyTuple_GET_ITEM(frame().code->co_consts, index)); }
  Borrowed<> name(int index) { return borrow(PyTuple_GET_ITEM(frame().code->co_names, index)); }
  Frame& frame() { return frames_.back(); }

  Owned<> load_global(Borrowed<> name);
  void store_global(Borrowed<> name, Borrowed<> value);
  void delete_global(Borrowed<> name);
  Owned<> load_cell(Borrowed<> cell, int index);
  void store_cell(Borrowed<> cell, Borrowed<> value) { world_.cell_set(cell, value); }

  Owned<> get_attribute(Borrowed<> object, Borrowed<> name);
  /// A method unbound with its self if that is what the look-up finds, else {null, value}.
  std::pair<Owned<>, Owned<>> get_method(Borrowed<> object, Borrowed<> name);
  void set_attribute(Borrowed<> object, Borrowed<> name, Borrowed<> value);
  void delete_attribute(Borrowed<> object, Borrowed<> name);

  Owned<> unary(int kind, Borrowed<> operand);  ///< '-', '+', '~'
  Owned<> binary(int kind, Borrowed<> left, Borrowed<> right);
  Owned<> compare(int kind, Borrowed<> left, Borrowed<> right);
  bool contains(Borrowed<> container, Borrowed<> item);
  bool is_same(Borrowed<> a, Borrowed<> b);
  bool truth(Borrowed<> object);
  Owned<> get_item(Borrowed<> container, Borrowed<> key);
  void set_item(Borrowed<> container, Borrowed<> key, Borrowed<> value);
  void delete_item(Borrowed<> container, Borrowed<> key);
  Owned<> get_iterator(Borrowed<> object);
  Owned<> next(Borrowed<> iterator);                                      ///< null at the end
  std::vector<Owned<>> unpack(Borrowed<> object, int before, int after);  ///< after < 0: no star
  Owned<> format(Borrowed<> value, int conversion, Borrowed<> spec);
  Py_ssize_t length(Borrowed<> object);

  void extend_list(Borrowed<> list, Borrowed<> iterable);
  void update_set(Borrowed<> set, Borrowed<> iterable);
  void merge_dict(Borrowed<> dict, Borrowed<> other, bool refuses_duplicates, Borrowed<> function);
  void note_hash(Borrowed<> key);                               ///< an object becomes a key of a fresh dict or set
  void ready(Borrowed<> container) { world_.fill(container); }  ///< before native code changes it in place

  Owned<> import_name(Borrowed<> name, Borrowed<> from_list, Borrowed<> level);
  Owned<> import_from(Borrowed<> module, Borrowed<> name);
  Owned<> make_function(Borrowed<> code);
  Owned<> build_class() { world_.stop("a class statement"); }
  std::pair<Owned<>, Owned<>> enter_with(Borrowed<> manager);  ///< bound __exit__, result of __enter__
  bool matches_exception(Borrowed<> exception, Borrowed<> type);
  Owned<> swap_handled(Owned<> exception);
  [[noreturn]] void raise(Borrowed<> exception, Borrowed<> cause);
  [[noreturn]] void reraise(Borrowed<> exception);
  [[noreturn]] void raise_unbound(Borrowed<> name, bool is_free);
  Owned<> call_now(Borrowed<> callable, std::vector<Owned<>> args, Borrowed<> names = {});

  /// A CALL: pushes the result, or a frame that will push it. `operands` stack values belong to it.
  void call(CallSite site, int operands);
  void return_value(Owned<> value);
  void yield_value();
  void start_generator();
  /// yield from: the next value of the receiver, or {null, its return value}.
  std::pair<Owned<>, Owned<>> send(Borrowed<> receiver, Borrowed<> value);
  [[noreturn]] void leave(const char* what);

  // For callbacks from native code and the models -------------------------------------------------------------------
  /// Runs a suspended generator to its next yield. Null: it returned (`last_return`) or, with PyError, raised.
  /// `sent` null: the exception that is set is thrown into it. The frame is moved out when it is done.
  Owned<> resume_generator(std::optional<Frame>& generator, Owned<> sent);
  const Owned<>& last_return() const { return last_return_; }
  /// For callbacks: runs `body`, turning C++ exceptions into a set error. Null if it failed.
  template <class Body>
  PyObject* from_native(Body body) noexcept;
  std::exception_ptr internal_error;  ///< of a callback; rethrown when native code has returned
  /// Replaces Python callables that native code would call by ones that run here; iterables by safe iterators.
  Owned<> callable_for_native(Borrowed<> callable);
  Owned<> iterable_for_native(Borrowed<> iterable);

 private:
  class Nesting {  ///< while alive, Python runs below a native frame
   public:
    explicit Nesting(Interpreter& self);
    ~Nesting() { --self_.nested_; }
    Nesting(const Nesting&) = delete;

   private:
    Interpreter& self_;
  };
  Owned<> loop(std::size_t base);
  void settle();
  Owned<> nested(std::size_t base);
  bool unwind(std::size_t base);
  std::size_t first_raise_of(Borrowed<> exception) const;
  void realise(Value& value);
  void check_drop(const Value& value);

  // calls.cpp
  /// Follows methods, partials, instances with __call__ until it is a value (returned) or a pushed frame (null).
  Owned<> begin_call(CallSite site);
  Owned<> call_function(Borrowed<PyFunctionObject> function, CallSite& site);
  Owned<> call_type(Borrowed<> type, CallSite& site);
  Owned<> call_native(CallSite& site);
  Owned<> call_method_of(Borrowed<> descriptor, CallSite& site);
  Owned<> call_instance(CallSite& site);
  Owned<> call_module(CallSite& site);
  Owned<> call_cached(CallSite& site);
  bool has_hooks(Borrowed<> module);
  void push_frame(Borrowed<PyFunctionObject> function, CallSite& site);
  void bind(Frame& frame, CallSite& site);
  Owned<> function_default(Borrowed<PyFunctionObject> function, int index, int count);
  Owned<> make_generator(Frame frame);
  Owned<> real_call(CallSite& site);

  // torch_calls.cpp
  Owned<> call_torch(CallSite& site, const std::string& name);
  Owned<> torch_transaction(CallSite& site);
  template <class Call>
  Owned<> transaction(const char* what, Call call, std::span<const Owned<>> written = {});
  void fail_transaction(const char* what, trace::Tracer::Mark mark);
  void fail_poisoned(const trace::Poison& poison, trace::Tracer::Mark mark);
  bool has_fake(const CallSite& site);

  // attributes.cpp
  Owned<> attribute_of_tensor(Borrowed<> tensor, Borrowed<> name);
  Owned<> attribute_of_type(Borrowed<> type, Borrowed<> name);
  /// `is_plain`: as object.__getattribute__, whatever the class overrides.
  Owned<> attribute_of_instance(Borrowed<> object, Borrowed<> name, Owned<>* unbound_self, bool is_plain = false);
  Owned<> attribute_by_override(Borrowed<> getter, Borrowed<> object, Borrowed<> name);
  Owned<> attribute_of_super(Borrowed<> super, Borrowed<> name);
  Owned<> attribute_of_module(Borrowed<> module, Borrowed<> name);
  Owned<> bind_descriptor(Borrowed<> descriptor, Borrowed<> object, PyTypeObject* type, Owned<>* unbound_self);
  Owned<> member_slot(Borrowed<> object, Borrowed<> descriptor);
  Owned<> missing_attribute(Borrowed<> object, Borrowed<> name);
  Owned<> load_attribute(Borrowed<> object, Borrowed<> name, Owned<>* unbound_self);
  bool is_plain_module_attribute(Borrowed<> module, Borrowed<> name, Borrowed<> value);
  void set_instance_attribute(Borrowed<> object, Borrowed<> name, Borrowed<> value);

  // operators.cpp
  bool is_native(Borrowed<> object, int depth = 0);  ///< native code may look into it: exact builtin types all through
  bool is_fake_inside(Borrowed<> object, int depth = 0);
  Owned<> call_special(Borrowed<> object, const char* name, std::vector<Owned<>> args, bool& found);
  bool is_old_opaque(Borrowed<> object);

  // models
  Owned<> call_model(CallSite& site);
  Owned<> call_iterating(CallSite& site, const std::string& name);
  Owned<> call_builtin_method(CallSite& site, const std::string& name);
  Owned<> call_dict_method(CallSite& site, const std::string& name);
  Owned<> call_object_method(CallSite& site, const std::string& name);
  Owned<> call_new(CallSite& site);
  Owned<> call_reducing(CallSite& site, const std::string& name);
  Owned<> allocate(PyTypeObject* type, CallSite& site, const std::string& short_name);
  bool is_instance(Borrowed<> object, Borrowed<> classes, bool is_subclass_check);
  Owned<> make_super(CallSite& site);
  Owned<> smallest(CallSite& site, int comparison);
  Owned<> sort(CallSite& site, Borrowed<> list, bool in_place);
  Borrowed<> keyword(const CallSite& site, const char* name) const;
  std::size_t positional(const CallSite& site) const;
  Owned<> call_value(CallSite& site);
  void note_birth(Borrowed<> object);
  Owned<> guard_result(Owned<> result);

  World& world_;
  const Facts& facts_;
  std::vector<Frame> frames_;
  std::size_t ordinal_ = 0, native_ordinal_ = 0, raise_ordinal_ = 0;
  int nested_ = 0;
  bool is_dirty_ = false;  ///< the instruction under way has had effects that a stop could not take back
  Owned<> last_return_;
  Owned<> handled_;  ///< the exception being handled
  std::unordered_map<PyObject*, std::size_t> births_;
  std::vector<std::pair<Owned<>, std::size_t>> raised_;  ///< caught exceptions, and the instructions that raised them
};

template <class Body>
PyObject* Interpreter::from_native(Body body) noexcept {
  Nesting nesting(*this);
  try {
    return body().release();
  } catch (const py::PyError&) {
    return nullptr;
  } catch (...) {
    internal_error = std::current_exception();
    world_.set_pending({Pending::Kind::kRefuse, Break{"internal error", "", "", 0, ""}, 0});
    return nullptr;
  }
}

}  // namespace braze::capture
