// SPDX-License-Identifier: Apache-2.0
#include "tests/collectives/reference.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <random>

#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall::testing {
namespace {

template <typename T>
T Load(const Bytes& bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}
template <typename T>
void Save(Bytes& bytes, int64_t i, T value) {
  std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
}

template <typename T>
T FoldFloat(ReduceKind kind, T a, T b) {
  switch (kind) {
    case ReduceKind::kSum: return a + b;
    case ReduceKind::kProduct: return a * b;
    case ReduceKind::kMax:
      if (std::isnan(a) || std::isnan(b)) return std::nan("");
      return a < b || (a == b && std::signbit(a)) ? b : a;
    default:
      if (std::isnan(a) || std::isnan(b)) return std::nan("");
      return b < a || (a == b && std::signbit(b)) ? b : a;
  }
}

// Integers by their value modulo 2^bits, in 128 bits.
__int128 FoldInteger(ReduceKind kind, __int128 a, __int128 b) {
  switch (kind) {
    case ReduceKind::kSum: return a + b;
    case ReduceKind::kProduct:
      return static_cast<__int128>(static_cast<unsigned __int128>(a) *
                                   static_cast<unsigned __int128>(b));
    case ReduceKind::kMax: return a < b ? b : a;
    case ReduceKind::kMin: return b < a ? b : a;
    case ReduceKind::kAnd: return a & b;
    case ReduceKind::kOr: return a | b;
    case ReduceKind::kXor: return a ^ b;
  }
  return 0;
}

__int128 Wrap(__int128 value, int bits, bool is_signed) {
  const __int128 modulus = static_cast<__int128>(1) << bits;
  value = ((value % modulus) + modulus) % modulus;
  return is_signed && value >= modulus / 2 ? value - modulus : value;
}

__int128 LoadInteger(const Bytes& bytes, ElementType type, int64_t i) {
  const int width = ElementTypeBytes(type);
  uint64_t raw = 0;
  std::memcpy(&raw, bytes.data() + i * width, width);
  return Wrap(raw, 8 * width, IsSignedInteger(type));
}
void SaveInteger(Bytes& bytes, ElementType type, int64_t i, __int128 value) {
  const int width = ElementTypeBytes(type);
  const uint64_t raw = static_cast<uint64_t>(value);
  std::memcpy(bytes.data() + i * width, &raw, width);
}

template <typename T>
void ReduceFloats(ReduceKind kind, const std::vector<Bytes>& inputs, int64_t at, Bytes& out,
                  int64_t to) {
  T total = Load<T>(inputs[0], at);
  for (size_t r = 1; r < inputs.size(); ++r) total = FoldFloat(kind, total, Load<T>(inputs[r], at));
  Save(out, to, total);
}

template <typename T>
void ReduceComplex(ReduceKind kind, const std::vector<Bytes>& inputs, int64_t at, Bytes& out,
                   int64_t to) {
  T re = Load<T>(inputs[0], 2 * at), im = Load<T>(inputs[0], 2 * at + 1);
  for (size_t r = 1; r < inputs.size(); ++r) {
    const T x = Load<T>(inputs[r], 2 * at), y = Load<T>(inputs[r], 2 * at + 1);
    if (kind == ReduceKind::kSum) {
      re += x;
      im += y;
    } else {
      const T product = re * x - im * y;
      im = re * y + im * x;
      re = product;
    }
  }
  Save(out, 2 * to, re);
  Save(out, 2 * to + 1, im);
}

void ReduceNarrow(ReduceKind kind, ElementType type, const std::vector<Bytes>& inputs, int64_t at,
                  Bytes& out, int64_t to) {
  const int width = ElementTypeBytes(type);
  float total;
  LoadFloats(type, inputs[0].data() + at * width, 1, &total);
  for (size_t r = 1; r < inputs.size(); ++r) {
    float next;
    LoadFloats(type, inputs[r].data() + at * width, 1, &next);
    total = FoldFloat(kind, total, next);
  }
  StoreFloats(type, &total, 1, out.data() + to * width);
}

void ReduceInteger(ReduceKind kind, ElementType type, const std::vector<Bytes>& inputs, int64_t at,
                   Bytes& out, int64_t to) {
  __int128 total = LoadInteger(inputs[0], type, at);
  for (size_t r = 1; r < inputs.size(); ++r) {
    total = Wrap(FoldInteger(kind, total, LoadInteger(inputs[r], type, at)), ElementTypeBits(type),
                 IsSignedInteger(type));
  }
  SaveInteger(out, type, to, total);
}

void ReducePred(ReduceKind kind, const std::vector<Bytes>& inputs, int64_t at, Bytes& out,
                int64_t to) {
  bool total = inputs[0][at] != 0;
  for (size_t r = 1; r < inputs.size(); ++r) {
    const bool next = inputs[r][at] != 0;
    if (kind == ReduceKind::kXor) {
      total = total != next;
    } else if (kind == ReduceKind::kSum || kind == ReduceKind::kMax || kind == ReduceKind::kOr) {
      total = total || next;
    } else {
      total = total && next;
    }
  }
  out[to] = total ? 1 : 0;
}

}  // namespace

