// SPDX-License-Identifier: Apache-2.0
// The reduction of every host backend, so that results are byte-identical across them: a left fold
// over buffers in the order given. Types narrower than f32 are folded in f32 and rounded once at
// the end; integers wrap; pred's sum is `or` and its product `and`; max and min of floats
// propagate NaN.
#ifndef SHARDCALL_COLLECTIVES_REDUCE_H_
#define SHARDCALL_COLLECTIVES_REDUCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/collectives/communicator.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {

// E306 if there is no such reduction: and, or, xor of floats; max and min of
// complex numbers; anything of a type that has no arithmetic.
absl::Status CheckReduction(ReduceKind kind, ElementType type);

// For elements i in [first, first + count): folds sources[0][i], sources[1][i], ... and stores the
// result at i of each of `outs`. An out may be one of the sources; otherwise buffers do not
// overlap. CheckReduction must hold, and there must be at least one source.
// is at least one source.
//   ReduceRange(kSum, kBF16, {{256}, {1}, {1}}, {out}, 0, 1) stores 258:
//   256 + 1 rounded to bf16 each time would stay 256.
void ReduceRange(ReduceKind kind, ElementType type, absl::Span<const void* const> sources,
                 absl::Span<void* const> outs, int64_t first, int64_t count);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_REDUCE_H_
