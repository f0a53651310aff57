#include "braze/toolchain/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "braze/support/error.h"
#include "braze/support/text.h"

namespace braze::toolchain {

std::optional<std::string> read_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string bytes;
  char block[65536];
  ssize_t n;
  while ((n = read(fd, block, sizeof block)) > 0) bytes.append(block, static_cast<std::size_t>(n));
  close(fd);
  if (n < 0) return std::nullopt;
  return bytes;
}

bool write_file(const std::string& path, std::string_view bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return close(fd) == 0 && done == bytes.size();
}

std::int64_t file_size(const std::string& path) {
  struct stat s;
  return stat(path.c_str(), &s) == 0 ? s.st_size : -1;
}

TemporaryDirectory::TemporaryDirectory() {
  const char* root = std::getenv("TMPDIR");
  path_ = std::string(root != nullptr && *root == '/' ? root : "/tmp") + "/braze-XXXXXX";
  if (mkdtemp(path_.data()) == nullptr)
    throw support::CompileError(support::format("no temporary directory {}: {}", path_, std::strerror(errno)));
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!keep_) std::filesystem::remove_all(path_, ignored);
}

}  // namespace braze::toolchain
