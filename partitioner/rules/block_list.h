// SPDX-License-Identifier: Apache-2.0
// A list that grows in blocks: elements never move, and one allocation serves many of them.
#ifndef SHARDCALL_PARTITIONER_RULES_BLOCK_LIST_H_
#define SHARDCALL_PARTITIONER_RULES_BLOCK_LIST_H_

#include <cstddef>
#include <utility>
#include <vector>

namespace shardcall {
inline namespace internal {

template <typename T>
class BlockList {
 public:
  template <typename... A>
  T& emplace_back(A&&... args) {
    if (blocks_.empty() || blocks_.back().size() == kBlock) {
      blocks_.emplace_back();
      blocks_.back().reserve(kBlock);  // never grown beyond that
    }
    return blocks_.back().emplace_back(std::forward<A>(args)...);
  }

 private:
  static constexpr size_t kBlock = 32;
  std::vector<std::vector<T>> blocks_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RULES_BLOCK_LIST_H_
