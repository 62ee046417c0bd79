// SPDX-License-Identifier: Apache-2.0
// Copies between strided views: broadcast (stride 0), transpose, slice, reverse (negative
// strides), pad and concatenate all use one loop.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_STRIDED_H_
#define SHARDCALL_PARTITIONER_RUNTIME_STRIDED_H_

#include <cstdint>

#include "absl/types/span.h"
#include "shardcall/partitioner/runtime/tensor.h"

namespace shardcall {
inline namespace internal {

// Strides, in elements, of a dense row-major array.
Dims RowMajorStrides(absl::Span<const int64_t> dims);

// dst[i . dst_strides] = src[i . src_strides] for every index i below `dims`.
// Strides are in elements of `element_bytes` (1, 2, 4, 8 or 16).
void CopyStrided(int element_bytes, absl::Span<const int64_t> dims, const char* src,
                 absl::Span<const int64_t> src_strides, char* dst,
                 absl::Span<const int64_t> dst_strides);

// Fills `count` elements with the one at `value`.
void FillElements(int element_bytes, const char* value, char* dst, int64_t count);

// Transposes: dimension k of the result is dimension perm[k] of `t`.
Tensor Transpose(const Tensor& t, absl::Span<const int64_t> perm);

// Steps through all indices below `dims` in row-major order:
//   for (IndexCounter c(dims); !c.done(); c.Next()) use(c.index());
class IndexCounter {
 public:
  explicit IndexCounter(absl::Span<const int64_t> dims)
      : dims_(dims.begin(), dims.end()), index_(dims.size(), 0) {
    for (int64_t d : dims) done_ = done_ || d <= 0;
  }
  bool done() const { return done_; }
  const Dims& index() const { return index_; }
  void Next() {
    for (size_t k = dims_.size(); k-- > 0;) {
      if (++index_[k] < dims_[k]) return;
      index_[k] = 0;
    }
    done_ = true;
  }

 private:
  Dims dims_, index_;
  bool done_ = false;
};

inline int64_t Product(absl::Span<const int64_t> v) {
  int64_t p = 1;
  for (int64_t x : v) p *= x;
  return p;
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_STRIDED_H_
