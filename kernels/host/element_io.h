// SPDX-License-Identifier: Apache-2.0
// Arrays of any element type read into, and written from, the few types that
// arithmetic is done in: float, double, their complex kinds, uint32_t and
// uint64_t (integers modulo that width), bool.
#ifndef SHARDCALL_KERNELS_HOST_ELEMENT_IO_H_
#define SHARDCALL_KERNELS_HOST_ELEMENT_IO_H_

#include <cstdint>

#include "shardcall/sharding/element_type.h"

namespace shardcall::inline internal {

// Whether arrays of `type` are arrays of T in memory, so that nothing needs to
// be converted. For unsigned T that holds for signed types of its width too.
template <typename T>
bool IsStoredAs(ElementType type);

// What does not fit T is as in C++ (integers modulo 2^w); a real number becomes
// a complex one, not the other way round.
template <typename T>
void LoadElements(ElementType type, const void* from, int64_t count, T* to);
template <typename T>
void StoreElements(ElementType type, const T* from, int64_t count, void* to);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_KERNELS_HOST_ELEMENT_IO_H_
