// From kernel sources to functions: looked up in this process, then on disk, else compiled; loaded with dlopen.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braze/plan/plan.h"
#include "braze/toolchain/settings.h"

namespace braze::toolchain {

/// The ABI of plan.h.
using KernelFunction = void (*)(void* const* buffers, const std::int64_t* arguments, std::int64_t begin,
                                std::int64_t end);

/// What every unit starts with and how it is compiled (language, optimisation, target features by name).
struct Dialect {
  std::string prelude;
  std::vector<std::string> flags;
};

class KernelLibrary {
 public:
  KernelLibrary(Settings settings, Dialect dialect, bool (*interrupted)());
  ~KernelLibrary();

  /// One function per kernel, valid for the life of the library. Thread-safe. CompileError. Asks `interrupted` while
  /// compilers run; its exception passes on.
  std::vector<KernelFunction> load(std::span<const plan::Kernel> kernels);

  struct Counts {
    std::size_t compiled = 0, from_disk = 0, from_memory = 0;
  };
  Counts counts() const;
  /// Why there is no disk cache, once: "" afterwards and if there is one.
  std::string take_warning();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace braze::toolchain
