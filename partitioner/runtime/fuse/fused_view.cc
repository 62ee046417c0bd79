// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "shardcall/partitioner/runtime/fuse/fused_step.h"

namespace shardcall {
inline namespace internal {
namespace {

template <typename T>
void CopyLine(const T* src, int64_t stride, T* dst, int64_t n) {
  if (stride == 1) {
    std::memcpy(dst, src, n * sizeof(T));
  } else if (stride == 0) {
    std::fill_n(dst, n, *src);
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i] = src[i * stride];
  }
}

// Elements [begin, begin + n) of a view: a pointer into the source if they are contiguous there,
// else `scratch`.
template <typename T>
const void* LoadView(const FusedView& view, const void* source, int64_t begin, int64_t n,
                     void* scratch) {
  const T* src = static_cast<const T*>(source) + view.offset;
  T* dst = static_cast<T*>(scratch);
  const int last = static_cast<int>(view.loops.size()) - 1;
  if (last < 0) {
    std::fill_n(dst, n, *src);
    return dst;
  }
  absl::InlinedVector<int64_t, 4> index(last + 1);
  int64_t rest = begin;
  for (int k = last; k >= 0; --k) {
    index[k] = rest % view.loops[k].size;
    rest /= view.loops[k].size;
    src += index[k] * view.loops[k].stride;
  }
  const FusedView::Loop inner = view.loops[last];
  if (inner.stride == 1 && index[last] + n <= inner.size) return src;
  while (true) {
    const int64_t count = std::min(n, inner.size - index[last]);
    CopyLine(src, inner.stride, dst, count);
    dst += count;
    n -= count;
    if (n == 0) return scratch;
    src -= index[last] * inner.stride;
    index[last] = 0;
    for (int k = last - 1; k >= 0; --k) {
      src += view.loops[k].stride;
      if (++index[k] < view.loops[k].size) break;
      src -= view.loops[k].stride * view.loops[k].size;
      index[k] = 0;
    }
  }
}

struct Word128 {
  uint64_t low, high;
};

}  // namespace

const void* LoadView(int bytes, const FusedView& view, const void* source, int64_t begin, int64_t n,
                     void* scratch) {
  switch (bytes) {
    case 1: return LoadView<uint8_t>(view, source, begin, n, scratch);
    case 2: return LoadView<uint16_t>(view, source, begin, n, scratch);
    case 4: return LoadView<uint32_t>(view, source, begin, n, scratch);
    case 8: return LoadView<uint64_t>(view, source, begin, n, scratch);
    default: return LoadView<Word128>(view, source, begin, n, scratch);
  }
}

}  // namespace internal
}  // namespace shardcall
