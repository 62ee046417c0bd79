// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_POINTWISE_BODY_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_POINTWISE_BODY_H_

#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// Whether the computation works element by element on arrays of the dimensions `dims` and on
// scalars: it means the same for arrays of any other dimensions in place of these.
bool IsPointwiseBody(const Module& m, CompId computation, absl::Span<const int64_t> dims);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_POINTWISE_BODY_H_
