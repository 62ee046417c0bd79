// SPDX-License-Identifier: Apache-2.0
// The queue gives what was put in, once each, in order.
#include "shardcall/partitioner/propagation/node_queue.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace shardcall {
namespace {

std::vector<uint32_t> TakeAll(NodeQueue* queue) {
  std::vector<uint32_t> out;
  while (!queue->empty()) {
    out.push_back(queue->First());
    queue->Erase(out.back());
  }
  return out;
}

TEST(NodeQueue, GivesEachNumberOnceAndTheLeastFirst) {
  NodeQueue queue;
  queue.Reset(100000);
  EXPECT_TRUE(queue.empty());
  for (uint32_t n : {70000u, 5u, 63u, 64u, 99999u, 0u, 5u, 4096u}) queue.Insert(n);
  EXPECT_EQ(TakeAll(&queue), (std::vector<uint32_t>{0, 5, 63, 64, 4096, 70000, 99999}));
}

TEST(NodeQueue, ALesserNumberMayComeLater) {
  NodeQueue queue;
  queue.Reset(50000);
  queue.Insert(40000);
  EXPECT_EQ(queue.First(), 40000u);
  queue.Insert(7);
  EXPECT_EQ(TakeAll(&queue), (std::vector<uint32_t>{7, 40000}));
  queue.Insert(3);
  queue.Reset(10);
  EXPECT_TRUE(queue.empty());
}

TEST(NodeQueue, IsAsASetOfNumbers) {
  NodeQueue queue;
  queue.Reset(20000);
  std::set<uint32_t> expected;
  uint32_t state = 1;
  for (int k = 0; k < 20000; ++k) {
    state = state * 1664525 + 1013904223;
    if (state >> 30 != 0 || expected.empty()) {
      queue.Insert((state >> 8) % 20000);
      expected.insert((state >> 8) % 20000);
    } else {
      ASSERT_EQ(queue.First(), *expected.begin());
      queue.Erase(*expected.begin());
      expected.erase(expected.begin());
    }
  }
  EXPECT_EQ(TakeAll(&queue), std::vector<uint32_t>(expected.begin(), expected.end()));
}

}  // namespace
}  // namespace shardcall
