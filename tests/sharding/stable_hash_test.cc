// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/stable_hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace shardcall::testing {
namespace {

uint64_t Bulk(absl::string_view bytes) { return StableHash().AddBulk(bytes).value(); }

std::string Bytes(size_t n) {
  std::string bytes(n, '\0');
  for (size_t k = 0; k < n; ++k) bytes[k] = static_cast<char>(k * 37 + 11);
  return bytes;
}

TEST(StableHash, BulkTellsEveryBitOfEveryLength) {
  for (const size_t n : {0, 1, 7, 8, 31, 32, 33, 64, 100, 256}) {
    std::string bytes = Bytes(n);
    std::set<uint64_t> seen = {Bulk(bytes)};
    for (size_t bit = 0; bit < 8 * n; ++bit) {
      bytes[bit / 8] ^= 1 << bit % 8;
      seen.insert(Bulk(bytes));
      bytes[bit / 8] ^= 1 << bit % 8;
    }
    EXPECT_EQ(seen.size(), 8 * n + 1) << n;
  }
}

// FNV's own step would let two flips of a word's highest bit cancel each other.
TEST(StableHash, BulkTellsTwoSignsThatAreFlipped) {
  const std::string bytes = Bytes(256);
  std::set<uint64_t> seen = {Bulk(bytes)};
  size_t pairs = 0;
  for (size_t a = 7; a < bytes.size(); a += 8) {
    for (size_t b = a + 8; b < bytes.size(); b += 8, ++pairs) {
      std::string flipped = bytes;
      flipped[a] ^= '\x80';
      flipped[b] ^= '\x80';
      seen.insert(Bulk(flipped));
    }
  }
  EXPECT_EQ(seen.size(), pairs + 1);
}

TEST(StableHash, BulkTellsLengthsOfZerosAndOrder) {
  std::set<uint64_t> seen;
  for (size_t n = 0; n < 200; ++n) seen.insert(Bulk(std::string(n, '\0')));
  EXPECT_EQ(seen.size(), 200);
  EXPECT_NE(Bulk(Bytes(64) + std::string(64, 'x')), Bulk(std::string(64, 'x') + Bytes(64)));
}

// The same in every process and build: ranks compare it.
TEST(StableHash, ValuesStayWhatTheyAre) {
  EXPECT_EQ(StableHash().Add("abc").value(), 0xe71fa2190541574bu);  // FNV-1a
  EXPECT_EQ(Bulk(Bytes(100)), 17276536491207537324u);
}

}  // namespace
}  // namespace shardcall::testing
