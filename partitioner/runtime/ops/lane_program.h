// SPDX-License-Identifier: Apache-2.0
// The scalar computation of a reduce, sort, scatter, map etc., compiled to a list of lane kernels
// over registers, so that it runs on one lane (a comparator) or on a row of them (an
// accumulation).
#ifndef SHARDCALL_PARTITIONER_RUNTIME_OPS_LANE_PROGRAM_H_
#define SHARDCALL_PARTITIONER_RUNTIME_OPS_LANE_PROGRAM_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"
#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall {
inline namespace internal {

struct LaneOp {
  LaneKernel kernel;
  int in[3] = {-1, -1, -1};  // registers
  int out = -1;
};

struct LaneProgram {
  std::vector<ElementType> registers;  // type by register; parameters come first
  int num_parameters = 0;
  std::vector<std::pair<int, Tensor>> constants;
  std::vector<LaneOp> ops;
  std::vector<int> results;  // registers

  ElementType result_type(int r) const { return registers[results[r]]; }

  // What the program does if it is one op of monoid.h over p0 and p1, in either order; selects fast
  // paths for sums, products, maxima etc.
  std::optional<PartialOp> monoid;
  // Whether the program returns parameter 1 (a scatter that overwrites).
  bool returns_second = false;
};

// Compiles computation `comp`: elementwise ops, constants, tuples and calls on
// scalars. kUnimplemented (E310) for others.
absl::StatusOr<LaneProgram> CompileLanes(const Module& module, CompId comp);

// Runs a program on up to `max_lanes` lanes at a time. Not thread-safe.
class LaneRunner {
 public:
  LaneRunner(const LaneProgram& program, int64_t max_lanes);
  // params[k]: n elements of parameter k; results[r]: memory for n elements of result r, which may
  // be that of a parameter.
  void Run(const void* const* params, void* const* results, int64_t n);
  int64_t max_lanes() const { return max_lanes_; }

 private:
  const LaneProgram& program_;
  const int64_t max_lanes_;
  bool direct_ = false;  // one op: no registers needed
  std::vector<void*> address_;
  std::vector<Tensor> storage_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_OPS_LANE_PROGRAM_H_
