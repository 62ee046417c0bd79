// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/fetch_specs.h"

namespace shardcall::inline internal {
namespace {

FetchSpec Of(const Shape* operand, int d, int64_t n) {
  FetchSpec s;
  s.extent = operand->dim(d);
  s.tile = CeilDiv(s.extent, n);
  s.num_shards = n;
  return s;
}

}  // namespace

bool IsWholeSlice(const SliceAttrs& a, const Shape* operand, int d) {
  return a.starts[d] == 0 && a.limits[d] == operand->dim(d) && a.strides[d] == 1;
}

FetchSpec SliceFetch(const SliceAttrs& a, const Shape* operand, const Shape* result, int d,
                     int64_t n) {
  FetchSpec s = Of(operand, d, n);
  const int64_t tile = CeilDiv(result->dim(d), n);
  s.step = tile * a.strides[d];
  s.offset = a.starts[d];
  s.length = (tile - 1) * a.strides[d] + 1;
  return s;
}

FetchSpec PadFetch(const PadAttrs& a, const Shape* operand, const Shape* result, int d, int64_t n) {
  return ConcatenateFetch(operand, result, d, n, a.low[d]);
}

FetchSpec ConcatenateFetch(const Shape* operand, const Shape* result, int d, int64_t n,
                           int64_t offset) {
  FetchSpec s = Of(operand, d, n);
  s.length = CeilDiv(result->dim(d), n);
  s.step = s.length;
  s.offset = -offset;
  return s;
}

FetchSpec ReverseFetch(const Shape* operand, int d, int64_t n) {
  FetchSpec s = Of(operand, d, n);
  s.length = s.tile;
  s.step = -s.tile;
  s.offset = s.extent - s.tile;
  return s;
}

}  // namespace shardcall::inline internal
