#include "braze/toolchain/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "braze/support/text.h"
#include "braze/toolchain/files.h"
#include "braze/toolchain/sha256.h"

namespace braze::toolchain {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDigest = 64;

/// "" if the directory exists and is ours alone, else what is wrong with it.
std::string make_private(const std::string& dir) {
  std::error_code error;
  if (fs::path(dir).has_parent_path()) fs::create_directories(fs::path(dir).parent_path(), error);
  if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST)
    return support::format("{} cannot be made: {}", dir, std::strerror(errno));
  struct stat s;
  if (stat(dir.c_str(), &s) != 0) return support::format("{}: {}", dir, std::strerror(errno));
  if (!S_ISDIR(s.st_mode)) return support::format("{} is not a directory", dir);
  if (s.st_uid != geteuid()) return support::format("{} belongs to user {}, not to us ({})", dir, s.st_uid, geteuid());
  if ((s.st_mode & 0022) != 0)
    return support::format("{} is writable by others (mode {:o}); chmod 700 it", dir, s.st_mode & 0777);
  if (access(dir.c_str(), W_OK | X_OK) != 0) return support::format("{} is not writable", dir);
  return "";
}

bool is_whole(const std::string& bytes) {
  if (bytes.size() <= kDigest) return false;
  const std::string_view body(bytes.data(), bytes.size() - kDigest);
  return sha256(body) == std::string_view(bytes).substr(body.size());
}

}  // namespace

DiskCache::DiskCache(std::string dir, std::uint64_t bytes) : bytes_(bytes) {
  if (dir.empty()) return;
  for (const std::string& part : {dir, dir + "/units", dir + "/kernels"})
    if (refusal_ = make_private(part); !refusal_.empty()) return;
  dir_ = std::move(dir);
}

std::string DiskCache::unit_path(const std::string& key) const { return dir_ + "/units/" + key + ".so"; }
std::string DiskCache::kernel_path(const std::string& key) const { return dir_ + "/kernels/" + key; }

std::optional<CachedKernel> DiskCache::find(const std::string& kernel_key) {
  if (!usable()) return std::nullopt;
  const auto entry = read_file(kernel_path(kernel_key));
  if (!entry) return std::nullopt;
  const std::size_t space = entry->find(' ');
  const std::string unit = entry->substr(0, space);
  const std::string path = unit_path(unit);
  const bool well_formed = space == kDigest && entry->ends_with('\n') && unit.find('/') == std::string::npos;
  const bool known = std::ranges::find(checked_, unit) != checked_.end() && access(path.c_str(), R_OK) == 0;
  if (well_formed && !known) {
    if (const auto bytes = read_file(path); bytes && is_whole(*bytes)) {
      checked_.push_back(unit);
      utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used now: last to be trimmed
    } else {
      unlink(path.c_str());
    }
  }
  if (!well_formed || std::ranges::find(checked_, unit) == checked_.end() || access(path.c_str(), R_OK) != 0) {
    unlink(kernel_path(kernel_key).c_str());
    return std::nullopt;
  }
  return CachedKernel{path, entry->substr(space + 1, entry->size() - space - 2)};
}

bool DiskCache::replace(const std::string& path, std::string_view bytes) {
  static std::atomic<unsigned> counter;
  const std::string fresh = support::format("{}.{}.{}", path, getpid(), counter++);
  if (write_file(fresh, bytes) && rename(fresh.c_str(), path.c_str()) == 0) return true;
  unlink(fresh.c_str());
  return false;
}

std::optional<std::string> DiskCache::store(const std::string& unit_key, const std::string& object) {
  if (!usable()) return std::nullopt;
  auto bytes = read_file(object);
  if (!bytes) return std::nullopt;
  const std::string path = unit_path(unit_key);
  if (!replace(path, *bytes + sha256(*bytes))) return std::nullopt;
  checked_.push_back(unit_key);
  return path;
}

void DiskCache::store_kernel(const std::string& kernel_key, const std::string& unit_key, std::string_view symbol) {
  if (usable()) replace(kernel_path(kernel_key), support::format("{} {}\n", unit_key, symbol));
}

void DiskCache::trim() {
  if (!usable()) return;
  struct Unit {
    fs::file_time_type used;
    fs::path path;
    std::uint64_t size;
  };
  std::vector<Unit> units;
  std::uint64_t total = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir_ + "/units", error)) {
    Unit u{entry.last_write_time(error), entry.path(), entry.file_size(error)};
    if (error) continue;
    total += u.size;
    units.push_back(std::move(u));
  }
  if (total <= bytes_) return;
  std::ranges::sort(units, {}, &Unit::used);
  for (const Unit& u : units) {
    if (total <= bytes_ / 4 * 3) break;
    if (fs::remove(u.path, error)) total -= u.size;
  }
  for (const auto& entry : fs::directory_iterator(dir_ + "/kernels", error)) {
    const std::string text = read_file(entry.path()).value_or("");
    if (file_size(unit_path(text.substr(0, text.find(' ')))) < 0) unlink(entry.path().c_str());
  }
}

}  // namespace braze::toolchain
