// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/reduce.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/float_extrema.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

// A block of accumulators fits into the first-level cache.
constexpr int64_t kBlockBytes = 16 << 10;

// Integers wrap, so they are added in a type that is unsigned after promotion.
template <typename T>
using Wrapping =
    std::conditional_t<(sizeof(T) < sizeof(unsigned)), unsigned, std::make_unsigned_t<T>>;

struct Sum {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
    } else {
      return a + b;
    }
  }
};
struct Product {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
    } else if constexpr (std::is_floating_point_v<T>) {
      return a * b;
    } else {
      // Written out, because the library's operator handles infinities with a slow call.
      return T(a.real() * b.real() - a.imag() * b.imag(),
               a.real() * b.imag() + a.imag() * b.real());
    }
  }
};
struct Max {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return FloatMaximum(a, b);
    } else {
      return a > b ? a : b;
    }
  }
};
struct Min {
  template <typename T>
  static T Do(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return FloatMinimum(a, b);
    } else {
      return a < b ? a : b;
    }
  }
};
struct And {
  template <typename T>
  static T Do(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  static T Do(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <typename T>
  static T Do(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

using Sources = absl::Span<const void* const>;

// Folds elements [first, first + count) into acc, several sources at a time so
// that acc is loaded and stored less often. The order stays left to right.
template <typename T, typename Op>
void FoldBlock(Sources sources, int64_t first, int64_t count, T* __restrict acc) {
  const auto at = [&](size_t s) { return static_cast<const T*>(sources[s]) + first; };
  size_t s = 1;
  if (sources.size() >= 4) {
    const T *a = at(0), *b = at(1), *c = at(2), *d = at(3);
    for (int64_t i = 0; i < count; ++i) acc[i] = Op::Do(Op::Do(Op::Do(a[i], b[i]), c[i]), d[i]);
    s = 4;
  } else {
    std::memcpy(static_cast<void*>(acc), at(0), count * sizeof(T));
  }
  for (; s + 1 < sources.size(); s += 2) {
    const T *a = at(s), *b = at(s + 1);
    for (int64_t i = 0; i < count; ++i) acc[i] = Op::Do(Op::Do(acc[i], a[i]), b[i]);
  }
  if (s < sources.size()) {
    const T* a = at(s);
    for (int64_t i = 0; i < count; ++i) acc[i] = Op::Do(acc[i], a[i]);
  }
}

// Wraps the accumulator of an integer type narrower than a byte to the type's bits.
void WrapToBits(int bits, bool is_signed, uint8_t* acc, int64_t count) {
  const int drop = 8 - bits;
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t high = static_cast<uint8_t>(acc[i] << drop);
    acc[i] = is_signed ? static_cast<uint8_t>(static_cast<int8_t>(high) >> drop)
                       : static_cast<uint8_t>(high >> drop);
  }
}

struct Job {
  ElementType type;
  Sources sources;
  absl::Span<void* const> outs;
  int64_t first;
  int64_t count;
};

void Store(const Job& job, int64_t at, const void* from, int64_t count, int64_t element_bytes) {
  for (void* out : job.outs) {
    std::memcpy(static_cast<char*>(out) + at * element_bytes, from, count * element_bytes);
  }
}

template <typename T, typename Op>
void FoldWide(const Job& job) {
  constexpr int64_t kBlock = kBlockBytes / sizeof(T);
  alignas(64) unsigned char storage[kBlockBytes];
  T* acc = reinterpret_cast<T*>(storage);
  const int bits = ElementTypeBits(job.type);
  const bool below_byte = bits < 8 && IsInteger(job.type);
  const int64_t end = job.first + job.count;
  for (int64_t at = job.first; at < end; at += kBlock) {
    const int64_t count = std::min(kBlock, end - at);
    FoldBlock<T, Op>(job.sources, at, count, acc);
    if (sizeof(T) == 1 && below_byte) {
      WrapToBits(bits, IsSignedInteger(job.type), storage, count);
    }
    Store(job, at, acc, count, sizeof(T));
  }
}

template <typename Op>
void FoldNarrow(const Job& job) {
  constexpr int64_t kBlock = kBlockBytes / 2 / sizeof(float);
  alignas(64) float acc[kBlock];
  alignas(64) float next[kBlock];
  alignas(64) unsigned char rounded[kBlock * 2];
  const int64_t bytes = ElementTypeBytes(job.type);
  const int64_t end = job.first + job.count;
  for (int64_t at = job.first; at < end; at += kBlock) {
    const int64_t count = std::min(kBlock, end - at);
    const auto source = [&](size_t s) {
      return static_cast<const char*>(job.sources[s]) + at * bytes;
    };
    LoadFloats(job.type, source(0), count, acc);
    for (size_t s = 1; s < job.sources.size(); ++s) {
      LoadFloats(job.type, source(s), count, next);
      for (int64_t i = 0; i < count; ++i) acc[i] = Op::Do(acc[i], next[i]);
    }
    StoreFloats(job.type, acc, count, rounded);
    Store(job, at, rounded, count, bytes);
  }
}

using FoldFunction = void (*)(const Job&);

template <typename T>
FoldFunction IntegerFold(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum: return &FoldWide<T, Sum>;
    case ReduceKind::kProduct: return &FoldWide<T, Product>;
    case ReduceKind::kMax: return &FoldWide<T, Max>;
    case ReduceKind::kMin: return &FoldWide<T, Min>;
    case ReduceKind::kAnd: return &FoldWide<T, And>;
    case ReduceKind::kOr: return &FoldWide<T, Or>;
    case ReduceKind::kXor: return &FoldWide<T, Xor>;
  }
  return nullptr;
}

FoldFunction PredFold(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
    case ReduceKind::kMax:
    case ReduceKind::kOr: return &FoldWide<uint8_t, Or>;
    case ReduceKind::kProduct:
    case ReduceKind::kMin:
    case ReduceKind::kAnd: return &FoldWide<uint8_t, And>;
    case ReduceKind::kXor: return &FoldWide<uint8_t, Xor>;
  }
  return nullptr;
}

template <typename T>
FoldFunction FloatFold(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum: return &FoldWide<T, Sum>;
    case ReduceKind::kProduct: return &FoldWide<T, Product>;
    case ReduceKind::kMax: return &FoldWide<T, Max>;
    case ReduceKind::kMin: return &FoldWide<T, Min>;
    default: return nullptr;
  }
}

