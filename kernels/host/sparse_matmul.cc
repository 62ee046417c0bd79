// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <complex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/host/arguments.h"
#include "shardcall/kernels/host/element_io.h"
#include "shardcall/kernels/host/kernels.h"
#include "shardcall/kernels/host/sparse.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr ElementType kTypes[] = {
    ElementType::kF32,  ElementType::kBF16, ElementType::kF16, ElementType::kF64, ElementType::kC64,
    ElementType::kC128, ElementType::kS8,   ElementType::kS16, ElementType::kS32, ElementType::kS64,
    ElementType::kU8,   ElementType::kU16,  ElementType::kU32, ElementType::kU64};

template <typename T>
void Run(absl::Span<const BufferView> operands, const BufferView& y) {
  const BufferView &values = operands[0], &b = operands[3];
  const auto* columns = static_cast<const int32_t*>(operands[1].data);
  const auto* offsets = static_cast<const int32_t*>(operands[2].data);
  const int64_t z = values.dims[0], k = b.dims[0], m = y.dims[0], n = y.dims[1];
  std::vector<T> weights(z), dense(k * n), sum(n);
  LoadElements(values.type, values.data, z, weights.data());
  LoadElements(b.type, b.data, k * n, dense.data());
  for (int64_t i = 0; i < m; ++i) {
    std::fill(sum.begin(), sum.end(), T(0));
    const int64_t end = std::clamp<int64_t>(offsets[i + 1], 0, z);
    for (int64_t e = std::clamp<int64_t>(offsets[i], 0, z); e < end; ++e) {
      const int64_t column = columns[e];
      if (column < 0 || column >= k) continue;
      const T* row = dense.data() + column * n;
      for (int64_t j = 0; j < n; ++j) sum[j] += weights[e] * row[j];
    }
    StoreElements(y.type, sum.data(), n,
                  static_cast<char*>(y.data) + i * n * ElementTypeBytes(y.type));
  }
}

// The gradients of the entries and of the matrix, summed in the order of entries.
template <typename T>
void RunBackward(absl::Span<const BufferView> operands, absl::Span<const BufferView> results) {
  const BufferView &dy = operands[0], &values = operands[1], &b = operands[4];
  const auto* columns = static_cast<const int32_t*>(operands[2].data);
  const auto* offsets = static_cast<const int32_t*>(operands[3].data);
  const int64_t z = values.dims[0], k = b.dims[0], m = dy.dims[0], n = dy.dims[1];
  std::vector<T> weights(z), dense(k * n), cotangents(m * n), dvalues(z), db(k * n);
  LoadElements(values.type, values.data, z, weights.data());
  LoadElements(b.type, b.data, k * n, dense.data());
  LoadElements(dy.type, dy.data, m * n, cotangents.data());
  for (int64_t i = 0; i < m; ++i) {
    const T* row = cotangents.data() + i * n;
    const int64_t end = std::clamp<int64_t>(offsets[i + 1], 0, z);
    for (int64_t e = std::clamp<int64_t>(offsets[i], 0, z); e < end; ++e) {
      const int64_t column = columns[e];
      if (column < 0 || column >= k) continue;
      T sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        sum += row[j] * dense[column * n + j];
        db[column * n + j] += weights[e] * row[j];
      }
      dvalues[e] += sum;  // rows may overlap in entries
    }
  }
  StoreElements(results[0].type, dvalues.data(), z, results[0].data);
  StoreElements(results[1].type, db.data(), k * n, results[1].data);
}

}  // namespace

absl::Status CheckSparseMatmul(const HandlerContext& context, const CallArguments& args) {
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Operand(0), kTypes));
  SHARDCALL_RETURN_IF_ERROR(args.CheckRank(Operand(0), 1));
  const ElementType type = args.operand(0).type;
  for (int index : {1, 2}) {
    SHARDCALL_RETURN_IF_ERROR(args.CheckType(Operand(index), {ElementType::kS32}));
    SHARDCALL_RETURN_IF_ERROR(args.CheckRank(Operand(index), 1));
  }
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Operand(1), args.operand(0).dims));
  for (ArgumentPlace matrix : {Operand(3), Result(0)}) {
    SHARDCALL_RETURN_IF_ERROR(args.CheckType(matrix, {type}));
    SHARDCALL_RETURN_IF_ERROR(args.CheckRank(matrix, 2));
  }
  SHARDCALL_RETURN_IF_ERROR(
      args.CheckDims(Result(0), {args.result(0).dims[0], args.operand(3).dims[1]}));
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Operand(2), {args.result(0).dims[0] + 1}));
  return args.Located(context.attribute_map().OnlyKnown({}));
}

absl::Status SparseMatmul(const HandlerContext& context, absl::Span<const BufferView> operands,
                          absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"values", "columns", "offsets", "b"},
                           {"y"});
  SHARDCALL_RETURN_IF_ERROR(CheckSparseMatmul(context, args));
  const ElementType type = operands[0].type;
  switch (type) {
    case ElementType::kF64: Run<double>(operands, results[0]); break;
    case ElementType::kC64: Run<std::complex<float>>(operands, results[0]); break;
    case ElementType::kC128: Run<std::complex<double>>(operands, results[0]); break;
    default:
      if (IsFloat(type)) {
        Run<float>(operands, results[0]);
      } else {
        Run<uint64_t>(operands, results[0]);  // modulo 2^64, which is exact modulo the type's width
      }
  }
  return absl::OkStatus();
}

absl::Status SparseMatmulBwd(const HandlerContext& context, absl::Span<const BufferView> operands,
                             absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"dy", "values", "columns", "offsets", "b"},
                           {"dvalues", "db"});
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Operand(0), kFloatTypes));
  const ElementType type = operands[0].type;
  for (ArgumentPlace place : {Operand(1), Operand(4), Result(0), Result(1)}) {
    SHARDCALL_RETURN_IF_ERROR(args.CheckType(place, {type}));
  }
  for (int matrix : {0, 4}) SHARDCALL_RETURN_IF_ERROR(args.CheckRank(Operand(matrix), 2));
  for (int list : {1, 2, 3}) SHARDCALL_RETURN_IF_ERROR(args.CheckRank(Operand(list), 1));
  for (int index : {2, 3}) {
    SHARDCALL_RETURN_IF_ERROR(args.CheckType(Operand(index), {ElementType::kS32}));
  }
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Operand(2), operands[1].dims));
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Operand(3), {operands[0].dims[0] + 1}));
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Operand(4), {operands[4].dims[0], operands[0].dims[1]}));
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Result(0), operands[1].dims));
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Result(1), operands[4].dims));
  SHARDCALL_RETURN_IF_ERROR(args.Located(context.attribute_map().OnlyKnown({})));
  if (type == ElementType::kF64) {
    RunBackward<double>(operands, results);
  } else {
    RunBackward<float>(operands, results);
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
