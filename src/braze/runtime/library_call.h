// One call of an operator of PyTorch: typed where it is hot, boxed otherwise.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <optional>
#include <vector>

#include "braze/aten/argument.h"
#include "braze/plan/plan.h"
#include "braze/runtime/buffers.h"

namespace c10 {
class OperatorHandle;
}

namespace braze::runtime {

class LibraryCall {
 public:
  /// All integers of the call must be constant. `in_place`: its results have memory already and are written there.
  LibraryCall(const plan::Call& call, bool in_place);

  /// Results are bound in the layout the plan gives them. Exceptions of PyTorch pass.
  void run(Buffers& buffers) const;
  const std::vector<std::uint32_t>& operands() const { return operands_; }  ///< buffers that it reads

 private:
  friend struct TypedCalls;
  using Typed = void (*)(const LibraryCall&, Buffers&);

  void run_boxed(Buffers& buffers) const;
  void store(Buffers& buffers, std::size_t result, at::Tensor t) const;

  std::string name_;
  std::vector<plan::Arg> args_;
  std::vector<plan::BufferId> results_;
  std::vector<std::uint32_t> operands_;  ///< every buffer named by an argument
  std::vector<aten::ArgKind> kinds_;
  std::vector<std::optional<c10::IValue>> constants_;  ///< arguments without tensors in them
  std::shared_ptr<const c10::OperatorHandle> handle_;
  Typed typed_ = nullptr;
  bool in_place_;
};

}  // namespace braze::runtime