FoldFunction NarrowFloatFold(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum: return &FoldNarrow<Sum>;
    case ReduceKind::kProduct: return &FoldNarrow<Product>;
    case ReduceKind::kMax: return &FoldNarrow<Max>;
    case ReduceKind::kMin: return &FoldNarrow<Min>;
    default: return nullptr;
  }
}

template <typename T>
FoldFunction ComplexFold(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum: return &FoldWide<T, Sum>;
    case ReduceKind::kProduct: return &FoldWide<T, Product>;
    default: return nullptr;
  }
}

FoldFunction FindFold(ReduceKind kind, ElementType type) {
  switch (type) {
    case ElementType::kPred: return PredFold(kind);
    case ElementType::kS1:
    case ElementType::kS2:
    case ElementType::kS4:
    case ElementType::kS8: return IntegerFold<int8_t>(kind);
    case ElementType::kS16: return IntegerFold<int16_t>(kind);
    case ElementType::kS32: return IntegerFold<int32_t>(kind);
    case ElementType::kS64: return IntegerFold<int64_t>(kind);
    case ElementType::kU1:
    case ElementType::kU2:
    case ElementType::kU4:
    case ElementType::kU8: return IntegerFold<uint8_t>(kind);
    case ElementType::kU16: return IntegerFold<uint16_t>(kind);
    case ElementType::kU32: return IntegerFold<uint32_t>(kind);
    case ElementType::kU64: return IntegerFold<uint64_t>(kind);
    case ElementType::kF32: return FloatFold<float>(kind);
    case ElementType::kF64: return FloatFold<double>(kind);
    case ElementType::kC64: return ComplexFold<std::complex<float>>(kind);
    case ElementType::kC128: return ComplexFold<std::complex<double>>(kind);
    default:
      return IsNarrowFloat(type) && type != ElementType::kF8E8M0FNU ? NarrowFloatFold(kind)
                                                                    : nullptr;
  }
}

}  // namespace

absl::Status CheckReduction(ReduceKind kind, ElementType type) {
  if (kind > ReduceKind::kXor) {
    return ToStatus(
        {.code = "E306",
         .message = "a reduction is none of those that there are",
         .expected = absl::StrCat("a ReduceKind, 0 to ", static_cast<int>(ReduceKind::kXor)),
         .found = absl::StrCat(static_cast<int>(kind)),
         .fix = "Take one of ReduceKind"});
  }
  if (FindFold(kind, type) != nullptr) return absl::OkStatus();
  return ToStatus({.code = "E306",
                   .message = absl::StrCat("there is no ", ReduceKindName(kind), " reduction of ",
                                           ElementTypeName(type)),
                   .fix = "Convert the operand, or take another reduction"});
}

void ReduceRange(ReduceKind kind, ElementType type, Sources sources, absl::Span<void* const> outs,
                 int64_t first, int64_t count) {
  const FoldFunction fold = FindFold(kind, type);
  SHARDCALL_CHECK(fold != nullptr);
  SHARDCALL_CHECK(!sources.empty());
  fold(Job{type, sources, outs, first, count});
}

}  // namespace internal
}  // namespace shardcall