const std::vector<ElementType>& ReducibleTypes() {
  using E = ElementType;
  static const std::vector<E> kTypes = {
      E::kPred,       E::kS1,         E::kU1,     E::kS2,     E::kS4,       E::kS8,
      E::kS16,        E::kS32,        E::kS64,    E::kU2,     E::kU4,       E::kU8,
      E::kU16,        E::kU32,        E::kU64,    E::kF16,    E::kBF16,     E::kF32,
      E::kF64,        E::kC64,        E::kC128,   E::kF8E5M2, E::kF8E4M3FN, E::kF8E4M3B11FNUZ,
      E::kF8E5M2FNUZ, E::kF8E4M3FNUZ, E::kF8E4M3, E::kF8E3M4, E::kF4E2M1FN, E::kF6E3M2FN,
      E::kF6E2M3FN};
  return kTypes;
}

const std::vector<ReduceKind>& AllKinds() {
  static const std::vector<ReduceKind> kKinds = {
      ReduceKind::kSum, ReduceKind::kProduct, ReduceKind::kMax, ReduceKind::kMin,
      ReduceKind::kAnd, ReduceKind::kOr,      ReduceKind::kXor};
  return kKinds;
}

Bytes RawData(int rank, uint32_t seed, int64_t bytes) {
  std::mt19937_64 random(seed * 1000003u + rank);
  Bytes data(bytes);
  for (int64_t i = 0; i < bytes; i += 8) {
    const uint64_t word = random();
    std::memcpy(data.data() + i, &word, std::min<int64_t>(8, bytes - i));
  }
  return data;
}

static bool exact_data = false;
void SetExactData(bool exact) { exact_data = exact; }

Bytes Data(int rank, uint32_t seed, ElementType type, int64_t count) {
  const int width = ElementTypeBytes(type);
  Bytes data = RawData(rank, seed, count * width);
  std::mt19937 random(seed * 7919u + rank);
  const auto real = [&]() -> double {
    if (exact_data) return static_cast<double>(random() % 4) - 1;
    const double value = static_cast<double>(random()) / 4294967296.0 - 0.5;
    return std::ldexp(value, static_cast<int>(random() % 8) - 3);
  };
  if (type == ElementType::kPred) {
    for (unsigned char& b : data) b &= 1;
  } else if (IsInteger(type) && ElementTypeBits(type) < 8) {
    for (int64_t i = 0; i < count; ++i) {
      SaveInteger(data, type, i, Wrap(data[i], ElementTypeBits(type), IsSignedInteger(type)));
    }
  } else if (type == ElementType::kF32 || type == ElementType::kC64) {
    for (int64_t i = 0; i < count * width / 4; ++i) Save(data, i, static_cast<float>(real()));
  } else if (type == ElementType::kF64 || type == ElementType::kC128) {
    for (int64_t i = 0; i < count * width / 8; ++i) Save(data, i, real());
  } else if (IsNarrowFloat(type)) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(real());
    StoreFloats(type, values.data(), count, data.data());
  }
  return data;
}

Bytes ReferenceReduce(ReduceKind kind, ElementType type, const std::vector<Bytes>& inputs,
                      int64_t first, int64_t count) {
  Bytes out(count * ElementTypeBytes(type));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = first + i;
    if (type == ElementType::kPred) {
      ReducePred(kind, inputs, at, out, i);
    } else if (IsInteger(type)) {
      ReduceInteger(kind, type, inputs, at, out, i);
    } else if (type == ElementType::kF32) {
      ReduceFloats<float>(kind, inputs, at, out, i);
    } else if (type == ElementType::kF64) {
      ReduceFloats<double>(kind, inputs, at, out, i);
    } else if (type == ElementType::kC64) {
      ReduceComplex<float>(kind, inputs, at, out, i);
    } else if (type == ElementType::kC128) {
      ReduceComplex<double>(kind, inputs, at, out, i);
    } else {
      SHARDCALL_CHECK(IsNarrowFloat(type));
      ReduceNarrow(kind, type, inputs, at, out, i);
    }
  }
  return out;
}

}  // namespace shardcall::testing
