// The arena never gives the same bytes to two blocks that live at the same time.
#include "braze/plan/arena.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace braze::plan {
namespace {

TEST(Arena, ReusesWhatIsDead) {
  Arena a;
  EXPECT_EQ(a.place(100, 0, 1), 0);
  EXPECT_EQ(a.place(100, 1, 2), 128);
  EXPECT_EQ(a.place(100, 2, 3), 0);
  EXPECT_EQ(a.size(), 256u);
}

TEST(Arena, LiveBlocksNeverOverlap) {
  struct Block {
    std::int64_t offset, bytes;
    std::size_t last;
  };
  std::mt19937 random(7);
  Arena arena;
  std::vector<Block> blocks;
  for (std::size_t now = 0; now < 500; ++now) {
    const std::int64_t bytes = random() % 5000;
    const std::size_t last = now + random() % 20;
    const std::int64_t offset = arena.place(bytes, now, last);
    EXPECT_EQ(offset % 64, 0);
    for (const Block& b : blocks)
      EXPECT_TRUE(b.last < now || offset >= b.offset + b.bytes || offset + bytes <= b.offset);
    blocks.push_back({offset, bytes, last});
  }
}

}  // namespace
}  // namespace braze::plan
