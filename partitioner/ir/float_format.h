// SPDX-License-Identifier: Apache-2.0
// Bit patterns of HLO's real element types, from f64 down to f4. Text, literals and the evaluator
// convert numbers to bits and back with these functions. Rounding is to nearest even. Values beyond
// the largest finite one become infinity, or NaN in types without infinity, or the largest value in
// types without either (f6, f4).
#ifndef SHARDCALL_PARTITIONER_IR_FLOAT_FORMAT_H_
#define SHARDCALL_PARTITIONER_IR_FLOAT_FORMAT_H_

#include <cstdint>

#include "shardcall/sharding/element_type.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {

struct FloatFormat {
  enum class Special : uint8_t {
    kIeee,    // infinities and NaNs at the top exponent
    kFn,      // one NaN of each sign, all mantissa bits set; no infinity
    kFnuz,    // the pattern of -0 is the only NaN; no infinity, no -0
    kFinite,  // no infinity, no NaN
    kE8m0,    // exponent only, unsigned; 0xff is NaN; no zero
  };
  int exponent_bits, mantissa_bits, bias;
  Special special;
};
// Requires IsFloat(type).
const FloatFormat& GetFloatFormat(ElementType type);

// The bits of a literal: f16 and bf16 are rounded by way of f32, as in XLA.
inline uint64_t EncodeFloat(ElementType type, double value) {
  if (type == ElementType::kF16 || type == ElementType::kBF16) value = static_cast<float>(value);
  return FloatToBits(type, value);
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_FLOAT_FORMAT_H_
