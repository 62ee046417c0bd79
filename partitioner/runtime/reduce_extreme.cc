// SPDX-License-Identifier: Apache-2.0
#include "partitioner/runtime/reduce_extreme.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "partitioner/runtime/isa.h"
#include "partitioner/runtime/scalar_ops.h"
#include "sharding/narrow_float.h"

namespace shardcall {
namespace {

constexpr int64_t kLanes = 64;

struct Max {
  using Scalar = scalar_ops::Maximum;
  template <typename T>
  static bool Before(T a, T b) {
    return a > b;
  }
  // Signs of zeros: -0 < +0. Where the result is zero no element is positive, so
  // one without a sign bit is a +0.
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
  // Takes x[0], .. into lanes 0, ..
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

// n elements from `offset` as T, decoded where the array holds a narrow float.
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
      partial.template Clear<Op>();
      for (int64_t r0 = 0; r0 < extent; r0 += kBlock) {
        const int64_t n = std::min(kBlock, extent - r0);
        const T* x = Load<T>(type, in, a * extent + r0, n, scratch);
        int64_t r = 0;
        for (; r + kLanes <= n; r += kLanes) partial.template Add<Op>(x + r, kLanes);
        partial.template Add<Op>(x + r, n - r);
      }
      T result = start;
      const int64_t lanes = std::min(kLanes, extent);
      for (int64_t j = 0; j < lanes; ++j) {
        result = Scalar::Do(result, partial.template Result<Op>(j));
      }
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
ReduceFn FindFloatMinimum(ElementType type) {
  return type == ElementType::kF64 ? BestForCpu<Reduce<Min, double>>()
                                   : BestForCpu<Reduce<Min, float>>();
}

}  // namespace shardcall
