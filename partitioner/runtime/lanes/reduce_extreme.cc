// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/lanes/reduce_extreme.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "shardcall/partitioner/runtime/lanes/isa.h"
#include "shardcall/partitioner/runtime/lanes/scalar_ops.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int64_t kLanes = 64;

struct Max {
  using Scalar = scalar_ops::Maximum;
  static constexpr bool kMaximum = true;
  template <typename T>
  static bool Before(T a, T b) {
    return a > b;
  }
  // Signs of zeros: -0 < +0. If the maximum is zero, no element is positive, so an element without
  // a sign bit is +0.
  template <typename B>
  static B Join(B a, B b) {
    return a & b;
  }
  template <typename B>
  static constexpr B kNone = static_cast<B>(~B{0});
  static constexpr double kIdentity = -std::numeric_limits<double>::infinity();
};
struct Min {
  using Scalar = scalar_ops::Minimum;
  static constexpr bool kMaximum = false;
  template <typename T>
  static bool Before(T a, T b) {
    return a < b;
  }
  template <typename B>
  static B Join(B a, B b) {
    return a | b;
  }
  template <typename B>
  static constexpr B kNone = 0;
  static constexpr double kIdentity = std::numeric_limits<double>::infinity();
};

template <typename T>
struct Partial {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  T best[kLanes];
  Bits signs[kLanes];

  template <typename Op>
  void Clear() {
    std::fill_n(best, kLanes, static_cast<T>(Op::kIdentity));
    std::fill_n(signs, kLanes, Op::template kNone<Bits>);
  }
  // Adds x[0], .. to lanes 0, ..
  template <typename Op>
  void Add(const T* x, int64_t n) {
    SHARDCALL_LANES
    for (int64_t j = 0; j < n; ++j) {
      const T v = x[j], b = best[j];
      best[j] = static_cast<int>(Op::Before(v, b)) | static_cast<int>(v != v) ? v : b;
      signs[j] = Op::Join(signs[j], std::bit_cast<Bits>(v));
    }
  }
  template <typename Op>
  T Result(int64_t j) const {
    constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1);
    return best[j] == 0 ? std::bit_cast<T>(static_cast<Bits>(signs[j] & kSign)) : best[j];
  }
};

// The extreme of one row. Rare cases (NaN, signs of zeros) are noted, or looked for afterwards.
template <typename Op, typename T>
void ExtremeRow(const T* x, int64_t n, T* best) {
  using Bits = typename Partial<T>::Bits;
  using SignedBits = std::make_signed_t<Bits>;
  constexpr int kBytes = 32, kRegisters = 4;
  typedef T Vector __attribute__((vector_size(kBytes)));
  typedef SignedBits Mask __attribute__((vector_size(kBytes)));
  constexpr int64_t kWidth = kBytes / sizeof(T);
  T result = *best;
  bool nan = result != result;
  int64_t i = 0;
  if (n >= kRegisters * kWidth) {
    Vector bests[kRegisters];
    Mask nans[kRegisters];
    for (int u = 0; u < kRegisters; ++u) {
      bests[u] = Vector{} + static_cast<T>(Op::kIdentity);
      nans[u] = Mask{};
    }
    for (; i + kRegisters * kWidth <= n; i += kRegisters * kWidth) {
      for (int u = 0; u < kRegisters; ++u) {
        Vector v;
        __builtin_memcpy(&v, x + i + u * kWidth, kBytes);
        if constexpr (Op::kMaximum) {
          bests[u] = v > bests[u] ? v : bests[u];
        } else {
          bests[u] = v < bests[u] ? v : bests[u];
        }
        nans[u] |= v != v;
      }
    }
    for (int u = 0; u < kRegisters; ++u) {
      for (int64_t j = 0; j < kWidth; ++j) {
        nan |= nans[u][j] != 0;
        result = Op::Before(bests[u][j], result) ? bests[u][j] : result;
      }
    }
  }
  for (; i < n; ++i) {
    nan |= x[i] != x[i];
    result = Op::Before(x[i], result) ? x[i] : result;
  }
  if (nan) {
    *best = std::numeric_limits<T>::quiet_NaN();
    return;
  }
  if (result == 0) {
    constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1);
    Bits signs = *best == 0 ? std::bit_cast<Bits>(*best) : Op::template kNone<Bits>;
    for (i = 0; i < n; ++i) signs = Op::Join(signs, std::bit_cast<Bits>(x[i]));
    result = std::bit_cast<T>(static_cast<Bits>(signs & kSign));
  }
  *best = result;
}

