// Compiled kernels that outlive the process: content addressed, private, checksummed, bounded.
//
//   <dir>/units/<key>.so    a shared object followed by the SHA-256 of what precedes
//   <dir>/kernels/<key>     "<unit key> <symbol>"
// Files appear by rename, so readers never see half of one. A damaged or missing file is a miss and is removed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braze::toolchain {

struct CachedKernel {
  std::string object;  ///< path of the unit's shared object, checked
  std::string symbol;
};

class DiskCache {
 public:
  /// Makes the directory (0700) if it is not there. Refuses, with the reason in `refusal()`, what is not ours alone.
  DiskCache(std::string dir, std::uint64_t bytes);
  bool usable() const { return !dir_.empty(); }
  const std::string& refusal() const { return refusal_; }

  std::optional<CachedKernel> find(const std::string& kernel_key);
  /// Takes the shared object at `object`; gives the path it has now, or nullopt if it could not be kept.
  std::optional<std::string> store(const std::string& unit_key, const std::string& object);
  void store_kernel(const std::string& kernel_key, const std::string& unit_key, std::string_view symbol);
  /// Removes the least recently used units until the bound holds.
  void trim();

 private:
  std::string unit_path(const std::string& key) const;
  std::string kernel_path(const std::string& key) const;
  bool replace(const std::string& path, std::string_view bytes);

  std::string dir_, refusal_;
  std::uint64_t bytes_;
  std::vector<std::string> checked_;  ///< units whose checksum was found right in this process
};

}  // namespace braze::toolchain
