// SPDX-License-Identifier: Apache-2.0
// A set of small non-negative integers, such as factors of a rule or dimensions of an array. The
// members below 64 are kept in one word, so a set without larger ones, the usual case, allocates
// nothing.
#ifndef SHARDCALL_SHARDING_BASE_INDEX_SET_H_
#define SHARDCALL_SHARDING_BASE_INDEX_SET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

class IndexSet {
 public:
  bool Contains(int i) const {
    if (i < kBits) return (first_ >> i & 1) != 0;
    const size_t word = Word(i);
    return word < more_.size() && (more_[word] >> (i % kBits) & 1) != 0;
  }
  void Insert(int i) {
    if (i < kBits) {
      first_ |= uint64_t{1} << i;
      return;
    }
    if (Word(i) >= more_.size()) more_.resize(Word(i) + 1, 0);
    more_[Word(i)] |= uint64_t{1} << (i % kBits);
  }
  void Erase(int i) {
    if (i < kBits) {
      first_ &= ~(uint64_t{1} << i);
      return;
    }
    if (Word(i) >= more_.size()) return;
    more_[Word(i)] &= ~(uint64_t{1} << (i % kBits));
    while (!more_.empty() && more_.back() == 0) more_.pop_back();
  }

  friend bool operator==(const IndexSet&, const IndexSet&) = default;
  uint64_t Hash() const {
    uint64_t h = first_;
    for (uint64_t word : more_) h = h * 0x9e3779b97f4a7c15u + word;
    return h;
  }

 private:
  static constexpr int kBits = 64;
  static size_t Word(int i) { return static_cast<size_t>(i / kBits - 1); }

  uint64_t first_ = 0;
  std::vector<uint64_t> more_;  // its last word is not 0
};

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_INDEX_SET_H_
