// A plan made ready to run: sizes fixed, kernels loaded, operators looked up, last uses known.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "braze/kernel/interpret.h"
#include "braze/plan/plan.h"
#include "braze/runtime/library_call.h"
#include "braze/runtime/process_library.h"

namespace braze::runtime {

/// Compiled code, or the kernel itself for the interpreter.
struct LoadedKernel {
  KernelFunction function = nullptr;
  std::shared_ptr<const kernel::Kernel> interpreted;

  void operator()(void* const* buffers, const std::int64_t* arguments, std::int64_t begin, std::int64_t end) const {
    if (interpreted) kernel::interpret(*interpreted, buffers, arguments, begin, end);
    else function(buffers, arguments, begin, end);
  }
};

struct PreparedLaunch {
  struct Operand {
    std::uint32_t root;
    std::int64_t byte_offset;
  };
  LoadedKernel kernel;
  std::vector<Operand> operands;
  std::vector<std::int64_t> arguments;  ///< integers, then doubles as bit patterns
  std::int64_t extent = 0, grain = 1;
  bool checks = false;
};

struct PreparedStep {
  enum class Kind : std::uint8_t { kAllocate, kLaunch, kCall, kFree };
  Kind kind;
  std::uint32_t index;  ///< of the buffer, launch or call
};

struct Prepared {
  std::vector<Layout> layouts;
  std::vector<std::uint32_t> used;  ///< buffers that a run touches; most of a large plan live in registers only
  std::vector<PreparedStep> steps;
  std::vector<PreparedLaunch> launches;
  std::vector<LibraryCall> calls;
  std::vector<plan::BufferId> inputs, outputs;
  std::size_t arena_bytes = 0;
};

/// The plan for these values of its symbols, in their order.
plan::Plan bind_symbols(const plan::Plan& plan, std::span<const std::int64_t> values);

/// `kernels`: one per plan.kernels. All sizes must be constant.
Prepared prepare(const plan::Plan& plan, std::span<const LoadedKernel> kernels);

}  // namespace braze::runtime
