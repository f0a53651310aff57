// Memory of intermediates that no one sees outside: offsets in one block, reused as soon as the last reader has run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace braze::plan {

/// Blocks are 64-byte aligned and handed out in order of time; a block is free again after its last use.
class Arena {
 public:
  std::int64_t place(std::int64_t bytes, std::size_t now, std::size_t last_use);
  std::size_t size() const { return size_; }

 private:
  struct Block {
    std::int64_t offset, bytes;
    std::size_t last_use;
  };
  std::vector<Block> live_;  // by offset
  std::size_t size_ = 0;
};

}  // namespace braze::plan
