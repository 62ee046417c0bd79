// SPDX-License-Identifier: Apache-2.0
// Data of the steps that fusion can read (fuse.h).
#ifndef SHARDCALL_PARTITIONER_RUNTIME_FUSE_FUSIBLE_H_
#define SHARDCALL_PARTITIONER_RUNTIME_FUSE_FUSIBLE_H_

#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"
#include "shardcall/partitioner/runtime/program.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall {
inline namespace internal {

struct ElementwiseData : OpData {
  LaneKernel kernel;
  // The same with f32 in place of bf16; equal to it after rounding the result.
  LaneKernel wide;
  bool spread[3] = {false, false, false};  // a scalar operand of arrays
};

// One strided read of the operand.
struct ViewData : OpData {
  int64_t src_offset = 0;
  Dims src_strides;  // by result dimension
};

struct IotaData : OpData {
  Tensor line;   // the values along the iota dimension
  Dims strides;  // of the line, by result dimension
};

// A reduction of one array by an associative op that reduce_kernels.h has.
struct MonoidReduceData : OpData {
  PartialOp monoid = PartialOp::kSum;
  ElementType type = ElementType::kInvalid;
  Dims perm;                                 // empty: no transposition is needed
  int64_t outer = 1, extent = 1, inner = 1;  // of the (transposed) operand
};

// The result has the operand's bytes.
struct SameBytesData : OpData {};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_FUSE_FUSIBLE_H_
