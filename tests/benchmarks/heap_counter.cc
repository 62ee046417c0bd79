// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmarks/heap_counter.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {

// The benchmarks are single-threaded.
bool counting = true;
int64_t allocations = 0, live = 0, peak = 0;

void* Counted(void* p) {
  if (p == nullptr) std::abort();
  if (!counting) return p;
  ++allocations;
  live += static_cast<int64_t>(malloc_usable_size(p));
  peak = std::max(peak, live);
  return p;
}

void Release(void* p) {
  if (counting && p != nullptr) live -= static_cast<int64_t>(malloc_usable_size(p));
  std::free(p);
}

}  // namespace

void* operator new(std::size_t n) { return Counted(std::malloc(n == 0 ? 1 : n)); }
void* operator new(std::size_t n, std::align_val_t a) {
  const std::size_t align = static_cast<std::size_t>(a);
  return Counted(std::aligned_alloc(align, (n + align - 1) / align * align));
}
void operator delete(void* p) noexcept { Release(p); }
void operator delete(void* p, std::size_t) noexcept { Release(p); }
void operator delete(void* p, std::align_val_t) noexcept { Release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { Release(p); }

namespace shardcall::bench {

void CountHeap(bool on) { counting = on; }
int64_t HeapAllocations() { return allocations; }
int64_t HeapBytesLive() { return live; }
int64_t HeapBytesPeak() { return peak; }
void ResetHeapBytesPeak() { peak = live; }

}  // namespace shardcall::bench
