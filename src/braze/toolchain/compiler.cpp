#include "braze/toolchain/compiler.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "braze/support/error.h"
#include "braze/support/text.h"
#include "braze/toolchain/files.h"
#include "braze/toolchain/process.h"

namespace braze::toolchain {

namespace {

// What makes a loadable object, whatever the code. Neither start files nor libraries (reading libm and libc takes the
// linker longer than all the rest; both are in the process anyway) nor a plugin; libgcc has conversions of half types.
constexpr const char* kFlags[] = {"-fno-exceptions",        "-fno-rtti", "-fPIC", "-shared", "-nostdlib",
                                  "-fno-use-linker-plugin", "-pipe"};
constexpr const char* kLibrary = "-lgcc";

std::vector<std::string> split_words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// The output of `command --version`, "" if it does not run.
std::string ask_version(std::vector<std::string> command) {
  TemporaryDirectory dir;
  command.emplace_back("--version");
  const Command ask{command, dir.path() + "/version"};
  const Exit exit = run_all({ask}, 1, 10, nullptr).front();
  return exit.succeeded() ? read_file(ask.output).value_or("") : "";
}

std::string quote_start(const std::string& path) {
  std::string text = read_file(path).value_or("");
  constexpr std::size_t kMost = 2000;
  if (text.size() > kMost) text = text.substr(0, kMost) + " ...";
  return text;
}

}  // namespace

Compiler find_compiler(const Settings& settings, const std::vector<std::string>& flags) {
  for (const std::string& line : settings.compilers) {
    Compiler c{split_words(line), {}, {}};
    if (c.command.empty()) continue;
    const std::string version = ask_version(c.command);
    if (version.empty()) continue;
    c.flags = flags;
    c.flags.insert(c.flags.end(), std::begin(kFlags), std::end(kFlags));
    c.identity = line + "\n" + version;
    for (const std::string& flag : c.flags) c.identity += flag + " ";
    return c;
  }
  std::string tried;
  for (const std::string& line : settings.compilers) tried += (tried.empty() ? "" : ", ") + line;
  throw support::CompileError(
      support::format("no C++ compiler works (tried {}). Install g++ or clang++, or set CXX", tried));
}

void compile_all(const Compiler& compiler, const std::vector<Job>& jobs, const Settings& settings,
                 bool (*interrupted)()) {
  std::vector<Command> commands;
  for (const Job& job : jobs) {
    Command c{compiler.command, job.object + ".log"};
    c.argv.insert(c.argv.end(), compiler.flags.begin(), compiler.flags.end());
    c.argv.insert(c.argv.end(), {job.source, "-o", job.object, kLibrary});
    commands.push_back(std::move(c));
  }
  const int parallel =
      settings.parallel > 0 ? settings.parallel : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const std::vector<Exit> exits = run_all(commands, parallel, settings.time_limit, interrupted);
  for (std::size_t i = 0; i < jobs.size(); i++) {
    const bool wrote = exits[i].kind == Exit::Kind::kUnknown && file_size(jobs[i].object) > 0;
    const std::string log = commands[i].output;
    if (exits[i].succeeded() || wrote) {
      unlink(log.c_str());
      continue;
    }
    const std::string said = quote_start(log);
    unlink(log.c_str());
    throw support::CompileError(support::format("{} failed ({}) on {}{}{}", compiler.command.front(), to_text(exits[i]),
                                                jobs[i].source, said.empty() ? "" : ":\n", said));
  }
}

}  // namespace braze::toolchain
