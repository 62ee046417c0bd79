// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/host/matmul.h"

#include <algorithm>
#include <complex>
#include <memory>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/host/element_io.h"
#include "shardcall/kernels/math/blas.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// Smaller products are faster without a BLAS. Only k and n count, so that the computation of a row
// does not depend on the number of rows.
constexpr int64_t kSmallPanel = 64;

// c += a b for row-major a [m, k] and b [k, n].
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

// Transposes [rows, cols] to [cols, rows].
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

// The number of elements that are converted at a time: allocating whole converted arrays costs more
// than the conversion.
constexpr int64_t kPanelElements = 1 << 18;

// One operand for all batches in T, the type of the product: the caller's own memory if it has that
// type, else converted one part at a time.
template <typename T>
class OperandReader {
 public:
  // `rows` by `cols` elements in each batch; at most `most_rows` or `most_cols` of them are read at
  // a time.
  OperandReader(ElementType type, const void* data, int64_t rows, int64_t cols, int64_t most_rows,
                int64_t most_cols)
      : type_(type), data_(static_cast<const char*>(data)), rows_(rows), cols_(cols) {
    if (!IsStoredAs<T>(type)) buffer_.reset(new T[std::max<int64_t>(most_rows * most_cols, 1)]);
  }
  // The part of batch i from (row, col) on; sets *ld to the distance between its rows.
  const T* Part(int64_t i, int64_t row, int64_t rows, int64_t col, int64_t cols, int64_t* ld) {
    const int64_t bytes = ElementTypeBytes(type_);
    const char* from = data_ + ((i * rows_ + row) * cols_ + col) * bytes;
    *ld = buffer_ == nullptr ? cols_ : cols;
    if (buffer_ == nullptr) return reinterpret_cast<const T*>(from);
    if (cols == cols_) {
      LoadElements(type_, from, rows * cols, buffer_.get());
    } else {
      for (int64_t r = 0; r < rows; ++r) {
        LoadElements(type_, from + r * cols_ * bytes, cols, buffer_.get() + r * cols);
      }
    }
    return buffer_.get();
  }

 private:
  const ElementType type_;
  const char* const data_;
  const int64_t rows_, cols_;
  std::unique_ptr<T[]> buffer_;
};

// The number of rows of the product that are computed at a time: all if nothing is converted.
int64_t PanelRows(const MatmulShape& s, bool a_stored, bool c_stored) {
  if (a_stored && c_stored) return s.m;
  const int64_t row = std::max({a_stored ? 1 : s.k, c_stored ? 1 : s.n, int64_t{1}});
  return std::min(s.m, std::max<int64_t>(kPanelElements / row, 64));
}

template <typename T>
void Run(const MatmulShape& s, ElementType a_type, const void* a, ElementType b_type, const void* b,
         ElementType c_type, void* c) {
  const int64_t m = s.m, n = s.n, k = s.k;
  const bool loops = !kHasBlas<T> || k * n <= kSmallPanel;
  const bool direct = IsStoredAs<T>(c_type);
  const int64_t panel = loops ? m : PanelRows(s, IsStoredAs<T>(a_type), direct);
  OperandReader<T> a_reader(a_type, a, s.transpose_a ? k : m, s.transpose_a ? m : k,
                            s.transpose_a ? k : panel, s.transpose_a ? panel : k);
  const int64_t b_rows = s.transpose_b ? n : k, b_cols = s.transpose_b ? k : n;
  OperandReader<T> b_reader(b_type, b, b_rows, b_cols, b_rows, b_cols);
  std::unique_ptr<T[]> a_turned, b_turned, sums;
  if (loops && s.transpose_a) a_turned.reset(new T[m * k + 1]);
  if (loops && s.transpose_b) b_turned.reset(new T[k * n + 1]);
  if (!direct) sums.reset(new T[panel * n + 1]);
  for (int64_t i = 0; i < s.batch; ++i) {
    int64_t lda = 0, ldb = 0;
    const T* bi = b_reader.Part(i, 0, b_rows, 0, b_cols, &ldb);
    if (loops && s.transpose_b) {
      Transpose(n, k, bi, b_turned.get());
      bi = b_turned.get();
    }
    for (int64_t row = 0; row < m; row += panel) {
      const int64_t rows = std::min(panel, m - row);
      const T* ai = s.transpose_a ? a_reader.Part(i, 0, k, row, rows, &lda)
                                  : a_reader.Part(i, row, rows, 0, k, &lda);
      char* to = static_cast<char*>(c) + (i * m + row) * n * ElementTypeBytes(c_type);
      T* out = direct ? reinterpret_cast<T*>(to) : sums.get();
      if (loops) {
        if (s.transpose_a) {
          Transpose(k, m, ai, a_turned.get());
          ai = a_turned.get();
        }
        std::fill(out, out + m * n, T());
        Loops(m, n, k, ai, bi, out);
      } else {
        if constexpr (kHasBlas<T>) {
          BlasGemm(s.transpose_a ? BlasOp::kTranspose : BlasOp::kNone,
                   s.transpose_b ? BlasOp::kTranspose : BlasOp::kNone, rows, n, k, T(1), ai, lda,
                   bi, ldb, T(0), out, n);
        }
      }
      if (!direct) StoreElements(c_type, out, rows * n, to);
    }
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
                                           " into ", ElementTypeName(result_type)),
                     .fix = "Convert the operands to one kind of type"});
  }
  if (std::max({shape.m, shape.n, shape.k}) > kMostBlasExtent) {
    return ToStatus({.code = "E133",
                     .message = "a matrix product is too large",
                     .expected = absl::StrCat("extents of at most ", kMostBlasExtent),
                     .found = absl::StrCat(shape.m, " by ", shape.k, " by ", shape.n),
                     .fix = "Cut the product into smaller ones"});
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
  // Sums modulo 2^64 or 2^32 are correct modulo every smaller width.
  if (ElementTypeBytes(result_type) == 8) return run(uint64_t());
  return run(uint32_t());
}

}  // namespace internal
}  // namespace shardcall
