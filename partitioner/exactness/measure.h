// SPDX-License-Identifier: Apache-2.0
// How large the numbers of a tensor are, and which power of two all of them are multiples of.
#ifndef SHARDCALL_PARTITIONER_EXACTNESS_MEASURE_H_
#define SHARDCALL_PARTITIONER_EXACTNESS_MEASURE_H_

#include <climits>

#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {

inline bool IsNumber(const Tensor& t) { return IsFloat(t.type()) || IsComplex(t.type()); }

// The number of bits of whole numbers that the type (of a complex type, each part) can hold.
int BitsOf(ElementType type);

// The largest finite magnitude, and the exponent of the largest power of two that all finite
// elements are multiples of. Infinities and NaNs do not count: sums of them do not depend on the
// order.
struct Measure {
  double largest = 0;
  int granule = INT_MAX;

  void Add(double x);
};

Measure MeasureOf(const Tensor& t);
// The largest magnitude; infinite where an element is not finite.
double LargestOf(const Tensor& t);

// Magnitudes of all elements, at least `least`; non-finite elements become 0.
Tensor Magnitudes(const Tensor& t, double least);

// Whether sums of multiples of 2^granule whose magnitudes add up to `bound` are exact.
bool Fits(double bound, int granule, ElementType type);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_EXACTNESS_MEASURE_H_
