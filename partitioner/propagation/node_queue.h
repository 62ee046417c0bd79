// SPDX-License-Identifier: Apache-2.0
// A set of small numbers that gives its least member first: a bit for each number, and a bit for
// each word of those that is not 0. A million numbers are found through 250 words at most.
#ifndef SHARDCALL_PARTITIONER_PROPAGATION_NODE_QUEUE_H_
#define SHARDCALL_PARTITIONER_PROPAGATION_NODE_QUEUE_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardcall {
inline namespace internal {

class NodeQueue {
 public:
  // Empties it, for numbers below n.
  void Reset(size_t n) {
    words_.assign(n / 64 + 1, 0);
    summary_.assign(words_.size() / 64 + 1, 0);
    count_ = 0;
    first_ = 0;
  }
  bool empty() const { return count_ == 0; }
  void Insert(uint32_t number) {
    const uint32_t w = number / 64;
    const uint64_t bit = uint64_t{1} << number % 64;
    if (words_[w] & bit) return;
    words_[w] |= bit;
    summary_[w / 64] |= uint64_t{1} << w % 64;
    first_ = std::min<size_t>(first_, w / 64);
    ++count_;
  }
  // The least number. Not of an empty queue.
  uint32_t First() {
    while (summary_[first_] == 0) ++first_;
    const uint32_t w = static_cast<uint32_t>(first_ * 64 + std::countr_zero(summary_[first_]));
    return w * 64 + std::countr_zero(words_[w]);
  }
  void Erase(uint32_t number) {
    const uint32_t w = number / 64;
    words_[w] &= ~(uint64_t{1} << number % 64);
    if (words_[w] == 0) summary_[w / 64] &= ~(uint64_t{1} << w % 64);
    --count_;
  }

 private:
  std::vector<uint64_t> words_, summary_;
  size_t count_ = 0;
  size_t first_ = 0;  // no word of summary_ before it has a bit
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PROPAGATION_NODE_QUEUE_H_
