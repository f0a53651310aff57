// Small files, read and written whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace braze::toolchain {

std::optional<std::string> read_file(const std::string& path);
bool write_file(const std::string& path, std::string_view bytes);  ///< mode 0600, replaces; false if it cannot
std::int64_t file_size(const std::string& path);                   ///< -1: no such file

/// A fresh directory of mode 0700 below $TMPDIR or /tmp, removed with its files at the end of scope. CompileError.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }
  void keep() { keep_ = true; }

 private:
  std::string path_;
  bool keep_ = false;
};

}  // namespace braze::toolchain
