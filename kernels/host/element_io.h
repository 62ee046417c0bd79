// SPDX-License-Identifier: Apache-2.0
// Reads and writes arrays of any element type as one of the few types used for arithmetic: float,
// double, their complex types, uint32_t and uint64_t (integers modulo that width), bool.
#ifndef SHARDCALL_KERNELS_HOST_ELEMENT_IO_H_
#define SHARDCALL_KERNELS_HOST_ELEMENT_IO_H_

#include <cstdint>

#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {

// Whether arrays of `type` are arrays of T in memory, so that no conversion is needed. An unsigned
// T also matches signed types of its width.
template <typename T>
bool IsStoredAs(ElementType type);

// Converts as C++ does if a value does not fit T (integers modulo 2^w). Real numbers convert to
// complex ones, but not the other way round.
template <typename T>
void LoadElements(ElementType type, const void* from, int64_t count, T* to);
template <typename T>
void StoreElements(ElementType type, const T* from, int64_t count, void* to);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_HOST_ELEMENT_IO_H_
