// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/buffer_pool.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace shardcall {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// A sanitizer's build does not pool.
bool Pools(BufferPool* pool) {
  size_t bytes = kMiB;
  void* block = pool->Allocate(&bytes);
  const bool pools = pool->stats().live > 0;
  pool->Free(block, bytes);
  return pools;
}

TEST(BufferPool, PartsOfALargeBlockServeSmallTensors) {
  BufferPool pool;
  if (!Pools(&pool)) GTEST_SKIP() << "nothing is pooled in this build";
  size_t large = 16 * kMiB;
  char* block = static_cast<char*>(pool.Allocate(&large));
  pool.Free(block, large);
  std::vector<std::pair<char*, size_t>> parts;
  for (int i = 0; i < 4; ++i) {
    size_t bytes = 4 * kMiB;
    parts.emplace_back(static_cast<char*>(pool.Allocate(&bytes)), bytes);
    EXPECT_GE(parts.back().first, block);
    EXPECT_LE(parts.back().first + bytes, block + large);
  }
  EXPECT_EQ(pool.stats().live, 16 * kMiB);
  // In any order: what is free becomes one block again.
  std::swap(parts[0], parts[2]);
  for (const auto& [part, bytes] : parts) pool.Free(part, bytes);
  EXPECT_EQ(pool.stats().live, 0u);
  size_t again = 16 * kMiB;
  EXPECT_EQ(pool.Allocate(&again), block);
  pool.Free(block, again);
}

TEST(BufferPool, BlocksAreFreedWhereNoMemoryIsLeft) {
  BufferPool pool;
  if (!Pools(&pool)) GTEST_SKIP() << "nothing is pooled in this build";
  // Every other block is freed, so that none becomes part of another, and each has to be noted.
  const auto frees = [&] {
    std::vector<std::pair<void*, size_t>> blocks;
    for (int i = 0; i < 64; ++i) {
      size_t bytes = BufferPool::kLeastPooledBytes;
      void* const block = pool.Allocate(&bytes);
      blocks.emplace_back(block, bytes);
    }
    std::sort(blocks.begin(), blocks.end());
    const rlimit none = {.rlim_cur = 0, .rlim_max = 0};
    if (setrlimit(RLIMIT_AS, &none) != 0) std::_Exit(1);
    for (size_t bytes = kMiB; bytes > 0; bytes /= 2) {
      while (std::malloc(bytes) != nullptr) {
      }
    }
    for (size_t i = 0; i < blocks.size(); i += 2) pool.Free(blocks[i].first, blocks[i].second);
    std::_Exit(pool.stats().live == blocks.size() / 2 * BufferPool::kLeastPooledBytes ? 0 : 2);
  };
  EXPECT_EXIT(frees(), testing::ExitedWithCode(0), "");
}

TEST(BufferPool, LiveBlocksKeepTheirBytesAndIdleOnesStayWithinBounds) {
  BufferPool pool;
  if (!Pools(&pool)) GTEST_SKIP() << "nothing is pooled in this build";
  std::mt19937 random(1);
  struct Block {
    unsigned char* data;
    size_t bytes;
    unsigned char mark;
  };
  std::vector<Block> blocks;
  auto drop = [&](size_t k) {
    const Block b = blocks[k];
    EXPECT_EQ(std::count(b.data, b.data + b.bytes, b.mark), static_cast<int64_t>(b.bytes));
    pool.Free(b.data, b.bytes);
    blocks.erase(blocks.begin() + k);
  };
  for (int i = 0; i < 2000; ++i) {
    const bool full = blocks.size() > 12;
    if (full || (!blocks.empty() && random() % 3 == 0)) drop(random() % blocks.size());
    size_t bytes = 1 + random() % (random() % 8 == 0 ? kMiB : 200 << 10);
    const size_t asked = bytes;
    auto* data = static_cast<unsigned char*>(pool.Allocate(&bytes));
    ASSERT_NE(data, nullptr);
    ASSERT_GE(bytes, asked);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    blocks.push_back({data, bytes, static_cast<unsigned char>(i)});
    std::memset(data, blocks.back().mark, bytes);
    const BufferPool::Stats stats = pool.stats();
    ASSERT_LE(stats.live + stats.idle, stats.peak + stats.peak / 4 + 4096);
  }
  while (!blocks.empty()) drop(blocks.size() - 1);
}

}  // namespace
}  // namespace shardcall
