// SPDX-License-Identifier: Apache-2.0
// Eigenvalues of symmetric and of general matrices, and the Schur decomposition.
#include <cmath>
#include <limits>

#include "shardcall/kernels/host/lapack/call.h"
#include "shardcall/kernels/host/lapack/fortran.h"
#include "shardcall/kernels/host/lapack/targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace lapack {
namespace {

using Views = absl::Span<const BufferView>;
template <typename T>
using Complex = std::complex<Real<T>>;

// LAPACK returns the vectors of a conjugate pair as (re, im) in two adjacent columns.
template <typename T>
void UnpackPairs(int n, const T* imaginary, const T* packed, std::complex<T>* out) {
  const int64_t rows = n;
  for (int64_t j = 0; j < rows; ++j) {
    const T* column = packed + j * rows;
    const bool pair = imaginary[j] != 0 && j + 1 < rows;
    for (int64_t i = 0; i < rows; ++i) {
      const T re = column[i], im = pair ? column[rows + i] : T(0);
      out[j * rows + i] = {re, im};
      if (pair) out[(j + 1) * rows + i] = {re, -im};
    }
    if (pair) ++j;
  }
}

// Whether the triangle of a matrix that a call reads is finite. What is not stays in OpenBLAS's own
// memory, where later calls of any thread multiply it by zero in place of overwriting it.
template <typename T>
bool TriangleIsFinite(char uplo, int n, const T* a) {
  for (int64_t j = 0; j < n; ++j) {
    const int64_t first = uplo == 'L' ? j : 0, count = uplo == 'L' ? n - j : j + 1;
    if (!AllFinite(a + j * n + first, count)) return false;
  }
  return true;
}

}  // namespace

