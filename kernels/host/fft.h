// SPDX-License-Identifier: Apache-2.0
// Fourier transforms over the trailing dimensions of an array, like the HLO op. Computed in f64,
// and rounded once.
#ifndef SHARDCALL_KERNELS_HOST_FFT_H_
#define SHARDCALL_KERNELS_HOST_FFT_H_

#include <cstdint>

#include "absl/types/span.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {

enum class FftKind : uint8_t { kForward, kInverse, kRealForward, kRealInverse };

struct FftShape {
  FftKind kind = FftKind::kForward;
  int rank = 1;  // number of transformed dimensions
  ElementType in_type, out_type;
  absl::Span<const int64_t> in_dims, out_dims;
};

// The error in the types and dimensions for these lengths; null if they are valid. Real transforms
// have the signal on one side, and n / 2 + 1 elements of its spectrum on the other.
const char* CheckFft(const FftShape& shape, absl::Span<const int64_t> lengths);

// Requires a shape that CheckFft accepts. An inverse real transform assumes the spectrum of a real
// signal: elements that contradict it, such as an imaginary part of the first one of a line, are
// ignored.
void RunFft(const FftShape& shape, const void* in, void* out);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_HOST_FFT_H_
