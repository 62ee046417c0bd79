// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/matmul.h"

#include <algorithm>
#include <complex>
#include <memory>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "kernels/host/blas.h"
#include "kernels/host/element_io.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

// Below this a call of a BLAS costs more than the product. It looks at k and n
// only, so that how a row is computed does not depend on the number of rows.
constexpr int64_t kSmallPanel = 64;

// c += a b for a row-major a [m, k] and b [k, n].
template <typename T>
void Loops(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < k; ++p) {
      const T factor = a[i * k + p];
      for (int64_t j = 0; j < n; ++j) {
        if constexpr (std::is_same_v<T, bool>)
          c[i * n + j] |= factor & b[p * n + j];
        else
          c[i * n + j] += factor * b[p * n + j];
      }
    }
  }
}

// [rows, cols] to [cols, rows].
template <typename T>
void Transpose(int64_t rows, int64_t cols, const T* from, T* to) {
  constexpr int64_t kTile = 32;
  for (int64_t i0 = 0; i0 < rows; i0 += kTile) {
    for (int64_t j0 = 0; j0 < cols; j0 += kTile) {
      for (int64_t i = i0; i < std::min(rows, i0 + kTile); ++i) {
        for (int64_t j = j0; j < std::min(cols, j0 + kTile); ++j)
          to[j * rows + i] = from[i * cols + j];
      }
    }
  }
}

template <typename T>
constexpr bool kHasBlas = !std::is_integral_v<T>;

// One operand of all batches in the type T that products are made in: the
// caller's own memory if it has that type, else converted, a batch at a time.
template <typename T>
class OperandReader {
 public:
  OperandReader(ElementType type, const void* data, int64_t count)
      : type_(type), data_(static_cast<const char*>(data)), count_(count) {
    if (!IsStoredAs<T>(type)) buffer_.reset(new T[std::max<int64_t>(count, 1)]);
  }
  const T* Batch(int64_t i) {
    const char* from = data_ + i * count_ * ElementTypeBytes(type_);
    if (buffer_ == nullptr) return reinterpret_cast<const T*>(from);
    LoadElements(type_, from, count_, buffer_.get());
    return buffer_.get();
  }

 private:
  const ElementType type_;
  const char* const data_;
  const int64_t count_;
  std::unique_ptr<T[]> buffer_;
};

template <typename T>
void Run(const MatmulShape& s, ElementType a_type, const void* a, ElementType b_type, const void* b,
         ElementType c_type, void* c) {
  const int64_t m = s.m, n = s.n, k = s.k;
  const bool loops = !kHasBlas<T> || k * n <= kSmallPanel;
  const bool direct = IsStoredAs<T>(c_type);
  OperandReader<T> a_reader(a_type, a, m * k), b_reader(b_type, b, k * n);
  std::unique_ptr<T[]> a_turned, b_turned, sums;
  if (loops && s.transpose_a) a_turned.reset(new T[m * k + 1]);
  if (loops && s.transpose_b) b_turned.reset(new T[k * n + 1]);
  if (!direct) sums.reset(new T[m * n + 1]);
  for (int64_t i = 0; i < s.batch; ++i) {
    char* to = static_cast<char*>(c) + i * m * n * ElementTypeBytes(c_type);
    T* out = direct ? reinterpret_cast<T*>(to) : sums.get();
    const T *ai = a_reader.Batch(i), *bi = b_reader.Batch(i);
    if (loops) {
      if (s.transpose_a) {
        Transpose(k, m, ai, a_turned.get());
        ai = a_turned.get();
      }
      if (s.transpose_b) {
        Transpose(n, k, bi, b_turned.get());
        bi = b_turned.get();
      }
      std::fill(out, out + m * n, T());
      Loops(m, n, k, ai, bi, out);
    } else {
      if constexpr (kHasBlas<T>) {
        BlasGemm(s.transpose_a ? BlasOp::kTranspose : BlasOp::kNone,
                 s.transpose_b ? BlasOp::kTranspose : BlasOp::kNone, m, n, k, T(1), ai,
                 s.transpose_a ? m : k, bi, s.transpose_b ? k : n, T(0), out, n);
      }
    }
    if (!direct) StoreElements(c_type, out, m * n, to);
  }
}

bool IsNumber(ElementType t) { return IsFloat(t) || IsInteger(t); }

}  // namespace

bool MatmulSupports(ElementType a, ElementType b, ElementType result) {
  if (IsComplex(result)) return (IsComplex(a) || IsNumber(a)) && (IsComplex(b) || IsNumber(b));
  if (IsFloat(result)) return IsNumber(a) && IsNumber(b);
  if (IsInteger(result)) return IsInteger(a) && IsInteger(b);
  return result == ElementType::kPred && a == result && b == result;
}

absl::Status Matmul(const MatmulShape& shape, ElementType a_type, const void* a, ElementType b_type,
                    const void* b, ElementType result_type, void* c) {
  if (!MatmulSupports(a_type, b_type, result_type)) {
    return ToStatus({.code = "E134",
                     .message = "a matrix product has element types that do not go together",
                     .expected = "floats, complex numbers, integers or pred throughout",
                     .found = absl::StrCat(ElementTypeName(a_type), " by ", ElementTypeName(b_type),
                                           " into ", ElementTypeName(result_type))});
  }
  if (std::max({shape.m, shape.n, shape.k}) > kMostBlasExtent) {
    return ToStatus({.code = "E133",
                     .message = "a matrix product is too large",
                     .expected = absl::StrCat("extents of at most ", kMostBlasExtent),
                     .found = absl::StrCat(shape.m, " by ", shape.k, " by ", shape.n)});
  }
  if (shape.batch == 0 || shape.m == 0 || shape.n == 0) return absl::OkStatus();
  auto any = [&](ElementType t) { return a_type == t || b_type == t || result_type == t; };
  auto run = [&](auto zero) {
    Run<decltype(zero)>(shape, a_type, a, b_type, b, result_type, c);
    return absl::OkStatus();
  };
  const bool wide = any(ElementType::kF64) || any(ElementType::kC128);
  if (IsComplex(result_type))
    return wide ? run(std::complex<double>()) : run(std::complex<float>());
  if (IsFloat(result_type)) return wide ? run(double()) : run(float());
  if (result_type == ElementType::kPred) return run(bool());
  // Sums modulo 2^64 or 2^32 give those of every narrower width.
  if (ElementTypeBytes(result_type) == 8) return run(uint64_t());
  return run(uint32_t());
}

}  // namespace shardcall
