#include "braze/toolchain/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

#include "braze/support/text.h"

namespace braze::toolchain {

namespace {

using Clock = std::chrono::steady_clock;

/// One running child; killed with its group and reaped when it goes out of scope unfinished.
class Child {
 public:
  Child(const Command& command, double time_limit)
      : deadline_(Clock::now() +
                  std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time_limit))) {
    std::vector<char*> argv;
    for (const std::string& a : command.argv) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, command.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    for (int s : {SIGINT, SIGTERM, SIGPIPE, SIGCHLD}) sigaddset(&defaults, s);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    const int error = posix_spawnp(&pid_, argv[0], &files, &attributes, argv.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (error != 0) {
      pid_ = -1;
      exit_ = {Exit::Kind::kNotStarted, error};
      return;
    }
    fd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  }
  Child(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) {
      kill(-pid_, SIGKILL);
      reap(0);
    }
    if (fd_ >= 0) close(fd_);
  }

  bool finished() {
    if (pid_ > 0) reap(WNOHANG);
    if (pid_ > 0 && Clock::now() > deadline_) {
      kill(-pid_, SIGKILL);
      reap(0);
      exit_ = {Exit::Kind::kTimedOut, 0};
    }
    return pid_ <= 0;
  }
  int fd() const { return fd_; }
  Exit exit() const { return exit_; }

 private:
  void reap(int flags) {
    int status = 0;
    pid_t got;
    do got = waitpid(pid_, &status, flags);
    while (got < 0 && errno == EINTR);
    if (got == 0) return;
    pid_ = -1;
    if (got < 0) exit_ = {Exit::Kind::kUnknown, 0};
    else if (WIFEXITED(status)) exit_ = {Exit::Kind::kExited, WEXITSTATUS(status)};
    else exit_ = {Exit::Kind::kSignalled, WTERMSIG(status)};
  }

  Clock::time_point deadline_;
  pid_t pid_ = -1;
  int fd_ = -1;
  Exit exit_;
};

/// Sleeps until a child ends, or for a moment (short where the kernel has no pidfd).
void wait_for_any(const std::vector<std::unique_ptr<Child>>& running) {
  std::vector<pollfd> fds;
  int patience = 50;
  for (const auto& c : running)
    if (c == nullptr) continue;
    else if (c->fd() >= 0) fds.push_back({c->fd(), POLLIN, 0});
    else patience = 1;
  poll(fds.data(), fds.size(), patience);
}

}  // namespace

std::string to_text(const Exit& e) {
  switch (e.kind) {
    case Exit::Kind::kExited: return support::format("exit status {}", e.code);
    case Exit::Kind::kSignalled: return support::format("killed by signal {}", e.code);
    case Exit::Kind::kTimedOut: return "killed at its time limit";
    case Exit::Kind::kNotStarted: return support::format("not started: {}", std::strerror(e.code));
    case Exit::Kind::kUnknown: break;
  }
  return "unknown end";
}

std::vector<Exit> run_all(const std::vector<Command>& commands, int parallel, double time_limit,
                          bool (*interrupted)()) {
  std::vector<Exit> exits(commands.size());
  std::vector<std::unique_ptr<Child>> running(commands.size());
  std::size_t next = 0, done = 0;
  int active = 0;
  while (done < commands.size()) {
    for (; active < parallel && next < commands.size(); next++, active++)
      running[next] = std::make_unique<Child>(commands[next], time_limit);
    wait_for_any(running);
    if (interrupted != nullptr && interrupted()) return exits;
    for (std::size_t i = 0; i < next; i++) {
      if (running[i] == nullptr || !running[i]->finished()) continue;
      exits[i] = running[i]->exit();
      running[i].reset();
      done++, active--;
    }
  }
  return exits;
}

}  // namespace braze::toolchain
