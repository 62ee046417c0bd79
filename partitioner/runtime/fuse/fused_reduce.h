// SPDX-License-Identifier: Apache-2.0
// A reduction at the end of a fused step: what it adds up, or the extreme of
// what, is never held in memory. Results have the bits of the reduction by
// itself.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_FUSE_FUSED_REDUCE_H_
#define SHARDCALL_PARTITIONER_RUNTIME_FUSE_FUSED_REDUCE_H_

#include <vector>

#include "shardcall/partitioner/ir/opcode.h"
#include "shardcall/partitioner/runtime/fuse/fusible.h"
#include "shardcall/partitioner/runtime/ops/reduce_extreme.h"
#include "shardcall/partitioner/runtime/ops/reduce_kernels.h"

namespace shardcall {

// Whether FusedReduction can take it: sums and extremes of f32 and bf16, and not
// too many columns side by side.
bool CanFuseReduction(const MonoidReduceData& data);

class FusedReduction {
 public:
  // `init`: one element of data.type; `out`: the result, [outer, inner].
  FusedReduction(const MonoidReduceData& data, const void* init, void* out);
  // The next n elements of [outer, extent, inner], in f32.
  void Feed(const float* x, int64_t n);

 private:
  void Start();
  void Finish();

  const MonoidReduceData& data_;
  const bool sum_;
  SumRowFn sum_row_ = nullptr;
  SumColumnsFn sum_columns_ = nullptr;
  ExtremeRowFn extreme_ = nullptr;
  float init_ = 0;
  char* out_;                     // of the row of results that comes next
  int64_t row_ = 0, column_ = 0;  // of the element that comes next
  std::vector<double> parts_;     // of a sum
  float best_ = 0;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_FUSE_FUSED_REDUCE_H_
