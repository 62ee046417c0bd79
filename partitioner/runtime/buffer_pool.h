// SPDX-License-Identifier: Apache-2.0
// The memory pool of tensors' buffers. Large blocks that are freed are kept for later tensors:
// fresh pages from the system cost more than most ops that fill them. Adjacent free blocks are
// merged, and the unused part of a larger block stays free. Idle memory never raises the process
// above 5/4 of the peak of live blocks, and is at most the larger of the live bytes and
// kMostIdleBytes. Small blocks are allocated by the C library.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_BUFFER_POOL_H_
#define SHARDCALL_PARTITIONER_RUNTIME_BUFFER_POOL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace shardcall {
inline namespace internal {

class BufferPool {
 public:
  static constexpr size_t kLeastPooledBytes = size_t{64} << 10;
  static constexpr size_t kMostIdleBytes = size_t{256} << 20;

  // The pool of the process, shared by all threads.
  static BufferPool& Get();

  // At least *bytes, aligned to 64 bytes, not initialised; sets *bytes to the size of the block.
  // Null if there is no memory.
  void* Allocate(size_t* bytes);
  // `bytes` as set by Allocate.
  void Free(void* block, size_t bytes);

  struct Stats {
    size_t live = 0, peak = 0, idle = 0;  // bytes of pooled blocks
  };
  Stats stats();

 private:
  // Returns the block to the system instead where there is no memory to note it.
  void AddIdle(char* block, size_t bytes);
  void RemoveIdle(char* block, size_t bytes);
  // Returns idle memory to the system, the largest blocks first, until at most `bytes` are left.
  void Trim(size_t bytes);

  std::mutex mutex_;
  std::map<char*, size_t> idle_;                   // address to bytes; no two are adjacent
  std::set<std::pair<size_t, char*>> idle_sizes_;  // the same by size
  Stats stats_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_BUFFER_POOL_H_
