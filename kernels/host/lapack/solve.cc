// SPDX-License-Identifier: Apache-2.0
// Systems with triangular and tridiagonal matrices.
#include "shardcall/kernels/host/lapack/call.h"
#include "shardcall/kernels/host/lapack/fortran.h"
#include "shardcall/kernels/host/lapack/targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace lapack {

using Views = absl::Span<const BufferView>;

template <typename T>
absl::Status Trsm(const HandlerContext& context, Views operands, Views results) {
  Call call(context, operands, results, {"a", "b"}, {"x"});
  SHARDCALL_RETURN_IF_ERROR(call.Begin(TypeOf<T>(), {"side", "uplo", "trans_x", "diag"}));
  SHARDCALL_RETURN_IF_ERROR(call.CheckSquare());
  SHARDCALL_ASSIGN_OR_RETURN(const char side, call.Letter("side", "LR"));
  SHARDCALL_ASSIGN_OR_RETURN(const char uplo, call.Letter("uplo", "LU"));
  SHARDCALL_ASSIGN_OR_RETURN(const char trans, call.Letter("trans_x", "NTC"));
  SHARDCALL_ASSIGN_OR_RETURN(const char diag, call.Letter("diag", "NU"));
  const CallArguments& args = call.args();
  SHARDCALL_RETURN_IF_ERROR(args.CheckLeastRank(Operand(1), 2));
  const std::vector<int64_t>& dims = args.operand(1).dims;
  const int64_t rows = dims[dims.size() - 2], columns = dims.back();
  if ((side == 'L' ? rows : columns) != call.rows()) {
    return args.ShapeError(Operand(1), side == 'L' ? "as many rows as a" : "as many columns as a");
  }
  SHARDCALL_RETURN_IF_ERROR(call.Check(Operand(1), TypeOf<T>(), {rows, columns}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(0), TypeOf<T>(), {rows, columns}));
  call.CopyOperand(1, 0);
  const int m = static_cast<int>(rows), n = static_cast<int>(columns);
  const int lda = AtLeastOne(call.rows()), ldb = AtLeastOne(m);
  const T one = 1;
  for (int64_t b = 0; b < call.batch(); ++b) {
    trsm(&side, &uplo, &trans, &diag, &m, &n, &one, call.At<T>(Operand(0), b), &lda,
         call.At<T>(Result(0), b), &ldb, 1, 1, 1, 1);
  }
  return absl::OkStatus();
}

// The diagonals are vectors, so the batch dimensions are taken from b, operand 3. dl[0] and du[n -
// 1] are not part of the matrix.
template <typename T>
absl::Status Gtsv(const HandlerContext& context, Views operands, Views results) {
  if (operands.size() != 4 || results.size() != 5) {
    const CallArguments args(context, operands, results, {"dl", "d", "du", "b"},
                             {"dl", "d", "du", "x", "info"});
    return args.CheckCounts();
  }
  const std::vector<BufferView> ordered = {operands[3], operands[0], operands[1], operands[2]};
  Call call(context, ordered, results, {"b", "dl", "d", "du"}, {"dl", "d", "du", "x", "info"});
  SHARDCALL_RETURN_IF_ERROR(call.Begin(TypeOf<T>(), {}));
  const int n = call.rows(), rhs = call.columns(), ldb = AtLeastOne(n);
  for (int k = 0; k < 3; ++k) {
    SHARDCALL_RETURN_IF_ERROR(call.Check(Operand(k + 1), TypeOf<T>(), {n}));
    SHARDCALL_RETURN_IF_ERROR(call.Check(Result(k), TypeOf<T>(), {n}));
  }
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(3), TypeOf<T>(), {n, rhs}));
  SHARDCALL_RETURN_IF_ERROR(call.Check(Result(4), ElementType::kS32, {}));
  for (int k = 0; k < 3; ++k) call.CopyOperand(k + 1, k);
  call.CopyOperand(0, 3);
  for (int64_t b = 0; b < call.batch(); ++b) {
    T* lower = call.At<T>(Result(0), b);
    gtsv(&n, &rhs, n > 0 ? lower + 1 : lower, call.At<T>(Result(1), b), call.At<T>(Result(2), b),
         call.At<T>(Result(3), b), &ldb, call.At<int>(Result(4), b));
  }
  return absl::OkStatus();
}

#define SHARDCALL_INSTANTIATE(l, T, R)                                        \
  template absl::Status Trsm<T>(const HandlerContext& context, Views, Views); \
  template absl::Status Gtsv<T>(const HandlerContext& context, Views, Views);
SHARDCALL_LAPACK_TYPES(SHARDCALL_INSTANTIATE)
#undef SHARDCALL_INSTANTIATE

}  // namespace lapack
}  // namespace internal
}  // namespace shardcall
