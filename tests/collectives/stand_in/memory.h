// SPDX-License-Identifier: Apache-2.0
// The stand-in's device memory. Each allocation is mapped twice: where its pointer
// points nothing can be read or written, as with a GPU; the stand-in itself uses
// the other mapping.
#ifndef SHARDCALL_TESTS_COLLECTIVES_STAND_IN_MEMORY_H_
#define SHARDCALL_TESTS_COLLECTIVES_STAND_IN_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <memory>

namespace stand_in {

struct Allocation {
  char* address = nullptr;  // what callers have
  char* memory = nullptr;   // the same bytes
  size_t bytes = 0;
  size_t mapped = 0;
  bool of_nccl = false;
  std::atomic<int> registrations{0};
};

// Null if there is no memory.
void* Allocate(size_t bytes, bool of_nccl);
void Free(void* pointer, bool of_nccl, const char* function);

// The allocation that a pointer points into, or null for host memory.
std::shared_ptr<Allocation> Find(const void* pointer);

// Memory that an operation uses. Its allocation cannot be freed before that.
struct View {
  char* data = nullptr;
  bool on_device = false;
  std::shared_ptr<Allocation> holder;
};
View Look(const void* pointer, size_t bytes, const char* function);
View LookAtDevice(const void* pointer, size_t bytes, const char* function);

}  // namespace stand_in

#endif  // SHARDCALL_TESTS_COLLECTIVES_STAND_IN_MEMORY_H_
