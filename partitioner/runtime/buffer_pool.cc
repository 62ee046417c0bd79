// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/buffer_pool.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdlib>
#include <new>

// Under a sanitizer every block is allocated and freed, so that it sees errors.
#if defined(__SANITIZE_ADDRESS__)
#define SHARDCALL_POOL 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SHARDCALL_POOL 0
#endif
#endif
#ifndef SHARDCALL_POOL
#define SHARDCALL_POOL 1
#endif

namespace shardcall {
inline namespace internal {
namespace {

constexpr size_t kPage = 4096;

constexpr size_t kHugeBytes = size_t{4} << 20;

size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// Maps pages directly, so that freed blocks go back to the system rather than to a heap that cannot
// shrink.
char* NewPages(size_t bytes) {
  void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return nullptr;
#ifdef MADV_HUGEPAGE
  if (bytes >= kHugeBytes) madvise(block, bytes, MADV_HUGEPAGE);  // a hint only
#endif
  return static_cast<char*>(block);
}

// Memory and swap space.
size_t MachineBytes() {
  static const size_t bytes = [] {
    struct sysinfo info;
    if (sysinfo(&info) != 0) return SIZE_MAX - kPage;
    return static_cast<size_t>(info.totalram + info.totalswap) * info.mem_unit;
  }();
  return bytes;
}

}  // namespace

BufferPool& BufferPool::Get() {
  // Never destroyed, since tensors may outlive static objects. The mutex is held during a fork, so
  // that the child finds the pool consistent.
  static BufferPool& pool = []() -> BufferPool& {
    static BufferPool* const made = new BufferPool;
    pthread_atfork([] { made->mutex_.lock(); }, [] { made->mutex_.unlock(); },
                   [] { made->mutex_.unlock(); });
    return *made;
  }();
  return pool;
}

namespace {
// From load on: a child that is forked at the first use would wait for another thread to make it.
[[maybe_unused]] const size_t at_load = (BufferPool::Get(), MachineBytes());
}  // namespace

void* BufferPool::Allocate(size_t* bytes) {
  // Linux may grant more than it has, and kill the process when the memory is touched.
  if (*bytes > MachineBytes()) return nullptr;
  if (!SHARDCALL_POOL || *bytes < kLeastPooledBytes) {
    *bytes = std::max<size_t>(RoundUp(*bytes, 64), 64);
    return std::aligned_alloc(64, *bytes);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  *bytes = RoundUp(*bytes, kPage);
  const auto it = idle_sizes_.lower_bound({*bytes, nullptr});
  char* block = nullptr;
  if (it != idle_sizes_.end()) {
    const size_t size = it->first;
    block = it->second;
    RemoveIdle(block, size);
    if (size - *bytes < kLeastPooledBytes) {
      *bytes = size;
    } else {
      AddIdle(block + *bytes, size - *bytes);
    }
  } else {
    const size_t live = stats_.live + *bytes;
    Trim(std::max(stats_.peak + stats_.peak / 4, live) - live);
    block = NewPages(*bytes);
    if (block == nullptr) {
      Trim(0);
      block = NewPages(*bytes);
    }
    if (block == nullptr) return nullptr;
  }
  stats_.live += *bytes;
  stats_.peak = std::max(stats_.peak, stats_.live);
  return block;
}

void BufferPool::Free(void* block, size_t bytes) {
  if (!SHARDCALL_POOL || bytes < kLeastPooledBytes) return std::free(block);
  const std::lock_guard<std::mutex> lock(mutex_);
  stats_.live -= bytes;
  char* begin = static_cast<char*>(block);
  const auto next = idle_.lower_bound(begin);
  if (next != idle_.end() && next->first == begin + bytes) {
    const size_t more = next->second;
    RemoveIdle(begin + bytes, more);
    bytes += more;
  }
  auto before = idle_.lower_bound(begin);
  if (before != idle_.begin() && (--before)->first + before->second == begin) {
    begin = before->first;
    const size_t more = before->second;
    RemoveIdle(begin, more);
    bytes += more;
  }
  AddIdle(begin, bytes);
  Trim(std::max(kMostIdleBytes, stats_.live));
}

void BufferPool::AddIdle(char* block, size_t bytes) {
  try {
    idle_sizes_.emplace(bytes, block);
    idle_.emplace(block, bytes);
    stats_.idle += bytes;
  } catch (const std::bad_alloc&) {
    // Destructors of tensors come here, and must not throw: the block goes back to the system.
    idle_sizes_.erase({bytes, block});
    munmap(block, bytes);
  }
}

void BufferPool::RemoveIdle(char* block, size_t bytes) {
  idle_.erase(block);
  idle_sizes_.erase({bytes, block});
  stats_.idle -= bytes;
}

void BufferPool::Trim(size_t bytes) {
  while (stats_.idle > bytes) {
    const auto [size, block] = *idle_sizes_.rbegin();
    const size_t over = stats_.idle - bytes;
    // Keep the rest of a block only if a tensor fits.
    const size_t gone = size >= over + kLeastPooledBytes ? RoundUp(over, kPage) : size;
    RemoveIdle(block, size);
    if (gone < size) AddIdle(block, size - gone);
    munmap(block + (size - gone), gone);
  }
}

BufferPool::Stats BufferPool::stats() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

}  // namespace internal
}  // namespace shardcall
