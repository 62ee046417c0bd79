// SPDX-License-Identifier: Apache-2.0
// Which reduction of a communicator combines the parts of a partial value.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_REDUCE_KIND_H_
#define SHARDCALL_PARTITIONER_RUNTIME_REDUCE_KIND_H_

#include "shardcall/collectives/communicator.h"
#include "shardcall/sharding/element_type.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall {
inline namespace internal {

// Of pred, sums and maxima are `or`, and products and minima are `and`, since not every backend
// has another reduction of it.
inline ReduceKind ReduceKindOf(PartialOp op, ElementType type) {
  const bool pred = type == ElementType::kPred;
  switch (op) {
    case PartialOp::kSum: return pred ? ReduceKind::kOr : ReduceKind::kSum;
    case PartialOp::kProduct: return pred ? ReduceKind::kAnd : ReduceKind::kProduct;
    case PartialOp::kMax: return pred ? ReduceKind::kOr : ReduceKind::kMax;
    case PartialOp::kMin: return pred ? ReduceKind::kAnd : ReduceKind::kMin;
    case PartialOp::kAnd: return ReduceKind::kAnd;
    case PartialOp::kOr: return ReduceKind::kOr;
    case PartialOp::kXor: break;
  }
  return ReduceKind::kXor;
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_REDUCE_KIND_H_
