// SPDX-License-Identifier: Apache-2.0
// Singular values, by divide and conquer (gesdd) and by QR steps (gesvd).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "shardcall/kernels/host/lapack/call.h"
#include "shardcall/kernels/host/lapack/fortran.h"
#include "shardcall/kernels/host/lapack/targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace lapack {
namespace {

using Views = absl::Span<const BufferView>;

struct SvdShape {
  char job = 'N';
  int m = 0, n = 0, lda = 1, ldu = 1, ldvt = 1;
  int64_t a_size = 0, u_size = 0, vt_size = 0;  // elements per matrix
};

// A copy of a matrix with extra room behind it: vectorised BLAS kernels read whole registers past
// the matrix, which may be past the end of a buffer.
template <typename T>
class WithRoom {
 public:
  WithRoom(T* matrix, int64_t size) : matrix_(matrix), copy_(size + kRoom) {
    std::copy_n(matrix, size, copy_.begin());
  }
  T* data() { return copy_.data(); }
  void CopyBack() { std::copy(copy_.begin(), copy_.end() - kRoom, matrix_); }

 private:
  static constexpr int64_t kRoom = 16;
  T* matrix_;
  std::vector<T> copy_;
};

// Checks the results of both targets (scratch of a's shape, s, u, vt, info).
template <typename T>
absl::StatusOr<SvdShape> BeginSvd(Call& call) {
  SHARDCALL_RETURN_IF_ERROR(call.Begin(TypeOf<T>(), {"mode"}));
  SvdShape shape;
  SHARDCALL_ASSIGN_OR_RETURN(shape.job, call.Letter("mode", "ASN"));
  shape.m = call.rows();
  shape.n = call.columns();
  const int64_t least = call.least();
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(0), TypeOf<T>(), {shape.m, shape.n}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(1), TypeOf<Real<T>>(), {least}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(4), ElementType::kS32, {}));
  const CallArguments& args = call.args();
  SHARDCALL_RETURN_IF_ERROR(args.CheckLeastRank(Result(2), 2));
  SHARDCALL_RETURN_IF_ERROR(args.CheckLeastRank(Result(3), 2));
  // Without vectors, u and vt are still results, of either extent.
  const int64_t columns = args.result(2).dims.back();
  const int64_t rows = args.result(3).dims[args.result(3).dims.size() - 2];
  if (shape.job == 'N') {
    if (columns != shape.m && columns != least) {
      return args.ShapeError(Result(2), "as many columns as rows, or as singular values");
    }
    if (rows != shape.n && rows != least) {
      return args.ShapeError(Result(3), "as many rows as columns, or as singular values");
    }
  }
  const bool all = shape.job == 'A';
  const int64_t u = shape.job == 'N' ? columns : all ? shape.m : least;
  const int64_t v = shape.job == 'N' ? rows : all ? shape.n : least;
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(2), TypeOf<T>(), {shape.m, u}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(3), TypeOf<T>(), {v, shape.n}));
  shape.lda = shape.ldu = AtLeastOne(shape.m);
  shape.ldvt = AtLeastOne(static_cast<int>(v));
  shape.a_size = int64_t{shape.m} * shape.n;
  shape.u_size = shape.m * u;
  shape.vt_size = v * shape.n;
  call.CopyOperand(0, 0);
  return shape;
}

