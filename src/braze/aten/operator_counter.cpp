// A thread-local record function: nothing is installed while no scope is open.
#include "braze/aten/operator_counter.h"

#include <ATen/record_function.h>

#include <memory>
#include <vector>

namespace braze::aten {

namespace {

struct State {
  int scopes = 0;
  int pauses = 0;
  std::int64_t count = 0;
  std::vector<bool> made_calls;  ///< per operator under way: it called another one
};

thread_local State state;

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction&) {
  if (!state.made_calls.empty()) state.made_calls.back() = true;
  state.made_calls.push_back(false);
  return nullptr;
}

void leave(const at::RecordFunction&, at::ObserverContext*) {
  if (state.made_calls.empty()) return;  // entered before the scope
  if (!state.made_calls.back() && state.pauses == 0) ++state.count;
  state.made_calls.pop_back();
}

}  // namespace

OperatorCounter::OperatorCounter() {
  if (state.scopes++ > 0) return;
  state.count = 0;
  state.made_calls.clear();
  handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(enter, leave).scopes({at::RecordScope::FUNCTION}));
}

OperatorCounter::~OperatorCounter() {
  --state.scopes;
  if (handle_ != 0) at::removeCallback(handle_);
}

std::int64_t OperatorCounter::count() const { return handle_ != 0 ? state.count : 0; }

OperatorCounter::Pause::Pause() { ++state.pauses; }
OperatorCounter::Pause::~Pause() { --state.pauses; }

}  // namespace braze::aten
