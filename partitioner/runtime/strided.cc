// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/strided.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <cstring>

namespace shardcall {
inline namespace internal {
namespace {

struct Loop {
  int64_t size, src, dst;  // strides in elements
};
using Loops = absl::InlinedVector<Loop, 6>;

template <typename T>
void CopyRun(const T* src, int64_t src_stride, T* dst, int64_t dst_stride, int64_t n) {
  if (dst_stride == 1) {
    if (src_stride == 1) {
      std::memcpy(dst, src, n * sizeof(T));
    } else if (src_stride == 0) {
      std::fill_n(dst, n, *src);
    } else if (src_stride == -1) {
      std::reverse_copy(src - (n - 1), src + 1, dst);
    } else {
      for (int64_t i = 0; i < n; ++i) dst[i] = src[i * src_stride];
    }
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i * dst_stride] = src[i * src_stride];
  }
}

// out[i * out_stride + j] = in[j * kTile + i]
template <typename T, int64_t kTile>
void TransposeTile(const T* in, T* out, int64_t out_stride) {
#if defined(__SSE2__)
  if constexpr (sizeof(T) == 4) {
    for (int64_t i = 0; i < kTile; i += 4) {
      for (int64_t j = 0; j < kTile; j += 4) {
        __m128 row[4];
        for (int k = 0; k < 4; ++k) {
          row[k] = _mm_loadu_ps(reinterpret_cast<const float*>(in + (j + k) * kTile + i));
        }
        _MM_TRANSPOSE4_PS(row[0], row[1], row[2], row[3]);
        for (int k = 0; k < 4; ++k) {
          _mm_storeu_ps(reinterpret_cast<float*>(out + (i + k) * out_stride + j), row[k]);
        }
      }
    }
    return;
  }
#endif
  for (int64_t i = 0; i < kTile; ++i) {
    for (int64_t j = 0; j < kTile; ++j) out[i * out_stride + j] = in[j * kTile + i];
  }
}

// For two loops of which one is contiguous in the source and the other in the destination: copies
// tiles, so that both sides stay in cache. A tile is gathered first: rows that are a large power of
// two apart map to the same few cache sets, so each line is read only once.
template <typename T>
void CopyTiled(const T* src, T* dst, const Loop& a, const Loop& b) {
  constexpr int64_t kTile = std::max<int64_t>(64 / sizeof(T), 8);
  alignas(64) T tile[kTile * kTile];
  for (int64_t i0 = 0; i0 < a.size; i0 += kTile) {
    const int64_t ni = std::min(kTile, a.size - i0);
    for (int64_t j0 = 0; j0 < b.size; j0 += kTile) {
      const int64_t nj = std::min(kTile, b.size - j0);
      const T* s = src + i0 * a.src + j0 * b.src;
      T* d = dst + i0 * a.dst + j0 * b.dst;
      if (a.src == 1 && b.dst == 1 && ni == kTile && nj == kTile) {
        for (int64_t j = 0; j < kTile; ++j) {
          std::memcpy(tile + j * kTile, s + j * b.src, kTile * sizeof(T));
        }
        TransposeTile<T, kTile>(tile, d, a.dst);
        continue;
      }
      for (int64_t i = 0; i < ni; ++i) {
        for (int64_t j = 0; j < nj; ++j) d[i * a.dst + j * b.dst] = s[i * a.src + j * b.src];
      }
    }
  }
}

template <typename T>
void CopyLoops(Loops loops, const T* src, T* dst) {
  // The innermost loop should write contiguous elements.
  const Loop inner = loops.back();
  loops.pop_back();
  int tile_with = -1;
  if (inner.src != 1 && inner.src != 0 && inner.size > 4) {
    for (size_t k = 0; k < loops.size(); ++k) {
      if (loops[k].src == 1 && loops[k].size > 4) tile_with = static_cast<int>(k);
    }
  }
  Loop other{1, 0, 0};
  if (tile_with >= 0) {
    other = loops[tile_with];
    loops.erase(loops.begin() + tile_with);
  }
  Dims index(loops.size(), 0);
  while (true) {
    if (tile_with >= 0) {
      CopyTiled(src, dst, other, inner);
    } else {
      CopyRun(src, inner.src, dst, inner.dst, inner.size);
    }
    size_t k = loops.size();
    for (; k-- > 0;) {
      src += loops[k].src;
      dst += loops[k].dst;
      if (++index[k] < loops[k].size) break;
      src -= loops[k].src * loops[k].size;
      dst -= loops[k].dst * loops[k].size;
      index[k] = 0;
    }
    if (k == static_cast<size_t>(-1)) return;
  }
}

struct Word128 {
  uint64_t low, high;
};

}  // namespace

Dims RowMajorStrides(absl::Span<const int64_t> dims) {
  Dims strides(dims.size(), 1);
  for (int k = static_cast<int>(dims.size()) - 2; k >= 0; --k) {
    strides[k] = strides[k + 1] * dims[k + 1];
  }
  return strides;
}

void CopyStrided(int element_bytes, absl::Span<const int64_t> dims, const char* src,
                 absl::Span<const int64_t> src_strides, char* dst,
                 absl::Span<const int64_t> dst_strides) {
  Loops loops;
  for (size_t k = 0; k < dims.size(); ++k) {
    if (dims[k] == 0) return;
    if (dims[k] == 1) continue;
    const Loop loop{dims[k], src_strides[k], dst_strides[k]};
    if (!loops.empty() && loops.back().src == loop.src * loop.size &&
        loops.back().dst == loop.dst * loop.size) {
      loops.back() = {loops.back().size * loop.size, loop.src, loop.dst};
    } else {
      loops.push_back(loop);
    }
  }
  if (loops.empty()) loops.push_back({1, 1, 1});
  switch (element_bytes) {
    case 1:
      return CopyLoops(loops, reinterpret_cast<const uint8_t*>(src),
                       reinterpret_cast<uint8_t*>(dst));
    case 2:
      return CopyLoops(loops, reinterpret_cast<const uint16_t*>(src),
                       reinterpret_cast<uint16_t*>(dst));
    case 4:
      return CopyLoops(loops, reinterpret_cast<const uint32_t*>(src),
                       reinterpret_cast<uint32_t*>(dst));
    case 8:
      return CopyLoops(loops, reinterpret_cast<const uint64_t*>(src),
                       reinterpret_cast<uint64_t*>(dst));
    case 16:
      return CopyLoops(loops, reinterpret_cast<const Word128*>(src),
                       reinterpret_cast<Word128*>(dst));
    default: return;
  }
}

void FillElements(int element_bytes, const char* value, char* dst, int64_t count) {
  const int64_t n[] = {count};
  const int64_t zero[] = {0}, one[] = {1};
  CopyStrided(element_bytes, n, value, zero, dst, one);
}

Tensor Transpose(const Tensor& t, absl::Span<const int64_t> perm) {
  const Dims strides = RowMajorStrides(t.dims());
  Dims dims, src;
  for (int64_t p : perm) {
    dims.push_back(t.dim(static_cast<int>(p)));
    src.push_back(strides[p]);
  }
  Tensor out(t.type(), dims);
  CopyStrided(t.element_bytes(), dims, t.data(), src, out.MutableData(), RowMajorStrides(dims));
  return out;
}

}  // namespace internal
}  // namespace shardcall
