// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_API_DEVICE_MEMORY_H_
#define SHARDCALL_PARTITIONER_API_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// The backends of XLA, which fuse, copy and keep different values.
enum class XlaBackend { kGpu, kCpu };

// Bytes that one device needs for a per-device module, by a model of XLA's fusion, copy insertion
// and buffer assignment (ir/memory/, pass/backend/). What a backend takes for its kernels is not
// counted.
struct DeviceMemory {
  int64_t arguments = 0;
  int64_t outputs = 0;
  int64_t temporaries = 0;  // peak, beside arguments and outputs
  int64_t aliased = 0;      // outputs in the memory of donated arguments
  // The largest number where it is more.
  int64_t Peak() const {
    int64_t sum = 0;
    const bool over = __builtin_add_overflow(arguments, outputs, &sum) ||
                      __builtin_add_overflow(sum, temporaries, &sum);
    return over ? std::numeric_limits<int64_t>::max() : sum - aliased;
  }
};
DeviceMemory CountDeviceMemory(const Module& local, XlaBackend backend = XlaBackend::kGpu);

}  // namespace shardcall

namespace shardcall {
inline namespace internal {

// The peak by a quicker count, of the module as it is, without the gaps between buffers.
int64_t EstimatePeakMemory(const Module& local);

// A temporary that is held when the most are, at the op `at`.
struct HeldAtPeak {
  std::string value;   // its name, "%dot.3"
  std::string source;  // "model.py:41", or empty
  int64_t bytes = 0;
};
struct MemoryAtPeak {
  DeviceMemory memory;
  std::string at;                // the name of an op; empty if there are no temporaries
  std::vector<HeldAtPeak> held;  // the largest first, at most so many
};
MemoryAtPeak ListMemoryAtPeak(const Module& local, size_t most);

// "3.00 GiB arguments, 1.00 GiB outputs (1.00 GiB of them in donated arguments), 8.50 GiB
// temporaries".
std::string PartsText(const DeviceMemory& memory);
// "12.5 GiB: " and its parts, " at %dot.3, of which %a (model.py:41) has 2.00 GiB, ..".
std::string DescribePeak(const Module& local);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_DEVICE_MEMORY_H_
