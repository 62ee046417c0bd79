// SPDX-License-Identifier: Apache-2.0
// Windows over arrays: which element of a base a window position refers to.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_OPS_WINDOW_H_
#define SHARDCALL_PARTITIONER_RUNTIME_OPS_WINDOW_H_

#include <vector>

#include "absl/types/span.h"
#include "shardcall/partitioner/ir/attributes.h"
#include "shardcall/partitioner/runtime/tensor.h"

namespace shardcall {
inline namespace internal {

// A Window that owns its values.
struct WindowDims {
  Dims size, stride, pad_low, pad_high, base_dilation, window_dilation;
  absl::InlinedVector<bool, 4> reversed;

  WindowDims() = default;
  explicit WindowDims(const Window& w)
      : size(w.size.begin(), w.size.end()),
        stride(w.stride.begin(), w.stride.end()),
        pad_low(w.pad_low.begin(), w.pad_low.end()),
        pad_high(w.pad_high.begin(), w.pad_high.end()),
        base_dilation(w.lhs_dilate.begin(), w.lhs_dilate.end()),
        window_dilation(w.rhs_dilate.begin(), w.rhs_dilate.end()) {
    for (int64_t r : w.reversal) reversed.push_back(r != 0);
  }
  int rank() const { return static_cast<int>(size.size()); }

  // The base index under window element `w` at output position `o`, or -1 for
  // padding and the holes of a dilated base of `extent` elements.
  int64_t BaseIndex(int k, int64_t o, int64_t w, int64_t extent) const {
    const int64_t at = o * stride[k] + w * window_dilation[k] - pad_low[k];
    if (at < 0 || at % base_dilation[k] != 0) return -1;
    const int64_t index = at / base_dilation[k];
    return index < extent ? index : -1;
  }
  bool Trivial(int k) const {
    return size[k] == 1 && stride[k] == 1 && pad_low[k] == 0 && pad_high[k] == 0 &&
           base_dilation[k] == 1;
  }
};

// By dimension: the base index under window element w of output o, or -1.
class WindowIndices {
 public:
  WindowIndices(const WindowDims& window, absl::Span<const int64_t> out,
                absl::Span<const int64_t> in)
      : table_(out.size()), width_(window.size.begin(), window.size.end()) {
    for (int k = 0; k < static_cast<int>(out.size()); ++k) {
      table_[k].resize(out[k] * width_[k]);
      for (int64_t o = 0; o < out[k]; ++o) {
        for (int64_t w = 0; w < width_[k]; ++w) {
          const int64_t at = window.reversed[k] ? width_[k] - 1 - w : w;
          table_[k][o * width_[k] + w] = window.BaseIndex(k, o, at, in[k]);
        }
      }
    }
  }
  int64_t at(int k, int64_t o, int64_t w) const { return table_[k][o * width_[k] + w]; }

 private:
  std::vector<std::vector<int64_t>> table_;
  Dims width_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_OPS_WINDOW_H_
