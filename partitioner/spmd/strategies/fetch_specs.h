// SPDX-License-Identifier: Apache-2.0
// The fetches of slice, pad, concatenate and reverse along one sharded dimension. The plan uses
// them for costs, the strategies for emission.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_FETCH_SPECS_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_FETCH_SPECS_H_

#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/spmd/strategies/fetch.h"

namespace shardcall::inline internal {

bool IsWholeSlice(const SliceAttrs& a, const Shape* operand, int d);
FetchSpec SliceFetch(const SliceAttrs& a, const Shape* operand, const Shape* result, int d,
                     int64_t n);
FetchSpec PadFetch(const PadAttrs& a, const Shape* operand, const Shape* result, int d, int64_t n);
// `offset`: where the operand starts in the result.
FetchSpec ConcatenateFetch(const Shape* operand, const Shape* result, int d, int64_t n,
                           int64_t offset);
FetchSpec ReverseFetch(const Shape* operand, int d, int64_t n);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_FETCH_SPECS_H_
