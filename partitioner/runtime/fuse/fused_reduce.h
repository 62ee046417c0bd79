// SPDX-License-Identifier: Apache-2.0
// A reduction at the end of a fused step, whose operand is never stored in memory. Results have
// the same bits as those of a separate reduction.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_FUSE_FUSED_REDUCE_H_
#define SHARDCALL_PARTITIONER_RUNTIME_FUSE_FUSED_REDUCE_H_

#include <vector>

#include "shardcall/partitioner/ir/opcode.h"
#include "shardcall/partitioner/runtime/fuse/fusible.h"
#include "shardcall/partitioner/runtime/lanes/reduce_extreme.h"
#include "shardcall/partitioner/runtime/lanes/reduce_kernels.h"

namespace shardcall {
inline namespace internal {

// Whether FusedReduction supports it: sums, maxima and minima of f32 and bf16, with a limited
// number of columns.
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
  char* out_;                     // the next row of results
  int64_t row_ = 0, column_ = 0;  // of the next element
  std::vector<double> parts_;     // partial sums
  float best_ = 0;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_FUSE_FUSED_REDUCE_H_
