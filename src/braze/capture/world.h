// What the capture sees of the objects that existed before it: "visible" stand-ins, sources, guards.
//
// Old objects are never changed during a capture. A list, dict, set, deque or cell is seen as a shadow: a real object
// of the same type, filled from guarded reads, that interpreted and native code may change freely. At the end a shadow
// that differs from what was read is an effect (outputs.h). Tensors are seen as their fakes; modules and other
// instances as themselves, their attributes through the shadow of their __dict__. Everything without a record here is
// fresh, or a constant that a guard pins.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "braze/capture/capture.h"
#include "braze/capture/objects.h"
#include "braze/guard/guard.h"
#include "braze/trace/tracer.h"

namespace braze::capture {

using guard::GuardKind;
using guard::SourceId;
using guard::SourceKind;

enum class RecordKind : std::uint8_t {
  kInstance,
  kTensor,
  kDict,
  kList,
  kSet,
  kDeque,
  kCell,
  kTuple,
  kMethod,
  kPartial
};

struct Record {
  RecordKind kind = RecordKind::kInstance;
  Owned<> visible, real;
  SourceId source;
  bool filled = false;
  std::vector<Owned<>> before;  ///< filled: the elements read, in order; a dict's as key, value (null: never read)
  // A dict that is not filled knows only the keys that were asked for:
  Owned<> absent;                                  ///< set of keys known to be missing now
  std::vector<Owned<>> writes;                     ///< keys stored or deleted, in order of the last creation
  std::vector<std::pair<Owned<>, Owned<>>> slots;  ///< written member slots of an instance: descriptor, value
};

/// What a restart must do differently.
struct Facts {
  std::optional<std::size_t> stop_at;  ///< number of the instruction to stop at
  Break reason;
  std::vector<Owned<>> inputs;  ///< real tensors that native code met: inputs from the start
};

/// How a capture attempt is left early. Set together with a private exception, so that it passes native code.
struct Pending {
  enum class Kind : std::uint8_t { kStop, kRestart, kRefuse, kInput };
  Kind kind = Kind::kStop;
  Break reason = {};
  std::size_t at = 0;        ///< of a restart: number of the instruction to stop at
  bool voids_trace = false;  ///< the trace is spoilt: nothing of this attempt can be used
  Owned<> tensor = {};       ///< kInput: a real tensor that must be an input from the start
};

class World {
 public:
  explicit World(bool is_start);

  /// The visible object for a value read through `source`; adds the guards that pin what is known about it.
  Owned<> wrap(SourceId source, Borrowed<> real);
  /// A source for something that the entry keeps alive.
  SourceId held(Borrowed<> object);
  /// Notes that identity is pinned: the object may be used as a constant from now on.
  void pin(Borrowed<> object);
  bool is_pinned(Borrowed<> object) const { return pinned_.contains(object.get()); }

  Record* record_of(Borrowed<> visible) const;
  Record* record_of_real(Borrowed<> real) const;
  /// Makes the frame's own function readable through `source`.
  void adopt(SourceId source, Borrowed<> object) { add(RecordKind::kInstance, source, object, share(object)); }
  /// True if guards already say that the two are not one object.
  bool are_known_distinct(const Record& a, const Record& b) const { return is_unique(a.source) && is_unique(b.source); }
  /// A source through which the visible object, pinned or recorded, can be read.
  SourceId source_of(Borrowed<> visible);

  /// Fills the shadow (one level) if it is one; `fill_deep` also all containers inside.
  void fill(Borrowed<> visible);
  void fill_deep(Borrowed<> visible);
  /// Stops if iterating the set may show another order than the program's own set: that depends on its history.
  void check_order(Borrowed<> set);

  // Dicts by key, whether fresh, filled or not. get: null if missing.
  Owned<> dict_get(Borrowed<> dict, Borrowed<> key);
  void dict_set(Borrowed<> dict, Borrowed<> key, Borrowed<> value);
  bool dict_remove(Borrowed<> dict, Borrowed<> key);
  /// The visible __dict__ of an instance, old or fresh; null if it has none.
  Owned<> dict_of(Borrowed<> visible);
  /// Globals of a function by its visible dict.
  Owned<> globals_of(Borrowed<PyFunctionObject> function);
  Owned<> builtins_of(Borrowed<PyFunctionObject> function);

  /// MRO look-up in a type, guarded; borrowed raw value (not wrapped), null if missing.
  Borrowed<> type_look_up(PyTypeObject* type, Borrowed<> name);
  /// The visible object of what type_look_up found.
  Owned<> type_value(PyTypeObject* type, Borrowed<> name, Borrowed<> raw);

  Owned<> cell_get(Borrowed<> cell);
  void cell_set(Borrowed<> cell, Borrowed<> value);

  /// A pending number's int, its origins guarded by value; anything else as it is.
  Owned<> concrete(Borrowed<> object);

  /// Guards that two values are, or are not, one object.
  void note_identity(Borrowed<> a, Borrowed<> b);

  [[noreturn]] void stop(std::string reason, std::string advice = "");
  /// Sets `pending` and its exception without throwing.
  void set_pending(Pending pending);
  [[noreturn]] void stop_void(std::string reason);
  [[noreturn]] void refuse(std::string reason);

  guard::SourceTable sources;
  guard::GuardBuilder guards;  ///< notes torch's state as it is before the tracer changes it
  trace::Tracer tracer;
  std::optional<Pending> pending;
  double trace_seconds = 0;  ///< spent in torch calls on fakes
  const std::deque<std::unique_ptr<Record>>& records() const { return records_; }

 private:
  Record& add(RecordKind kind, SourceId source, Borrowed<> real, Owned<> visible);
  Owned<> wrap_constant(SourceId source, Borrowed<> real, GuardKind kind);
  Owned<> wrap_tensor(SourceId source, Borrowed<> real);
  Owned<> wrap_tuple(SourceId source, Borrowed<> real);
  Owned<> wrap_container(SourceId source, Borrowed<> real);
  Owned<> wrap_method(SourceId source, Borrowed<> real);
  Owned<> wrap_partial(SourceId source, Borrowed<> real);
  Owned<> wrap_instance(SourceId source, Borrowed<> real);
  Owned<> new_like(Borrowed<> real);
  void fill_list(Record& record);
  void fill_dict(Record& record);
  void fill_set(Record& record);
  void fill_cell(Record& record);
  Owned<> read_number(SourceId source, Borrowed<> real);
  Owned<> dict_read(Record& record, Borrowed<> key);

  bool is_unique(SourceId source) const;

  bool is_start_;
  std::unordered_map<std::uint32_t, bool> identified_;  ///< sources whose object's identity is guarded
  std::deque<std::unique_ptr<Record>> records_;
  std::unordered_map<PyObject*, Record*> by_visible_, by_real_;
  std::unordered_map<PyObject*, Owned<>> pinned_;
};

/// The exception that carries a Pending through native code.
Borrowed<> stop_exception();
/// True for None, numbers, strings, bytes (exact types), and tuples of them.
bool is_plain_constant(Borrowed<> object);
/// True for objects that are guarded by identity: types, functions, modules, native functions, dtypes ...
bool is_identity_constant(Borrowed<> object);

}  // namespace braze::capture
