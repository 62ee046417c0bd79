// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "shardcall/kernels/host/arguments.h"
#include "shardcall/kernels/host/element_io.h"
#include "shardcall/kernels/host/gemm.h"
#include "shardcall/kernels/host/kernels.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// A matrix as stored, row-major with `width` columns, and whether its transpose is meant.
template <typename T>
struct Matrix {
  const T* data;
  int64_t width;
  bool transposed;
  Matrix Transposed() const { return {data, width, !transposed}; }
};

// c[rows, columns] = alpha * x * y, where x is [rows, inner].
template <typename T>
void Product(T alpha, const Matrix<T>& x, const Matrix<T>& y, int64_t rows, int64_t columns,
             int64_t inner, T* c) {
  const auto op = [](const Matrix<T>& m) {
    return m.transposed ? BlasOp::kTranspose : BlasOp::kNone;
  };
  BlasGemm(op(x), op(y), rows, columns, inner, alpha, x.data, x.width, y.data, y.width, T(0), c,
           columns);
}

// The gradient of op(a) is alpha * dd * op(b)^T, that of op(b) is alpha * op(a)^T * dd. The
// gradient of a transposed matrix is the transpose of that.
template <typename T>
void Run(const GemmCall& call, absl::Span<const BufferView> operands,
         absl::Span<const BufferView> results) {
  const int64_t m = call.m, n = call.n, k = call.k;
  const bool ta = call.op_a != BlasOp::kNone, tb = call.op_b != BlasOp::kNone;
  std::unique_ptr<T[]> dd(new T[m * n + 1]), a(new T[m * k + 1]), b(new T[k * n + 1]),
      da(new T[m * k + 1]), db(new T[k * n + 1]);
  auto at = [](const BufferView& buffer, int64_t element) {
    return static_cast<char*>(buffer.data) + element * ElementTypeBytes(buffer.type);
  };
  const T alpha = static_cast<T>(call.alpha), beta = static_cast<T>(call.beta);
  for (int64_t i = 0; i < call.batch; ++i) {
    LoadElements(operands[0].type, at(operands[0], i * m * n), m * n, dd.get());
    LoadElements(operands[1].type, at(operands[1], i * m * k), m * k, a.get());
    LoadElements(operands[2].type, at(operands[2], i * k * n), k * n, b.get());
    const Matrix<T> d = {dd.get(), n, false};
    const Matrix<T> op_a = {a.get(), ta ? m : k, ta}, op_b = {b.get(), tb ? k : n, tb};
    if (ta) {
      Product(alpha, op_b, d.Transposed(), k, m, n, da.get());
    } else {
      Product(alpha, d, op_b.Transposed(), m, k, n, da.get());
    }
    if (tb) {
      Product(alpha, d.Transposed(), op_a, n, k, m, db.get());
    } else {
      Product(alpha, op_a.Transposed(), d, k, n, m, db.get());
    }
    StoreElements(results[0].type, da.get(), m * k, at(results[0], i * m * k));
    StoreElements(results[1].type, db.get(), k * n, at(results[1], i * k * n));
    if (results.size() < 3) continue;
    for (int64_t e = 0; e < m * n; ++e) dd[e] = beta == 0 ? T(0) : beta * dd[e];
    StoreElements(results[2].type, dd.get(), m * n, at(results[2], i * m * n));
  }
}

}  // namespace

absl::Status GemmBwd(const HandlerContext& context, absl::Span<const BufferView> operands,
                     absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"dd", "a", "b"}, {"da", "db", "dc"}, 0, 1);
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  const GemmPlaces places = {Operand(1), Operand(2), Result(2), Operand(0), results.size() > 2};
  SHARDCALL_ASSIGN_OR_RETURN(const GemmCall call, CheckGemm(context, args, kFloatTypes, places));
  for (int k : {0, 1}) {
    SHARDCALL_RETURN_IF_ERROR(args.CheckType(Result(k), {operands[k + 1].type}));
    SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Result(k), operands[k + 1].dims));
  }
  if (operands[1].type == ElementType::kF64) {
    Run<double>(call, operands, results);
  } else {
    Run<float>(call, operands, results);
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
