// From live values at a segment's end to a recipe that makes them again on later calls.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "braze/capture/interpreter.h"
#include "braze/capture/native_state.h"
#include "braze/capture/recipe.h"

namespace braze::capture {

/// Collects recipe steps. `visit` gives the step that makes the object; equal objects are made once.
class OutputBuilder {
 public:
  explicit OutputBuilder(Interpreter& interpreter);

  void returns(Borrowed<> value);
  void stops(bool with_module_frames);  ///< the chain of frames; with Module.__call__'s own ones if code will walk them
  void effects();                       ///< shadows that differ from what was read
  void native_state(const NativeState& before, const NativeState& after);

  /// Set if a live object cannot be made again: the capture stops where it was born (0: unknown).
  struct Failure {
    std::string reason;
    std::size_t birth = 0;
  };
  const std::optional<Failure>& failure() const { return failure_; }
  const std::vector<Owned<>>& tensors() const { return tensors_; }  ///< fakes: the graph's outputs
  const std::vector<SourceId>& fetched() const { return fetched_; }
  /// `offset`: number of fetched values before the recipe's own.
  std::unique_ptr<Recipe> build(std::size_t offset);

 private:
  using Index = std::uint32_t;
  Index visit(Borrowed<> object);
  Index make(Borrowed<> object);
  Index make_container(Borrowed<> object);
  Index make_callable(Borrowed<> object);
  Index make_iterator_steps(Borrowed<> object);
  Index make_instance(Borrowed<> object);
  Index emit(Step step);
  Index constant(Borrowed<> object);
  Index fetch(SourceId source);
  std::vector<Index> visit_all(Borrowed<> sequence);
  std::vector<Index> visit_items(Borrowed<> dict);
  Index fail(Borrowed<> object, std::string reason);
  void fill_pending();
  void fill_instance(Borrowed<> object, Index target);
  void add_module_frames(const Frame& frame);
  FramePlan module_frame(Borrowed<> function, const Frame& frame, bool is_last_call);
  void dict_effect(Record& record);
  void list_effect(Record& record);
  void note_distinct(const Record& changed);

  Interpreter& interpreter_;
  World& world_;
  RecipeData data_;
  std::vector<Owned<>> tensors_;
  std::vector<SourceId> fetched_;
  std::unordered_map<std::uint32_t, Index> fetches_;
  std::unordered_map<PyObject*, Index> made_;
  std::vector<std::pair<Owned<>, Index>> unfilled_;
  std::vector<Owned<>> kept_;
  std::optional<Failure> failure_;
};

}  // namespace braze::capture
