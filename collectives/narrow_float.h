// SPDX-License-Identifier: Apache-2.0
// Conversion of blocks between f32 and the float types narrower than it: bf16,
// f16, and the f8, f6 and f4 kinds that have a sign. Rounding is to nearest
// even. Past the largest value the result is an infinity where the type has
// one, else NaN where it has one, else the largest value.
#ifndef SHARDCALL_COLLECTIVES_NARROW_FLOAT_H_
#define SHARDCALL_COLLECTIVES_NARROW_FLOAT_H_

#include <cstdint>

#include "sharding/element_type.h"

namespace shardcall {

// f8e8m0fnu, which holds scales and has neither sign nor zero, is not one.
bool IsNarrowFloat(ElementType type);

// `type` must be a narrow float. One element takes ElementTypeBytes(type).
void DecodeNarrowFloats(ElementType type, const void* in, float* out, int64_t count);
void EncodeNarrowFloats(ElementType type, const float* in, void* out, int64_t count);

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_NARROW_FLOAT_H_
