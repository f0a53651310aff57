// Which tensors of one call share a storage, compared with how it was when the call was captured.
//
// Rule: two guarded tensors share a StorageImpl now if and only if they did in the example; where they did, the pairs
// that are one tensor object are the same pairs too (their offsets are compared by the tensor guard). A trace may then
// treat tensors of different classes as memory that never overlaps and those of one class as views of one base.
// Parameters keep their storages for long, so their table is rebuilt only when one of them got another storage;
// arguments (`volatile`) are looked up on every call. Linear in the number of changed tensors, no allocation.
// Two storages over common memory (two tensors of one numpy array) never pass: no trace describes them.
#pragma once

#include <cstdint>
#include <vector>

namespace braze::aten {

/// The memory of one tensor's storage. Foreign: not from PyTorch's allocator (numpy, DLPack, files), so that another
/// storage may lie in the same memory.
struct Memory {
  const void* storage = nullptr;
  std::uintptr_t begin = 0, end = 0;
  bool is_foreign = false;
  bool operator==(const Memory&) const = default;
};

/// No two tensors of different storages lie in common memory. Only pairs with a foreign one can; compared are pairs
/// with one of `changed`.
bool are_apart(const std::vector<Memory>& memory, const std::vector<std::uint32_t>& changed) noexcept;

/// An open-addressing map from pointers to small numbers that is emptied in constant time.
class PointerTable {
 public:
  void resize(std::size_t entries);
  void clear() noexcept { ++stamp_; }
  static constexpr std::uint32_t kAbsent = ~0U;
  std::uint32_t find(const void* key) const noexcept;
  /// The number stored for `key`, which is `value` if the key is new.
  std::uint32_t find_or_insert(const void* key, std::uint32_t value) noexcept;

 private:
  struct Slot {
    const void* key = nullptr;
    std::uint64_t stamp = 0;
    std::uint32_t value = 0;
  };
  std::size_t start(const void* key) const noexcept;
  std::vector<Slot> slots_;
  std::uint64_t stamp_ = 1;
  std::size_t mask_ = 0;
};

/// A partition of tensors into classes of equal keys.
class StorageRelations {
 public:
  struct Example {
    const void* storage;
    const void* tensor;
    bool is_volatile;
  };
  /// Learns the partition from the captured call's tensors.
  void learn(const std::vector<Example>& examples);
  /// The example shares its storage with another tensor object.
  bool is_shared(std::size_t tensor) const { return shared_[tensor]; }
  /// storages[i], tensors[i]: the present ones. stable_changed: a tensor that is not volatile has a storage other than
  /// at the last call of holds().
  bool holds(const void* const* storages, const void* const* tensors, bool stable_changed) noexcept;

 private:
  bool rebuild_stable(const void* const* storages) noexcept;
  bool volatile_hold(const void* const* storages) noexcept;
  bool objects_hold(const void* const* tensors) noexcept;
  /// Notes that class `c` lives in `storage`; false if it was seen in another one.
  static bool note(std::vector<const void*>& seen, std::uint32_t c, const void* storage) noexcept;

  std::vector<std::uint32_t> class_of_, object_of_;
  std::vector<std::uint32_t> volatile_, stable_, shared_members_;
  std::vector<bool> shared_, has_stable_;
  std::vector<const void*> seen_stable_, seen_volatile_, seen_objects_;
  PointerTable stable_table_, volatile_table_, object_table_;
  bool stable_valid_ = false;
};

}  // namespace braze::aten
