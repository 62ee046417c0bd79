// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include "shardcall/kernels/host/arguments.h"
#include "shardcall/kernels/host/loss.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

using Views = absl::Span<const BufferView>;

ElementType RowType(ElementType logits) {
  return logits == ElementType::kF64 ? ElementType::kF64 : ElementType::kF32;
}

// Checks logits and labels, and the arrays with one number per row.
absl::Status Check(const HandlerContext& context, const CallArguments& args, int logits,
                   absl::Span<const ArgumentPlace> rows) {
  const ArgumentPlace x = Operand(logits), labels = Operand(logits + 1);
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(x, kFloatTypes));
  SHARDCALL_RETURN_IF_ERROR(args.CheckLeastRank(x, 1));
  const std::vector<int64_t>& dims = args.at(x).dims;
  const std::vector<int64_t> row_dims(dims.begin(), dims.end() - 1);
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(labels, {ElementType::kS32, ElementType::kS64}));
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(labels, row_dims));
  for (ArgumentPlace row : rows) {
    SHARDCALL_RETURN_IF_ERROR(args.CheckType(row, {RowType(args.at(x).type)}));
    SHARDCALL_RETURN_IF_ERROR(args.CheckDims(row, row_dims));
  }
  return args.Located(context.attribute_map().OnlyKnown({}));
}

int64_t LabelAt(const BufferView& labels, int64_t row) {
  return labels.type == ElementType::kS32 ? static_cast<const int32_t*>(labels.data)[row]
                                          : static_cast<const int64_t*>(labels.data)[row];
}

// The values that make up one row's loss, in f64.
struct RowParts {
  double max, sum, label_logit;
};

template <typename T>
RowParts PartsOf(const T* row, int64_t v, int64_t label) {
  RowParts parts = {-std::numeric_limits<double>::infinity(), 0, 0};
  for (int64_t i = 0; i < v; ++i) {
    // Once the maximum is NaN it stays NaN.
    if (!(row[i] <= parts.max)) parts.max = std::isnan(parts.max) ? parts.max : row[i];
  }
  if (v > 0 && parts.max != -std::numeric_limits<double>::infinity()) {
    for (int64_t i = 0; i < v; ++i) parts.sum += std::exp(static_cast<double>(row[i]) - parts.max);
  }
  if (label >= 0 && label < v) parts.label_logit = row[label];
  return parts;
}

// Calls f(row number, its logits) for all rows.
template <typename T, typename F>
void ForRows(const BufferView& logits, F f) {
  const int64_t v = logits.dims.back();
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < logits.dims.size(); ++d) rows *= logits.dims[d];
  std::vector<T> row(v);
  for (int64_t r = 0; r < rows; ++r) {
    LoadFloats(logits.type,
               static_cast<const char*>(logits.data) + r * v * ElementTypeBytes(logits.type), v,
               row.data());
    f(r, row);
  }
}

template <typename T>
void RunLoss(Views operands, Views results) {
  ForRows<T>(operands[0], [&](int64_t r, const std::vector<T>& row) {
    const RowParts parts =
        PartsOf(row.data(), static_cast<int64_t>(row.size()), LabelAt(operands[1], r));
    const double lse = parts.sum == 0 ? parts.max : parts.max + std::log(parts.sum);
    static_cast<T*>(results[0].data)[r] = static_cast<T>(lse - parts.label_logit);
    if (results.size() > 1) static_cast<T*>(results[1].data)[r] = static_cast<T>(lse);
  });
}

template <typename T>
void RunShard(Views operands, Views results) {
  ForRows<T>(operands[0], [&](int64_t r, const std::vector<T>& row) {
    const RowParts parts =
        PartsOf(row.data(), static_cast<int64_t>(row.size()), LabelAt(operands[1], r));
    static_cast<T*>(results[0].data)[r] = static_cast<T>(parts.max);
    static_cast<T*>(results[1].data)[r] = static_cast<T>(parts.sum);
    static_cast<T*>(results[2].data)[r] = static_cast<T>(parts.label_logit);
  });
}

template <typename T>
void RunGradient(Views operands, const BufferView& dlogits) {
  ForRows<T>(operands[1], [&](int64_t r, std::vector<T>& row) {
    const T dloss = static_cast<const T*>(operands[0].data)[r];
    const T lse = static_cast<const T*>(operands[3].data)[r];
    const int64_t label = LabelAt(operands[2], r), v = static_cast<int64_t>(row.size());
    for (int64_t i = 0; i < v; ++i) {
      const double p = std::exp(static_cast<double>(row[i]) - lse);
      row[i] = static_cast<T>(dloss * (p - (i == label ? 1 : 0)));
    }
    StoreFloats(dlogits.type, row.data(), v,
                static_cast<char*>(dlogits.data) + r * v * ElementTypeBytes(dlogits.type));
  });
}

}  // namespace

absl::Status SoftmaxCrossEntropy(const HandlerContext& context, Views operands, Views results) {
  const CallArguments args(context, operands, results, {"logits", "labels"}, {"loss", "lse"}, 0, 1);
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  const ArgumentPlace rows[] = {Result(0), Result(1)};
  SHARDCALL_RETURN_IF_ERROR(Check(context, args, 0, absl::MakeConstSpan(rows, results.size())));
  if (operands[0].type == ElementType::kF64) {
    RunLoss<double>(operands, results);
  } else {
    RunLoss<float>(operands, results);
  }
  return absl::OkStatus();
}

absl::Status SoftmaxCrossEntropyShard(const HandlerContext& context, Views operands,
                                      Views results) {
  const CallArguments args(context, operands, results, {"logits", "labels"},
                           {"max", "sum", "label_logit"});
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  SHARDCALL_RETURN_IF_ERROR(Check(context, args, 0, {Result(0), Result(1), Result(2)}));
  if (operands[0].type == ElementType::kF64) {
    RunShard<double>(operands, results);
  } else {
    RunShard<float>(operands, results);
  }
  return absl::OkStatus();
}

absl::Status SoftmaxCrossEntropyBwd(const HandlerContext& context, Views operands, Views results) {
  const CallArguments args(context, operands, results, {"dloss", "logits", "labels", "lse"},
                           {"dlogits"});
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  SHARDCALL_RETURN_IF_ERROR(Check(context, args, 1, {Operand(0), Operand(3)}));
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Result(0), {operands[1].type}));
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Result(0), operands[1].dims));
  if (operands[1].type == ElementType::kF64) {
    RunGradient<double>(operands, results[0]);
  } else {
    RunGradient<float>(operands, results[0]);
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
