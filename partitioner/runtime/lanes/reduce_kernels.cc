// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/lanes/reduce_kernels.h"

#include <algorithm>
#include <complex>
#include <limits>
#include <type_traits>

#include "shardcall/partitioner/runtime/lanes/isa.h"
#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"
#include "shardcall/partitioner/runtime/lanes/reduce_extreme.h"
#include "shardcall/partitioner/runtime/lanes/scalar_ops.h"
#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int64_t kParts = kReduceParts;
constexpr int64_t kColumns = 64;  // columns, or rows of kParts, at a time

struct Sum {
  template <typename A>
  static A Do(A a, A b) {
    if constexpr (std::is_integral_v<A>)
      return scalar_ops::Add::Do(a, b);
    else
      return a + b;
  }
  template <typename A>
  static A Identity() {
    if constexpr (std::is_integral_v<A>)
      return A{0};
    else if constexpr (std::is_floating_point_v<A>)
      return kNoSum;
    else
      return A(kNoSum, kNoSum);  // both parts of a complex number
  }
};
struct Product {
  template <typename A>
  static A Do(A a, A b) {
    return scalar_ops::Multiply::Do(a, b);
  }
  template <typename A>
  static A Identity() {
    return A{1};
  }
};
struct Max {
  template <typename A>
  static A Do(A a, A b) {
    return scalar_ops::Maximum::Do(a, b);
  }
  template <typename A>
  static A Identity() {
    using L = std::numeric_limits<A>;
    return L::has_infinity ? -L::infinity() : L::lowest();
  }
};
struct Min {
  template <typename A>
  static A Do(A a, A b) {
    return scalar_ops::Minimum::Do(a, b);
  }
  template <typename A>
  static A Identity() {
    using L = std::numeric_limits<A>;
    return L::has_infinity ? L::infinity() : L::max();
  }
};
struct And {
  template <typename A>
  static A Do(A a, A b) {
    return a & b;
  }
  template <typename A>
  static A Identity() {
    return static_cast<A>(~A{0});
  }
};
struct Or {
  template <typename A>
  static A Do(A a, A b) {
    return a | b;
  }
  template <typename A>
  static A Identity() {
    return 0;
  }
};
struct Xor {
  template <typename A>
  static A Do(A a, A b) {
    return a ^ b;
  }
  template <typename A>
  static A Identity() {
    return 0;
  }
};

// Elements as T, decoded if the array holds a narrow float.
template <typename T>
const T* Load(ElementType type, const void* in, int64_t offset, int64_t n, T* scratch) {
  if constexpr (std::is_same_v<T, float>) {
    if (type != ElementType::kF32) {
      LoadFloats(type, static_cast<const char*>(in) + offset * ElementTypeBytes(type), n, scratch);
      return scratch;
    }
  }
  return static_cast<const T*>(in) + offset;
}

template <typename T, typename A>
void Store(ElementType type, const A* values, int64_t n, void* out, int64_t offset) {
  if constexpr (std::is_same_v<T, float> && std::is_same_v<A, double>) {
    if (type != ElementType::kF32) {
      StoreFloats(type, values, n, static_cast<char*>(out) + offset * ElementTypeBytes(type));
      return;
    }
  }
  T* to = static_cast<T*>(out) + offset;
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(values[i]);
}

// The pairwise sum of parts[0], parts[stride], ..: adjacent ones first, then pairs of these.
template <typename Op, typename A>
A Tree(const A* parts, int64_t stride = 1) {
  A sums[kParts];
  for (int64_t j = 0; j < kParts; ++j) sums[j] = parts[j * stride];
  for (int64_t width = 1; width < kParts; width *= 2) {
    for (int64_t j = 0; j < kParts; j += 2 * width) sums[j] = Op::Do(sums[j], sums[j + width]);
  }
  return sums[0];
}

// Adds elements first, first + 1, .. of a row.
template <typename Op, typename T, typename A>
void AddRow(const T* x, int64_t n, int64_t first, A* parts) {
  int64_t r = 0;
  for (; r < n && (first + r) % kParts != 0; ++r) {
    A& part = parts[(first + r) % kParts];
    part = Op::Do(part, static_cast<A>(x[r]));
  }
  A sums[kParts];  // in registers
  std::copy_n(parts, kParts, sums);
  for (; r + kParts <= n; r += kParts) {
    for (int64_t j = 0; j < kParts; ++j) sums[j] = Op::Do(sums[j], static_cast<A>(x[r + j]));
  }
  std::copy_n(sums, kParts, parts);
  for (int64_t j = 0; r < n; ++r, ++j) parts[j] = Op::Do(parts[j], static_cast<A>(x[r]));
}

template <typename Op, typename T, typename A>
void AddColumns(const T* x, int64_t n, A* part) {
  SHARDCALL_LANES
  for (int64_t b = 0; b < n; ++b) part[b] = Op::Do(part[b], static_cast<A>(x[b]));
}

// Adds kTogether rows, `stride` apart, that belong to the same part, in order.
constexpr int64_t kTogether = 4;
template <typename Op, typename T, typename A>
void AddColumnsTogether(const T* x, int64_t stride, int64_t n, A* part) {
  SHARDCALL_LANES
  for (int64_t b = 0; b < n; ++b) {
    A sum = part[b];
    for (int64_t k = 0; k < kTogether; ++k) sum = Op::Do(sum, static_cast<A>(x[b + k * stride]));
    part[b] = sum;
  }
}