template <typename T>
absl::Status Syevd(const HandlerContext& context, Views operands, Views results) {
  Call call(context, operands, results, {"a"}, {"vectors", "values", "info"});
  SHARDCALL_RETURN_IF_ERROR(call.Begin(TypeOf<T>(), {"mode", "uplo"}));
  SHARDCALL_RETURN_IF_ERROR(call.CheckSquare());
  SHARDCALL_ASSIGN_OR_RETURN(const char job, call.Letter("mode", "VN"));
  SHARDCALL_ASSIGN_OR_RETURN(const char uplo, call.Letter("uplo", "LU"));
  const int n = call.rows(), lda = AtLeastOne(n);
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(0), TypeOf<T>(), {n, n}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(1), TypeOf<Real<T>>(), {n}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(2), ElementType::kS32, {}));
  call.CopyOperand(0, 0);
  auto run = [&](T* a, Real<T>* w, T* work, int size, Real<T>* reals, int rsize, int* integers,
                 int isize, int* info) {
    if constexpr (kIsComplex<T>) {
      syevd(&job, &uplo, &n, a, &lda, w, work, &size, reals, &rsize, integers, &isize, info, 1, 1);
    } else {
      syevd(&job, &uplo, &n, a, &lda, w, work, &size, integers, &isize, info, 1, 1);
    }
  };
  T answer = {};
  Real<T> reals_answer = 1;
  int integers_answer = 1, info = 0;
  run(nullptr, nullptr, &answer, -1, &reals_answer, -1, &integers_answer, -1, &info);
  std::vector<T> work(WorkSize(answer));
  std::vector<Real<T>> reals(WorkSize(reals_answer));
  std::vector<int> integers(AtLeastOne(integers_answer));
  constexpr Real<T> kNan = std::numeric_limits<Real<T>>::quiet_NaN();
  for (int64_t b = 0; b < call.batch(); ++b) {
    if (!TriangleIsFinite(uplo, n, call.At<T>(Result(0), b))) {
      Fill(call, Result(0), b, T(kNan));
      Fill(call, Result(1), b, kNan);
      *call.At<int>(Result(2), b) = 0;
      continue;
    }
    run(call.At<T>(Result(0), b), call.At<Real<T>>(Result(1), b), work.data(),
        static_cast<int>(work.size()), reals.data(), static_cast<int>(reals.size()),
        integers.data(), static_cast<int>(integers.size()), call.At<int>(Result(2), b));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Geev(const HandlerContext& context, Views operands, Views results) {
  constexpr int kParts = kIsComplex<T> ? 1 : 2;  // values as one result or two
  const absl::string_view names[] = {"w", "w", "vl", "vr", "info"};
  Call call(context, operands, results, {"a"}, absl::MakeSpan(names).subspan(2 - kParts));
  SHARDCALL_RETURN_IF_ERROR(call.Begin(TypeOf<T>(), {"compute_left", "compute_right"}));
  SHARDCALL_RETURN_IF_ERROR(call.CheckSquare());
  SHARDCALL_ASSIGN_OR_RETURN(const char left, call.Letter("compute_left", "VN"));
  SHARDCALL_ASSIGN_OR_RETURN(const char right, call.Letter("compute_right", "VN"));
  const int n = call.rows(), lda = AtLeastOne(n);
  for (int k = 0; k < kParts; ++k) {
    SHARDCALL_RETURN_IF_ERROR(call.Check(Result(k), TypeOf<T>(), {n}));
  }
  for (int k = kParts; k < kParts + 2; ++k) {
    SHARDCALL_RETURN_IF_ERROR(call.Check(Result(k), TypeOf<Complex<T>>(), {n, n}));
  }
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(kParts + 2), ElementType::kS32, {}));
  const int64_t size_of_matrix = static_cast<int64_t>(n) * n;
  std::vector<T> a(size_of_matrix), vl(size_of_matrix), vr(size_of_matrix);
  std::vector<Real<T>> reals(2 * static_cast<size_t>(n));
  auto run = [&](int64_t b, T* work, int size, int* info) {
    T* w = call.batch() == 0 ? nullptr : call.At<T>(Result(0), b);
    if constexpr (kIsComplex<T>) {
      geev(&left, &right, &n, a.data(), &lda, w, vl.data(), &lda, vr.data(), &lda, work, &size,
           reals.data(), info, 1, 1);
    } else {
      T* wi = call.batch() == 0 ? nullptr : call.At<T>(Result(1), b);
      geev(&left, &right, &n, a.data(), &lda, w, wi, vl.data(), &lda, vr.data(), &lda, work, &size,
           info, 1, 1);
    }
  };
  int info = 0;
  T answer = {};
  run(0, &answer, -1, &info);
  std::vector<T> work(WorkSize(answer));
  for (int64_t b = 0; b < call.batch(); ++b) {
    const T* from = call.At<T>(Operand(0), b);
    a.assign(from, from + size_of_matrix);
    int* status = call.At<int>(Result(kParts + 2), b);
    const bool finite = AllFinite(from, size_of_matrix);
    *status = -4;
    if (finite) run(b, work.data(), static_cast<int>(work.size()), status);
    const Real<T> nan = std::numeric_limits<Real<T>>::quiet_NaN();
    for (int k = 0; k < kParts && !finite; ++k) Fill(call, Result(k), b, T(nan));
    for (int side = 0; side < 2; ++side) {
      const ArgumentPlace place = Result(kParts + side);
      if (!finite || (side == 0 ? left : right) == 'N') {
        Fill(call, place, b, Complex<T>(finite ? 0 : nan));
        continue;
      }
      const T* packed = side == 0 ? vl.data() : vr.data();
      Complex<T>* to = call.At<Complex<T>>(place, b);
      if constexpr (kIsComplex<T>) {
        for (int64_t i = 0; i < size_of_matrix; ++i) to[i] = packed[i];
      } else {
        UnpackPairs(n, call.At<T>(Result(1), b), packed, to);
      }
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Gees(const HandlerContext& context, Views operands, Views results) {
  constexpr int kParts = kIsComplex<T> ? 1 : 2;
  const absl::string_view real_names[] = {"form", "vectors", "wr", "wi", "selected", "info"};
  const absl::string_view complex_names[] = {"form", "vectors", "w", "selected", "info"};
  Call call(context, operands, results, {"a"},
            kIsComplex<T> ? Call::Names(complex_names) : Call::Names(real_names));
  SHARDCALL_RETURN_IF_ERROR(call.Begin(TypeOf<T>(), {"mode", "sort"}));
  SHARDCALL_RETURN_IF_ERROR(call.CheckSquare());
  SHARDCALL_ASSIGN_OR_RETURN(const char job, call.Letter("mode", "VN"));
  // Sorting needs a selection function, which a call cannot pass.
  SHARDCALL_ASSIGN_OR_RETURN(const char sort, call.Letter("sort", "N"));
  const int n = call.rows(), lda = AtLeastOne(n);
  for (int k = 0; k < 2; ++k) {
    SHARDCALL_RETURN_IF_ERROR(call.Check(Result(k), TypeOf<T>(), {n, n}));
  }
  for (int k = 2; k < 2 + kParts; ++k) {
    SHARDCALL_RETURN_IF_ERROR(call.Check(Result(k), TypeOf<T>(), {n}));
  }
  const int selected = 2 + kParts;
  for (int k = selected; k < selected + 2; ++k) {
    SHARDCALL_RETURN_IF_ERROR(call.Check(Result(k), ElementType::kS32, {}));
  }
  call.CopyOperand(0, 0);
  std::vector<Real<T>> reals(AtLeastOne(n));
  std::vector<int> flags(AtLeastOne(n));
  auto run = [&](int64_t b, T* work, int size, int* sdim, int* info) {
    const bool none = call.batch() == 0;
    T* a = none ? nullptr : call.At<T>(Result(0), b);
    T* vs = none ? nullptr : call.At<T>(Result(1), b);
    T* w = none ? nullptr : call.At<T>(Result(2), b);
    if constexpr (kIsComplex<T>) {
      gees(&job, &sort, nullptr, &n, a, &lda, sdim, w, vs, &lda, work, &size, reals.data(),
           flags.data(), info, 1, 1);
    } else {
      T* wi = none ? nullptr : call.At<T>(Result(3), b);
      gees(&job, &sort, nullptr, &n, a, &lda, sdim, w, wi, vs, &lda, work, &size, flags.data(),
           info, 1, 1);
    }
  };
  int info = 0, sdim = 0;
  T answer = {};
  run(0, &answer, -1, &sdim, &info);
  std::vector<T> work(WorkSize(answer));
  for (int64_t b = 0; b < call.batch(); ++b) {
    int* status = call.At<int>(Result(selected + 1), b);
    Fill(call, Result(selected), b, 0);
    if (job == 'N') Fill(call, Result(1), b, T(0));
    if (!AllFinite(call.At<T>(Result(0), b), static_cast<int64_t>(n) * n)) {
      const Real<T> nan = std::numeric_limits<Real<T>>::quiet_NaN();
      for (int k = 0; k < selected; ++k) Fill(call, Result(k), b, T(nan));
      *status = -4;
      continue;
    }
    run(b, work.data(), static_cast<int>(work.size()), call.At<int>(Result(selected), b), status);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Gehrd(const HandlerContext& context, Views operands, Views results) {
  Call call(context, operands, results, {"a"}, {"form", "tau", "info"});
  SHARDCALL_RETURN_IF_ERROR(call.Begin(TypeOf<T>(), {"low", "high"}));
  SHARDCALL_RETURN_IF_ERROR(call.CheckSquare());
  const int n = call.rows(), lda = AtLeastOne(n);
  SHARDCALL_ASSIGN_OR_RETURN(const int low, call.Int("low", 1));
  SHARDCALL_ASSIGN_OR_RETURN(const int high, call.Int("high", n));
  if (n > 0 && (low < 1 || low > high || high > n)) {
    return call.args().AttributeError("low", "1 <= low <= high <= n", std::to_string(low));
  }
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(0), TypeOf<T>(), {n, n}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(1), TypeOf<T>(), {n > 0 ? n - 1 : 0}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(2), ElementType::kS32, {}));
  call.CopyOperand(0, 0);
  int info = 0, size = -1;
  T answer = {};
  gehrd(&n, &low, &high, nullptr, &lda, nullptr, &answer, &size, &info);
  size = WorkSize(answer);
  std::vector<T> work(size);
  for (int64_t b = 0; b < call.batch(); ++b) {
    gehrd(&n, &low, &high, call.At<T>(Result(0), b), &lda, call.At<T>(Result(1), b), work.data(),
          &size, call.At<int>(Result(2), b));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Sytrd(const HandlerContext& context, Views operands, Views results) {
  Call call(context, operands, results, {"a"}, {"form", "d", "e", "tau", "info"});
  SHARDCALL_RETURN_IF_ERROR(call.Begin(TypeOf<T>(), {"uplo"}));
  SHARDCALL_RETURN_IF_ERROR(call.CheckSquare());
  SHARDCALL_ASSIGN_OR_RETURN(const char uplo, call.Letter("uplo", "LU"));
  const int n = call.rows(), lda = AtLeastOne(n);
  const int64_t off = n > 0 ? n - 1 : 0;
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(0), TypeOf<T>(), {n, n}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(1), TypeOf<Real<T>>(), {n}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(2), TypeOf<Real<T>>(), {off}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(3), TypeOf<T>(), {off}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(4), ElementType::kS32, {}));
  call.CopyOperand(0, 0);
  int info = 0, size = -1;
  T answer = {};
  sytrd(&uplo, &n, nullptr, &lda, nullptr, nullptr, nullptr, &answer, &size, &info, 1);
  size = WorkSize(answer);
  std::vector<T> work(size);
  constexpr Real<T> kNan = std::numeric_limits<Real<T>>::quiet_NaN();
  for (int64_t b = 0; b < call.batch(); ++b) {
    if (!TriangleIsFinite(uplo, n, call.At<T>(Result(0), b))) {
      for (int k : {0, 3}) Fill(call, Result(k), b, T(kNan));
      for (int k : {1, 2}) Fill(call, Result(k), b, kNan);
      *call.At<int>(Result(4), b) = 0;
      continue;
    }
    sytrd(&uplo, &n, call.At<T>(Result(0), b), &lda, call.At<Real<T>>(Result(1), b),
          call.At<Real<T>>(Result(2), b), call.At<T>(Result(3), b), work.data(), &size,
          call.At<int>(Result(4), b), 1);
  }
  return absl::OkStatus();
}

#define SHARDCALL_INSTANTIATE(l, T, R)                                         \
  template absl::Status Syevd<T>(const HandlerContext& context, Views, Views); \
  template absl::Status Geev<T>(const HandlerContext& context, Views, Views);  \
  template absl::Status Gees<T>(const HandlerContext& context, Views, Views);  \
  template absl::Status Gehrd<T>(const HandlerContext& context, Views, Views); \
  template absl::Status Sytrd<T>(const HandlerContext& context, Views, Views);
SHARDCALL_LAPACK_TYPES(SHARDCALL_INSTANTIATE)
#undef SHARDCALL_INSTANTIATE

}  // namespace lapack
}  // namespace internal
}  // namespace shardcall
