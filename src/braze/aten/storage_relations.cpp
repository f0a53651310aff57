// Partitions are compared through representatives: every key maps to the number of its class, and every class was seen
// with one key only.
#include "braze/aten/storage_relations.h"

#include <algorithm>

namespace braze::aten {

bool are_apart(const std::vector<Memory>& memory, const std::vector<std::uint32_t>& changed) noexcept {
  for (const std::uint32_t i : changed) {
    const Memory& a = memory[i];
    for (const Memory& b : memory) {
      if (!a.is_foreign && !b.is_foreign) continue;
      if (a.storage != b.storage && a.begin < b.end && b.begin < a.end) return false;
    }
  }
  return true;
}

void PointerTable::resize(std::size_t entries) {
  std::size_t capacity = 8;
  while (capacity < 2 * entries) capacity *= 2;
  slots_.assign(capacity, {});
  mask_ = capacity - 1;
}

std::size_t PointerTable::start(const void* key) const noexcept {
  const auto bits = reinterpret_cast<std::uintptr_t>(key) >> 4;
  return (bits * 0x9E3779B97F4A7C15ULL >> 32) & mask_;
}

std::uint32_t PointerTable::find(const void* key) const noexcept {
  for (std::size_t i = start(key);; i = (i + 1) & mask_) {
    if (slots_[i].stamp != stamp_) return kAbsent;
    if (slots_[i].key == key) return slots_[i].value;
  }
}

std::uint32_t PointerTable::find_or_insert(const void* key, std::uint32_t value) noexcept {
  for (std::size_t i = start(key);; i = (i + 1) & mask_) {
    if (slots_[i].stamp != stamp_) {
      slots_[i] = {key, stamp_, value};
      return value;
    }
    if (slots_[i].key == key) return slots_[i].value;
  }
}

void StorageRelations::learn(const std::vector<Example>& examples) {
  const std::size_t n = examples.size();
  for (PointerTable* table : {&stable_table_, &volatile_table_, &object_table_}) table->resize(n);
  PointerTable storages, objects;
  storages.resize(n);
  objects.resize(n);
  std::vector<std::uint32_t> objects_in_class(n, 0);
  has_stable_.assign(n, false);
  for (std::uint32_t i = 0; i < n; ++i) {
    class_of_.push_back(storages.find_or_insert(examples[i].storage, i));
    object_of_.push_back(objects.find_or_insert(examples[i].tensor, i));
    objects_in_class[class_of_[i]] += 1;
    (examples[i].is_volatile ? volatile_ : stable_).push_back(i);
    if (!examples[i].is_volatile) has_stable_[class_of_[i]] = true;
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    shared_.push_back(objects_in_class[class_of_[i]] > 1);
    if (shared_[i]) shared_members_.push_back(i);
  }
  for (auto* seen : {&seen_stable_, &seen_volatile_, &seen_objects_}) seen->assign(n, nullptr);
}

bool StorageRelations::note(std::vector<const void*>& seen, std::uint32_t c, const void* key) noexcept {
  if (seen[c] == nullptr) seen[c] = key;
  return seen[c] == key;
}

bool StorageRelations::rebuild_stable(const void* const* storages) noexcept {
  stable_table_.clear();
  std::fill(seen_stable_.begin(), seen_stable_.end(), nullptr);
  for (const std::uint32_t i : stable_) {
    const std::uint32_t c = class_of_[i];
    if (stable_table_.find_or_insert(storages[i], c) != c || !note(seen_stable_, c, storages[i])) return false;
  }
  return true;
}

bool StorageRelations::volatile_hold(const void* const* storages) noexcept {
  volatile_table_.clear();
  for (const std::uint32_t i : volatile_) seen_volatile_[class_of_[i]] = nullptr;
  for (const std::uint32_t i : volatile_) {
    const std::uint32_t c = class_of_[i];
    const std::uint32_t stable = stable_table_.find(storages[i]);
    if (stable != (has_stable_[c] ? c : PointerTable::kAbsent)) return false;
    if (volatile_table_.find_or_insert(storages[i], c) != c || !note(seen_volatile_, c, storages[i])) return false;
  }
  return true;
}

bool StorageRelations::objects_hold(const void* const* tensors) noexcept {
  if (shared_members_.empty()) return true;
  object_table_.clear();
  for (const std::uint32_t i : shared_members_) seen_objects_[object_of_[i]] = nullptr;
  for (const std::uint32_t i : shared_members_) {
    const std::uint32_t o = object_of_[i];
    if (object_table_.find_or_insert(tensors[i], o) != o || !note(seen_objects_, o, tensors[i])) return false;
  }
  return true;
}

bool StorageRelations::holds(const void* const* storages, const void* const* tensors, bool stable_changed) noexcept {
  if (stable_changed || !stable_valid_) {
    stable_valid_ = rebuild_stable(storages);
    if (!stable_valid_) return false;
  }
  return volatile_hold(storages) && objects_hold(tensors);
}

}  // namespace braze::aten
