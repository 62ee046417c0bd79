// SPDX-License-Identifier: Apache-2.0
// Fourier transforms over the trailing dimensions of an array, as the HLO op
// has them, in f64 throughout and rounded once.
#ifndef SHARDCALL_KERNELS_HOST_FFT_H_
#define SHARDCALL_KERNELS_HOST_FFT_H_

#include <cstdint>

#include "absl/types/span.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall::inline internal {

enum class FftKind : uint8_t { kForward, kInverse, kRealForward, kRealInverse };

struct FftShape {
  FftKind kind = FftKind::kForward;
  int rank = 1;  // transformed dimensions
  ElementType in_type, out_type;
  absl::Span<const int64_t> in_dims, out_dims;
};

// What is wrong with the types and dimensions, given the transform's lengths;
// null if they fit. Real transforms have the signal on one side, and on the
// other n / 2 + 1 numbers of its spectrum.
const char* CheckFft(const FftShape& shape, absl::Span<const int64_t> lengths);

// Requires a shape that fits. An inverse real transform takes the spectrum for
// that of a real signal: what contradicts this, such as an imaginary part of the
// first number of a line, is ignored.
void RunFft(const FftShape& shape, const void* in, void* out);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_KERNELS_HOST_FFT_H_
