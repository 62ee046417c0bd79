// SPDX-License-Identifier: Apache-2.0
#include "tests/collectives/stand_in/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "tests/collectives/stand_in/record.h"

namespace stand_in {
namespace {

constexpr int kFresh = 0xA5;  // of memory that nobody has written
constexpr auto kPatience = std::chrono::seconds(2);

struct Heap {
  std::mutex mutex;
  std::map<const char*, std::shared_ptr<Allocation>> allocations;  // by address
};
Heap& TheHeap() {
  static Heap* const heap = new Heap;
  return *heap;
}

}  // namespace

void* Allocate(size_t bytes, bool of_nccl) {
  auto made = std::make_shared<Allocation>();
  const size_t page = sysconf(_SC_PAGESIZE);
  made->bytes = bytes;
  made->mapped = (std::max<size_t>(bytes, 1) + page - 1) / page * page;
  made->of_nccl = of_nccl;
  const int file = memfd_create("stand_in", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, made->mapped) != 0) {
    if (file >= 0) close(file);
    return nullptr;
  }
  void* const memory = mmap(nullptr, made->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* const address = mmap(nullptr, made->mapped, PROT_NONE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED || address == MAP_FAILED) return nullptr;
  made->memory = static_cast<char*>(memory);
  made->address = static_cast<char*>(address);
  std::memset(made->memory, kFresh, bytes);
  std::lock_guard<std::mutex> lock(TheHeap().mutex);
  TheHeap().allocations[made->address] = made;
  Made(Thing::kAllocation);
  return address;
}

void Free(void* pointer, bool of_nccl, const char* function) {
  if (pointer == nullptr) return;
  std::shared_ptr<Allocation> found;
  {
    std::lock_guard<std::mutex> lock(TheHeap().mutex);
    const auto it = TheHeap().allocations.find(static_cast<char*>(pointer));
    if (it == TheHeap().allocations.end()) {
      Misuse(std::string(function) + " of what is no allocation, or is freed already");
    }
    found = it->second;
    TheHeap().allocations.erase(it);
  }
  if (found->of_nccl != of_nccl) {
    Misuse(std::string(function) + " of memory that the other library gave");
  }
  if (found->registrations > 0) {
    Misuse(std::string(function) + " of memory that is registered with a communicator");
  }
  // The real one awaits the device; what does not end by itself would never return.
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (found.use_count() > 1) {
    if (std::chrono::steady_clock::now() > end) {
      Misuse(std::string(function) + " of memory that an operation uses which does not end");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  munmap(found->memory, found->mapped);
  munmap(found->address, found->mapped);
  Freed(Thing::kAllocation);
}

std::shared_ptr<Allocation> Find(const void* pointer) {
  std::lock_guard<std::mutex> lock(TheHeap().mutex);
  auto it = TheHeap().allocations.upper_bound(static_cast<const char*>(pointer));
  if (it == TheHeap().allocations.begin()) return nullptr;
  --it;
  const bool within = static_cast<const char*>(pointer) < it->first + it->second->mapped;
  return within ? it->second : nullptr;
}

View Look(const void* pointer, size_t bytes, const char* function) {
  std::shared_ptr<Allocation> found = Find(pointer);
  if (found == nullptr) {
    if (pointer == nullptr && bytes > 0) Misuse(std::string(function) + " of a null pointer");
    return {static_cast<char*>(const_cast<void*>(pointer)), false, nullptr};
  }
  const size_t offset = static_cast<const char*>(pointer) - found->address;
  if (offset > found->bytes || bytes > found->bytes - offset) {
    Misuse(std::string(function) + " of " + std::to_string(bytes) + " bytes at byte " +
           std::to_string(offset) + " of an allocation of " + std::to_string(found->bytes));
  }
  return {found->memory + offset, true, std::move(found)};
}

View LookAtDevice(const void* pointer, size_t bytes, const char* function) {
  View view = Look(pointer, bytes, function);
  if (bytes > 0 && !view.on_device) {
    Misuse(std::string(function) + " of host memory");
  }
  return view;
}

}  // namespace stand_in
