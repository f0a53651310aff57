// Child processes with a time limit: posix_spawn, never fork; whole process groups are killed.
#pragma once

#include <string>
#include <vector>

namespace braze::toolchain {

struct Command {
  std::vector<std::string> argv;  ///< argv[0] is searched in PATH if it has no slash
  std::string output;             ///< file that receives stdout and stderr
};

struct Exit {
  enum class Kind { kExited, kSignalled, kTimedOut, kNotStarted, kUnknown };
  Kind kind = Kind::kUnknown;  ///< kUnknown: somebody else reaped the child; judge by what it wrote
  int code = 0;                ///< exit status, signal, or errno
  bool succeeded() const { return kind == Kind::kExited && code == 0; }
};
std::string to_text(const Exit& e);

/// Runs the commands, at most `parallel` at a time, each for at most `time_limit` seconds, and waits for all.
/// `interrupted` (may be null) is asked several times a second; if it says true, or throws, all are killed; then Exits
/// are kUnknown, or its exception passes on.
std::vector<Exit> run_all(const std::vector<Command>& commands, int parallel, double time_limit, bool (*interrupted)());

}  // namespace braze::toolchain