template <typename Op>
void ExtremeOfTaps(const float* const* taps, int64_t count, float init, float* out, int64_t n) {
  constexpr int kWidth = 8, kRegisters = 4;
  typedef float Vector __attribute__((vector_size(4 * kWidth)));
  typedef int32_t Mask __attribute__((vector_size(4 * kWidth)));
  int64_t i = 0;
  for (; i + kRegisters * kWidth <= n; i += kRegisters * kWidth) {
    Vector acc[kRegisters];
    for (int u = 0; u < kRegisters; ++u) acc[u] = init - Vector{};  // keeps -0
    for (int64_t t = 0; t < count; ++t) {
      for (int u = 0; u < kRegisters; ++u) {
        Vector x;
        __builtin_memcpy(&x, taps[t] + i + u * kWidth, sizeof(x));
        const Vector a = acc[u];  // as in scalar_ops
        const Mask same = Op::kMaximum ? (Mask)a & (Mask)x : (Mask)a | (Mask)x;
        const Vector tie = a == x ? (Vector)same : a + x;
        if constexpr (Op::kMaximum) {
          acc[u] = a > x ? a : (a < x ? x : tie);
        } else {
          acc[u] = a < x ? a : (a > x ? x : tie);
        }
      }
    }
    __builtin_memcpy(out + i, acc, sizeof(acc));
  }
  for (; i < n; ++i) {
    float acc = init;
    for (int64_t t = 0; t < count; ++t) acc = Op::Scalar::Do(acc, taps[t][i]);
    out[i] = acc;
  }
}

void SumOfTaps(const float* const* taps, int64_t count, float init, float* out, int64_t n) {
  constexpr int64_t kLanes = 32;
  double acc[kLanes];
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t lanes = std::min(kLanes, n - i);
    std::fill_n(acc, lanes, init);
    for (int64_t t = 0; t < count; ++t) {
      const float* x = taps[t] + i;
      SHARDCALL_LANES
      for (int64_t j = 0; j < lanes; ++j) acc[j] += x[j];
    }
    for (int64_t j = 0; j < lanes; ++j) out[i + j] = static_cast<float>(acc[j]);
  }
}

// n elements from `offset` as T, decoded if the array holds a narrow float.
template <typename T>
const T* Load(ElementType type, const void* in, int64_t offset, int64_t n, T* scratch) {
  if (ElementTypeBytes(type) == sizeof(T)) return static_cast<const T*>(in) + offset;
  LoadFloats(type, static_cast<const char*>(in) + offset * ElementTypeBytes(type), n, scratch);
  return scratch;
}
template <typename T>
void Store(ElementType type, const T* values, int64_t n, void* out, int64_t offset) {
  StoreFloats(type, values, n, static_cast<char*>(out) + offset * ElementTypeBytes(type));
}

template <typename Op, typename T>
void Reduce(ElementType type, const void* in, const void* init, void* out, int64_t outer,
            int64_t extent, int64_t inner) {
  using Scalar = typename Op::Scalar;
  constexpr int64_t kBlock = 16 * kLanes;
  T scratch[kBlock];
  const T start = *Load<T>(type, init, 0, 1, scratch);
  Partial<T> partial;
  if (inner == 1) {
    for (int64_t a = 0; a < outer; ++a) {
      T best = static_cast<T>(Op::kIdentity);
      for (int64_t r0 = 0; r0 < extent; r0 += kBlock) {
        const int64_t n = std::min(kBlock, extent - r0);
        ExtremeRow<Op>(Load<T>(type, in, a * extent + r0, n, scratch), n, &best);
      }
      const T result = extent == 0 ? start : Scalar::Do(start, best);
      Store(type, &result, 1, out, a);
    }
    return;
  }
  for (int64_t a = 0; a < outer; ++a) {
    for (int64_t b0 = 0; b0 < inner; b0 += kLanes) {
      const int64_t n = std::min(kLanes, inner - b0);
      partial.template Clear<Op>();
      for (int64_t r = 0; r < extent; ++r) {
        const T* x = Load<T>(type, in, (a * extent + r) * inner + b0, n, scratch);
        if (n == kLanes) {
          partial.template Add<Op>(x, kLanes);
        } else {
          partial.template Add<Op>(x, n);
        }
      }
      T result[kLanes];
      for (int64_t j = 0; j < n; ++j) {
        result[j] = extent == 0 ? start : Scalar::Do(start, partial.template Result<Op>(j));
      }
      Store(type, result, n, out, a * inner + b0);
    }
  }
}

}  // namespace

ReduceFn FindFloatMaximum(ElementType type) {
  return type == ElementType::kF64 ? BestForCpu<Reduce<Max, double>>()
                                   : BestForCpu<Reduce<Max, float>>();
}
ExtremeRowFn FindExtremeRow(bool maximum) {
  return maximum ? BestForCpu<ExtremeRow<Max, float>>() : BestForCpu<ExtremeRow<Min, float>>();
}

WindowTapsFn FindWindowTaps(PartialOp op) {
  if (op == PartialOp::kSum) return BestForCpu<SumOfTaps>();
  if (op == PartialOp::kMax) return BestForCpu<ExtremeOfTaps<Max>>();
  return op == PartialOp::kMin ? BestForCpu<ExtremeOfTaps<Min>>() : nullptr;
}

ReduceFn FindFloatMinimum(ElementType type) {
  return type == ElementType::kF64 ? BestForCpu<Reduce<Min, double>>()
                                   : BestForCpu<Reduce<Min, float>>();
}

}  // namespace internal
}  // namespace shardcall
