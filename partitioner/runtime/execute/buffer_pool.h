// SPDX-License-Identifier: Apache-2.0
// Memory of tensors' buffers. Large blocks that are freed are kept for the next
// tensors: fresh pages from the system cost more than most ops that fill them.
// Neighbours that are free become one block, and of a larger block the rest
// stays free. What is kept never raises the process above 5/4 of the largest sum
// of live blocks there was, and is at most what is live, or kMostIdleBytes.
// Small blocks are the C library's.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_BUFFER_POOL_H_
#define SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_BUFFER_POOL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace shardcall {

class BufferPool {
 public:
  static constexpr size_t kLeastPooledBytes = size_t{64} << 10;
  static constexpr size_t kMostIdleBytes = size_t{256} << 20;

  // Of the process; tensors live in several threads.
  static BufferPool& Get();

  // At least *bytes, aligned to 64 bytes, not initialised; *bytes becomes what
  // the block holds. Null where there is no memory.
  void* Allocate(size_t* bytes);
  // `bytes` as Allocate left it.
  void Free(void* block, size_t bytes);

  struct Stats {
    size_t live = 0, peak = 0, idle = 0;  // bytes of pooled blocks
  };
  Stats stats();

 private:
  void AddIdle(char* block, size_t bytes);
  void RemoveIdle(char* block, size_t bytes);
  // Gives back idle memory, of the largest blocks first, until at most `bytes`
  // are left.
  void Trim(size_t bytes);

  std::mutex mutex_;
  std::map<char*, size_t> idle_;                   // bytes; no two touch
  std::set<std::pair<size_t, char*>> idle_sizes_;  // the same by size
  Stats stats_;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_BUFFER_POOL_H_