template <typename Op, typename T, typename A>
void Reduce(ElementType type, const void* in, const void* init, void* out, int64_t outer,
            int64_t extent, int64_t inner) {
  T scratch[kColumns * kParts];
  const A start = static_cast<A>(*Load<T>(type, init, 0, 1, scratch));
  A parts[kParts * kColumns];
  if (inner == 1) {
    for (int64_t a = 0; a < outer; ++a) {
      std::fill_n(parts, kParts, Op::template Identity<A>());
      for (int64_t r0 = 0; r0 < extent; r0 += kColumns * kParts) {
        const int64_t n = std::min(kColumns * kParts, extent - r0);
        const T* x = Load<T>(type, in, a * extent + r0, n, scratch);
        AddRow<Op>(x, n, r0, parts);
      }
      const A result = Op::Do(start, Tree<Op>(parts));
      Store<T>(type, &result, 1, out, a);
    }
    return;
  }
  for (int64_t a = 0; a < outer; ++a) {
    for (int64_t b0 = 0; b0 < inner; b0 += kColumns) {
      const int64_t n = std::min(kColumns, inner - b0);
      std::fill_n(parts, kParts * kColumns, Op::template Identity<A>());
      int64_t r = 0;
      if (ElementTypeBytes(type) == sizeof(T)) {  // elements that need no decoding
        for (; r + kTogether * kParts <= extent; r += kTogether * kParts) {
          const T* x = static_cast<const T*>(in) + (a * extent + r) * inner + b0;
          for (int64_t j = 0; j < kParts; ++j) {
            AddColumnsTogether<Op>(x + j * inner, kParts * inner, n, parts + j * kColumns);
          }
        }
      }
      for (; r < extent; ++r) {
        const T* x = Load<T>(type, in, (a * extent + r) * inner + b0, n, scratch);
        AddColumns<Op>(x, n, parts + r % kParts * kColumns);
      }
      A result[kColumns];
      for (int64_t b = 0; b < n; ++b) result[b] = Op::Do(start, Tree<Op>(parts + b, kColumns));
      Store<T>(type, result, n, out, a * inner + b0);
    }
  }
}

// For wrapping sums and similar ops only the width matters.
template <typename Op>
ReduceFn FindByWidth(ElementType type) {
  switch (ElementTypeBytes(type)) {
    case 1: return BestForCpu<Reduce<Op, uint8_t, uint8_t>>();
    case 2: return BestForCpu<Reduce<Op, uint16_t, uint16_t>>();
    case 4: return BestForCpu<Reduce<Op, uint32_t, uint32_t>>();
    case 8: return BestForCpu<Reduce<Op, uint64_t, uint64_t>>();
    default: return nullptr;
  }
}
template <typename Op>
ReduceFn FindOrdered(ElementType type) {
  switch (type) {
    case ElementType::kS8: return BestForCpu<Reduce<Op, int8_t, int8_t>>();
    case ElementType::kS16: return BestForCpu<Reduce<Op, int16_t, int16_t>>();
    case ElementType::kS32: return BestForCpu<Reduce<Op, int32_t, int32_t>>();
    case ElementType::kS64: return BestForCpu<Reduce<Op, int64_t, int64_t>>();
    default: return FindByWidth<Op>(type);
  }
}

}  // namespace

SumRowFn FindSumRow() { return BestForCpu<AddRow<Sum, float, double>>(); }
// Sums of f32 columns are computed in f64; wide registers hold eight.
SumColumnsFn FindSumColumns() { return BestWideForCpu<AddColumns<Sum, float, double>>(); }
double FinishSum(double start, const double* parts, int64_t columns, int64_t c) {
  return start + Tree<Sum>(parts + c, columns);
}

ReduceFn FindReduceFn(PartialOp op, ElementType type) {
  // Sub-byte integers would have to wrap, and are rare.
  if (!IsArrayType(type) || (!IsFloat(type) && ElementTypeBits(type) < 8)) return nullptr;
  if (IsComplex(type)) {
    if (op != PartialOp::kSum) return nullptr;
    if (type == ElementType::kC64) {
      return BestForCpu<Reduce<Sum, std::complex<float>, std::complex<double>>>();
    }
    return BestForCpu<Reduce<Sum, std::complex<double>, std::complex<double>>>();
  }
  const bool real = IsFloat(type);
  const bool pred = type == ElementType::kPred;
  switch (op) {
    case PartialOp::kSum:
      if (pred) return FindByWidth<Or>(type);
      if (!real) return FindByWidth<Sum>(type);
      return type == ElementType::kF64 ? BestForCpu<Reduce<Sum, double, double>>()
                                       : BestWideForCpu<Reduce<Sum, float, double>>();
    case PartialOp::kProduct:
      if (pred) return FindByWidth<And>(type);
      if (!real) return FindByWidth<Product>(type);
      return type == ElementType::kF64 ? BestForCpu<Reduce<Product, double, double>>()
                                       : BestForCpu<Reduce<Product, float, double>>();
    case PartialOp::kMax: return real ? FindFloatMaximum(type) : FindOrdered<Max>(type);
    case PartialOp::kMin: return real ? FindFloatMinimum(type) : FindOrdered<Min>(type);
    case PartialOp::kAnd: return real ? nullptr : FindByWidth<And>(type);
    case PartialOp::kOr: return real ? nullptr : FindByWidth<Or>(type);
    case PartialOp::kXor: return real ? nullptr : FindByWidth<Xor>(type);
  }
  return nullptr;
}

}  // namespace internal
}  // namespace shardcall
