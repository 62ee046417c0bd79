// SPDX-License-Identifier: Apache-2.0
// LU, QR and Cholesky factors, and products with a factor Q.
#include <algorithm>

#include "shardcall/kernels/host/lapack/call.h"
#include "shardcall/kernels/host/lapack/fortran.h"
#include "shardcall/kernels/host/lapack/targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace lapack {

using Views = absl::Span<const BufferView>;

template <typename T>
absl::Status Getrf(const HandlerContext& context, Views operands, Views results) {
  Call call(context, operands, results, {"a"}, {"lu", "pivots", "info"});
  SHARDCALL_RETURN_IF_ERROR(call.Begin(TypeOf<T>(), {}));
  const int m = call.rows(), n = call.columns(), lda = AtLeastOne(m);
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(0), TypeOf<T>(), {m, n}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(1), ElementType::kS32, {call.least()}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(2), ElementType::kS32, {}));
  call.CopyOperand(0, 0);
  for (int64_t b = 0; b < call.batch(); ++b) {
    getrf(&m, &n, call.At<T>(Result(0), b), &lda, call.At<int>(Result(1), b),
          call.At<int>(Result(2), b));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Geqrf(const HandlerContext& context, Views operands, Views results) {
  Call call(context, operands, results, {"a"}, {"qr", "tau"});
  SHARDCALL_RETURN_IF_ERROR(call.Begin(TypeOf<T>(), {}));
  const int m = call.rows(), n = call.columns(), lda = AtLeastOne(m);
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(0), TypeOf<T>(), {m, n}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(1), TypeOf<T>(), {call.least()}));
  call.CopyOperand(0, 0);
  int info = 0, size = -1;
  T answer = {};
  geqrf(&m, &n, nullptr, &lda, nullptr, &answer, &size, &info);
  size = WorkSize(answer);
  std::vector<T> work(size);
  for (int64_t b = 0; b < call.batch(); ++b) {
    geqrf(&m, &n, call.At<T>(Result(0), b), &lda, call.At<T>(Result(1), b), work.data(), &size,
          &info);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Geqp3(const HandlerContext& context, Views operands, Views results) {
  Call call(context, operands, results, {"a", "jpvt"}, {"qr", "jpvt", "tau"});
  SHARDCALL_RETURN_IF_ERROR(call.Begin(TypeOf<T>(), {}));
  const int m = call.rows(), n = call.columns(), lda = AtLeastOne(m);
  SHARDCALL_RETURN_IF_ERROR(call.Check(Operand(1), ElementType::kS32, {n}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(0), TypeOf<T>(), {m, n}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(1), ElementType::kS32, {n}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(2), TypeOf<T>(), {call.least()}));
  call.CopyOperand(0, 0);
  call.CopyOperand(1, 1);
  int info = 0;
  std::vector<Real<T>> parts(2 * static_cast<size_t>(n));
  auto run = [&](T* a, int* pivots, T* tau, T* work, int size) {
    if constexpr (kIsComplex<T>) {
      geqp3(&m, &n, a, &lda, pivots, tau, work, &size, parts.data(), &info);
    } else {
      geqp3(&m, &n, a, &lda, pivots, tau, work, &size, &info);
    }
  };
  T answer = {};
  run(nullptr, nullptr, nullptr, &answer, -1);
  std::vector<T> work(WorkSize(answer));
  for (int64_t b = 0; b < call.batch(); ++b) {
    run(call.At<T>(Result(0), b), call.At<int>(Result(1), b), call.At<T>(Result(2), b), work.data(),
        static_cast<int>(work.size()));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Orgqr(const HandlerContext& context, Views operands, Views results) {
  Call call(context, operands, results, {"a", "tau"}, {"q"});
  SHARDCALL_RETURN_IF_ERROR(call.Begin(TypeOf<T>(), {}));
  const int m = call.rows(), n = call.columns(), lda = AtLeastOne(m);
  if (n > m) return call.args().ShapeError(Operand(0), "no more columns than rows");
  const int64_t reflectors =
      call.args().operand(1).dims.empty() ? -1 : call.args().operand(1).dims.back();
  if (reflectors < 0 || reflectors > n) {
    return call.args().ShapeError(Operand(1), "at most one reflector per column of a");
  }
  const int k = static_cast<int>(reflectors);
  SHARDCALL_RETURN_IF_ERROR(call.Check(Operand(1), TypeOf<T>(), {k}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(0), TypeOf<T>(), {m, n}));
  call.CopyOperand(0, 0);
  int info = 0, size = -1;
  T answer = {};
  orgqr(&m, &n, &k, nullptr, &lda, nullptr, &answer, &size, &info);
  size = WorkSize(answer);
  std::vector<T> work(size);
  for (int64_t b = 0; b < call.batch(); ++b) {
    orgqr(&m, &n, &k, call.At<T>(Result(0), b), &lda, call.At<T>(Operand(1), b), work.data(), &size,
          &info);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Ormqr(const HandlerContext& context, Views operands, Views results) {
  Call call(context, operands, results, {"a", "tau", "c"}, {"product"});
  SHARDCALL_RETURN_IF_ERROR(call.Begin(TypeOf<T>(), {"left", "transpose"}));
  SHARDCALL_ASSIGN_OR_RETURN(const bool left, call.Bool("left"));
  SHARDCALL_ASSIGN_OR_RETURN(const bool transpose, call.Bool("transpose"));
  const CallArguments& args = call.args();
  SHARDCALL_RETURN_IF_ERROR(args.CheckLeastRank(Operand(2), 2));
  const std::vector<int64_t>& c = args.operand(2).dims;
  const int64_t rows = c[c.size() - 2], columns = c.back();
  const int order = call.rows(), k = call.columns();
  if (k > order || (left ? rows : columns) != order) {
    return args.ShapeError(Operand(2),
                           left ? "as many rows as a" : "as many columns as a has rows");
  }
  SHARDCALL_RETURN_IF_ERROR(call.Check(Operand(1), TypeOf<T>(), {k}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Operand(2), TypeOf<T>(), {rows, columns}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(0), TypeOf<T>(), {rows, columns}));
  call.CopyOperand(2, 0);
  const int m = static_cast<int>(rows), n = static_cast<int>(columns);
  const int lda = AtLeastOne(order), ldc = AtLeastOne(m);
  const char side = left ? 'L' : 'R', trans = !transpose ? 'N' : kIsComplex<T> ? 'C' : 'T';
  int info = 0, size = -1;
  T answer = {};
  ormqr(&side, &trans, &m, &n, &k, nullptr, &lda, nullptr, nullptr, &ldc, &answer, &size, &info, 1,
        1);
  size = WorkSize(answer);
  std::vector<T> work(size);
  for (int64_t b = 0; b < call.batch(); ++b) {
    ormqr(&side, &trans, &m, &n, &k, call.At<T>(Operand(0), b), &lda, call.At<T>(Operand(1), b),
          call.At<T>(Result(0), b), &ldc, work.data(), &size, &info, 1, 1);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Potrf(const HandlerContext& context, Views operands, Views results) {
  Call call(context, operands, results, {"a"}, {"factor", "info"});
  SHARDCALL_RETURN_IF_ERROR(call.Begin(TypeOf<T>(), {"uplo"}));
  SHARDCALL_RETURN_IF_ERROR(call.CheckSquare());
  SHARDCALL_ASSIGN_OR_RETURN(const char uplo, call.Letter("uplo", "LU"));
  const int n = call.rows(), lda = AtLeastOne(n);
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(0), TypeOf<T>(), {n, n}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(1), ElementType::kS32, {}));
  call.CopyOperand(0, 0);
  for (int64_t b = 0; b < call.batch(); ++b) {
    potrf(&uplo, &n, call.At<T>(Result(0), b), &lda, call.At<int>(Result(1), b), 1);
  }
  return absl::OkStatus();
}

#define SHARDCALL_INSTANTIATE(l, T, R)                                         \
  template absl::Status Getrf<T>(const HandlerContext& context, Views, Views); \
  template absl::Status Geqrf<T>(const HandlerContext& context, Views, Views); \
  template absl::Status Geqp3<T>(const HandlerContext& context, Views, Views); \
  template absl::Status Orgqr<T>(const HandlerContext& context, Views, Views); \
  template absl::Status Ormqr<T>(const HandlerContext& context, Views, Views); \
  template absl::Status Potrf<T>(const HandlerContext& context, Views, Views);
SHARDCALL_LAPACK_TYPES(SHARDCALL_INSTANTIATE)
#undef SHARDCALL_INSTANTIATE

}  // namespace lapack
}  // namespace internal
}  // namespace shardcall
