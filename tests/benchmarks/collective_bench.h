// SPDX-License-Identifier: Apache-2.0
// What the benchmark of collectives measures: ops with their sizes and checked
// results, and the sides (this library, a baseline) that execute them.
//
// Definitions of nccl-tests: S is the buffer of all-reduce, broadcast and
// permute, and the group's buffer of all-gather (out), reduce-scatter (in) and
// all-to-all; algbw = S / t, busbw = algbw x a factor that makes the speed of
// the links comparable across ops and numbers of devices.
#ifndef SHARDCALL_TESTS_BENCHMARKS_COLLECTIVE_BENCH_H_
#define SHARDCALL_TESTS_BENCHMARKS_COLLECTIVE_BENCH_H_

#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shardcall/collectives/communicator.h"

namespace shardcall::bench {

enum class Op { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast, kPermute };
inline constexpr Op kAllOps[] = {Op::kAllReduce, Op::kAllGather, Op::kReduceScatter,
                                 Op::kAllToAll,  Op::kBroadcast, Op::kPermute};
const char* OpName(Op op);
double BusFactor(Op op, int devices);

// Memory other than the host's, in floats; `allocate` gives null where there is none.
struct Memory {
  std::function<float*(int64_t count)> allocate;
  std::function<void(float*)> free;
  std::function<absl::Status(float* to, const float* from, int64_t count)> copy;  // any direction
};

// Memory that starts at a cache line, as that of the runtime's tensors does.
template <typename T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kLine)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kLine); }
  bool operator==(const LineAllocator&) const = default;
};

// f32 buffers of one device for a size S in bytes, rounded down to whole elements a block.
struct Buffers {
  Buffers(Op op, int64_t size, int rank, int devices, const Memory* memory);  // null: the host's
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  int64_t in_count = 0, out_count = 0;               // elements
  int64_t block = 0;                                 // elements of one device's part
  int64_t bytes() const;                             // S as it came out
  std::vector<float, LineAllocator<float>> in, out;  // the host's
  float *from = nullptr, *to = nullptr;              // what sides read and write: these, or copies
  const Op op;
  const int rank, devices;
  const Memory* const memory;

  absl::Status ClearResult();
  // Elements of the result that differ from what the op must give; sums are exact.
  absl::StatusOr<int64_t> CountWrong();
};

// One way to execute an op on all devices at once.
struct Side {
  std::string name;
  std::function<absl::Status(Buffers&)> run;
  bool checked = true;      // memcpy has no result to check
  bool first_only = false;  // runs on device 0 while the others wait
};
Side LibrarySide(Communicator& communicator, Op op);
Side MemcpySide();
// Calls of NCCL over device memory, and that memory (null without NCCL).
absl::StatusOr<std::function<std::vector<Side>(Op)>> RawNcclSides(Communicator& communicator);
const Memory* DeviceMemory();
// Raw calls of MPI, first the natural one; none where it is not built in.
std::vector<Side> RawMpiSides(Op op);

struct Options {
  std::vector<Op> ops;
  int64_t min_bytes = 1 << 10, max_bytes = 256 << 20;
  int64_t factor = 4;
  int rounds = 9;
  double round_seconds = 0.01;     // of one side, at least one call
  const Memory* memory = nullptr;  // of the buffers; null: the host's
};

struct Point {
  std::string op, side;
  int64_t bytes = 0;
  double best_us = 0, median_us = 0;  // of one call, over the rounds
  double median_ratio = 0;            // this library's time into this side's, by round
  double algbw = 0, busbw = 0;        // GB/s, of the best
  int64_t wrong = 0;
};

// Runs on every device; points are filled on device 0. Sides take turns within a
// round, so that what else the machine does meets all alike.
absl::Status Measure(Communicator& communicator, const Options& options,
                     const std::function<std::vector<Side>(Op)>& baselines,
                     std::vector<Point>* points);

}  // namespace shardcall::bench

#endif  // SHARDCALL_TESTS_BENCHMARKS_COLLECTIVE_BENCH_H_
