// SPDX-License-Identifier: Apache-2.0
// How StableHLO's all_to_all, which may concatenate along another dimension than it splits, is
// HLO's, which does both along one: that, and then the blocks are moved.
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_MOVED_BLOCKS_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_MOVED_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace shardcall {
inline namespace internal {

// [.., C, .., n * S, ..] is reshaped to [.., C, .., n, S, ..] and transposed to
// [.., n, C, .., S, ..], which has the elements of [.., n * C, .., S, ..] in order.
struct MovedBlocks {
  std::vector<int64_t> dims, permutation;
};

// Requires dimensions of `dims`, and `count` to divide that of `split`.
inline MovedBlocks MoveBlocks(absl::Span<const int64_t> dims, int split, int concat,
                              int64_t count) {
  MovedBlocks out;
  out.dims.assign(dims.begin(), dims.end());
  out.dims[split] /= count;
  out.dims.insert(out.dims.begin() + split, count);
  for (int d = 0; d < static_cast<int>(out.dims.size()); ++d) {
    if (d == split) continue;
    if (d == (concat < split ? concat : concat + 1)) out.permutation.push_back(split);
    out.permutation.push_back(d);
  }
  return out;
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_MOVED_BLOCKS_H_