// Calls `run(a, s, u, vt, work, size, info)` per matrix, after a query with null buffers and size
// -1. Matrices with NaN or infinity are skipped: they have no singular values.
template <typename T, typename Run>
absl::Status ForEach(const Call& call, const SvdShape& shape, Run run) {
  int info = 0;
  T answer = {};
  run(nullptr, nullptr, nullptr, nullptr, &answer, -1, &info);
  std::vector<T> work(WorkSize(answer));
  for (int64_t b = 0; b < call.batch(); ++b) {
    T* a = call.At<T>(Result(0), b);
    int* status = call.At<int>(Result(4), b);
    *status = 0;
    if (shape.job == 'N' || call.least() == 0) {
      Fill(call, Result(2), b, T(0));
      Fill(call, Result(3), b, T(0));
    }
    if (!AllFinite(a, shape.a_size)) {
      const Real<T> nan = std::numeric_limits<Real<T>>::quiet_NaN();
      Fill(call, Result(1), b, nan);
      Fill(call, Result(2), b, T(nan));
      Fill(call, Result(3), b, T(nan));
      *status = -4;
      continue;
    }
    Real<T>* const s = call.At<Real<T>>(Result(1), b);
    T* const u = call.At<T>(Result(2), b);
    T* const vt = call.At<T>(Result(3), b);
    if (b + 1 < call.batch()) {
      run(a, s, u, vt, work.data(), static_cast<int>(work.size()), status);
      continue;
    }
    WithRoom<T> last[] = {{a, shape.a_size}, {u, shape.u_size}, {vt, shape.vt_size}};
    run(last[0].data(), s, last[1].data(), last[2].data(), work.data(),
        static_cast<int>(work.size()), status);
    for (WithRoom<T>& matrix : last) matrix.CopyBack();
  }
  return absl::OkStatus();
}

}  // namespace

template <typename T>
absl::Status Gesdd(const HandlerContext& context, Views operands, Views results) {
  Call call(context, operands, results, {"a"}, {"scratch", "s", "u", "vt", "info"});
  SHARDCALL_ASSIGN_OR_RETURN(const SvdShape shape, BeginSvd<T>(call));
  const int64_t least = call.least(), most = std::max(shape.m, shape.n);
  std::vector<int> integers(static_cast<size_t>(std::max<int64_t>(1, 8 * least)));
  std::vector<Real<T>> reals;
  if (kIsComplex<T>) {
    // The larger of LAPACK's bounds for the two algorithms of a job.
    const int64_t size = shape.job == 'N' ? 7 * least
                                          : std::max(5 * least * least + 5 * least,
                                                     2 * most * least + 2 * least * least + least);
    reals.resize(static_cast<size_t>(std::max<int64_t>(1, size)));
  }
  return ForEach<T>(call, shape, [&](T* a, Real<T>* s, T* u, T* vt, T* work, int size, int* info) {
    if constexpr (kIsComplex<T>) {
      gesdd(&shape.job, &shape.m, &shape.n, a, &shape.lda, s, u, &shape.ldu, vt, &shape.ldvt, work,
            &size, reals.data(), integers.data(), info, 1);
    } else {
      gesdd(&shape.job, &shape.m, &shape.n, a, &shape.lda, s, u, &shape.ldu, vt, &shape.ldvt, work,
            &size, integers.data(), info, 1);
    }
  });
}

template <typename T>
absl::Status Gesvd(const HandlerContext& context, Views operands, Views results) {
  Call call(context, operands, results, {"a"}, {"scratch", "s", "u", "vt", "info"});
  SHARDCALL_ASSIGN_OR_RETURN(const SvdShape shape, BeginSvd<T>(call));
  std::vector<Real<T>> reals(5 * static_cast<size_t>(call.least()) + 1);
  return ForEach<T>(call, shape, [&](T* a, Real<T>* s, T* u, T* vt, T* work, int size, int* info) {
    if constexpr (kIsComplex<T>) {
      gesvd(&shape.job, &shape.job, &shape.m, &shape.n, a, &shape.lda, s, u, &shape.ldu, vt,
            &shape.ldvt, work, &size, reals.data(), info, 1, 1);
    } else {
      gesvd(&shape.job, &shape.job, &shape.m, &shape.n, a, &shape.lda, s, u, &shape.ldu, vt,
            &shape.ldvt, work, &size, info, 1, 1);
    }
  });
}

#define SHARDCALL_INSTANTIATE(l, T, R)                                         \
  template absl::Status Gesdd<T>(const HandlerContext& context, Views, Views); \
  template absl::Status Gesvd<T>(const HandlerContext& context, Views, Views);
SHARDCALL_LAPACK_TYPES(SHARDCALL_INSTANTIATE)
#undef SHARDCALL_INSTANTIATE

}  // namespace lapack
}  // namespace internal
}  // namespace shardcall
