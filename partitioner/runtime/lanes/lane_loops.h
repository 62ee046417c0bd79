// SPDX-License-Identifier: Apache-2.0
// Lane kernels that apply one scalar op to every element. `Op::Do` is the op, for elements of one
// type.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LANES_LANE_LOOPS_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LANES_LANE_LOOPS_H_

#include <cstdint>

#include "shardcall/partitioner/runtime/lanes/isa.h"

namespace shardcall {
inline namespace internal {

template <typename Op, typename T>
void UnaryLanes(const void* const* in, void* out, int64_t n, const int64_t*) {
  const T* a = static_cast<const T*>(in[0]);
  T* o = static_cast<T*>(out);
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) o[i] = Op::template Do<T>(a[i]);
}

template <typename Op, typename T>
void BinaryLanes(const void* const* in, void* out, int64_t n, const int64_t*) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* o = static_cast<T*>(out);
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) o[i] = Op::template Do<T>(a[i], b[i]);
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LANES_LANE_LOOPS_H_
