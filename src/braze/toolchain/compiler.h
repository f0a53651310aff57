// The C++ compiler of this machine: found once, asked for shared objects.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braze/toolchain/settings.h"

namespace braze::toolchain {

/// A working compiler. `identity` changes whenever its output may: command line, version text, flags.
struct Compiler {
  std::vector<std::string> command;  ///< program and leading arguments, "ccache g++"
  std::vector<std::string> flags;
  std::string identity;
};

/// `flags`: language, optimisation and target. The first of settings.compilers that answers --version; CompileError
/// that lists what was tried if there is none.
Compiler find_compiler(const Settings& settings, const std::vector<std::string>& flags);

struct Job {
  std::string source;  ///< path of a .cpp that exists
  std::string object;  ///< path of the shared object to write
};

/// Compiles all jobs side by side. CompileError names the source (which stays) and quotes the compiler.
void compile_all(const Compiler& compiler, const std::vector<Job>& jobs, const Settings& settings,
                 bool (*interrupted)());

}  // namespace braze::toolchain
