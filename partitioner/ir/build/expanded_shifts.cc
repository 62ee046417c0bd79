// SPDX-License-Identifier: Apache-2.0
// Calls that shift a value along a dimension, as slices, concatenates and pads.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/build/call_reader.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// Rows from `start` on, as many as `dims` has, of x repeated without end in both directions.
InstrId Cyclic(GraphBuilder& b, InstrId x, int64_t d, int64_t start, const CallReader::Dims& dims) {
  const CallReader::Dims have(b.shape(x)->dims().begin(), b.shape(x)->dims().end());
  const int64_t n = have[d];
  std::vector<InstrId> parts;
  for (int64_t at = 0; at < dims[d];) {
    const int64_t from = ((start + at) % n + n) % n;
    const int64_t rows = std::min(n - from, dims[d] - at);
    CallReader::Dims starts(have.size()), limits = have;
    starts[d] = from;
    limits[d] = from + rows;
    parts.push_back(rows == n ? x : b.Slice(x, starts, limits));
    at += rows;
  }
  if (parts.empty()) return x;
  return parts.size() == 1 ? parts[0] : b.Concatenate(parts, d);
}

// Results of so many rows, each from another row on.
CallExpansion CyclicResults(const CallReader& call, CallReader::Dims starts, int64_t rows) {
  const int64_t d = call.dimension();
  CallReader::Dims dims = call.DimsOf(0);
  dims[d] = dims[d] == 0 ? 0 : rows;
  CallExpansion out;
  out.results.assign(starts.size(), call.Like(dims));
  out.make = [starts = std::move(starts), dims, d](GraphBuilder& b, CallReader::Ids x) {
    std::vector<InstrId> made;
    for (const int64_t start : starts) made.push_back(Cyclic(b, x[0], d, start, dims));
    return made;
  };
  return out;
}

absl::Status ReadOfOne(CallReader& call) {
  SHARDCALL_RETURN_IF_ERROR(call.WantOperands(1));
  return call.ReadConfig();
}

}  // namespace

absl::StatusOr<CallExpansion> ReadRotateRight(CallReader& call) {
  SHARDCALL_RETURN_IF_ERROR(ReadOfOne(call));
  constexpr int64_t kMost = int64_t{1} << 40;
  SHARDCALL_ASSIGN_OR_RETURN(const int64_t amount, call.Number("amount", kMost));
  return CyclicResults(call, {-amount}, call.rows());
}

absl::StatusOr<CallExpansion> ReadMultiRotate(CallReader& call) {
  SHARDCALL_RETURN_IF_ERROR(ReadOfOne(call));
  SHARDCALL_ASSIGN_OR_RETURN(const int64_t left, call.Number("left_amount", call.rows()));
  SHARDCALL_ASSIGN_OR_RETURN(const int64_t right, call.Number("right_amount", call.rows()));
  SHARDCALL_RETURN_IF_ERROR(call.WantResults(left + right + 1));
  CallReader::Dims starts;
  for (int64_t k = 0; k <= left + right; ++k) starts.push_back(left - k);
  return CyclicResults(call, std::move(starts), call.rows());
}

absl::StatusOr<CallExpansion> ReadWrap(CallReader& call) {
  SHARDCALL_RETURN_IF_ERROR(ReadOfOne(call));
  SHARDCALL_ASSIGN_OR_RETURN(const int64_t left, call.Number("left_amount", call.rows()));
  SHARDCALL_ASSIGN_OR_RETURN(const int64_t right, call.Number("right_amount", call.rows()));
  return CyclicResults(call, {-left}, call.rows() + left + right);
}

absl::StatusOr<CallExpansion> ReadMultiSlice(CallReader& call) {
  SHARDCALL_RETURN_IF_ERROR(ReadOfOne(call));
  SHARDCALL_ASSIGN_OR_RETURN(const int64_t amount, call.Number("amount", call.rows()));
  SHARDCALL_RETURN_IF_ERROR(call.WantResults(amount + 1));
  SHARDCALL_ASSIGN_OR_RETURN(const CallReader::Dims starts, call.PerDimension("start_indices"));
  SHARDCALL_ASSIGN_OR_RETURN(const CallReader::Dims limits, call.PerDimension("limit_indices"));
  SHARDCALL_ASSIGN_OR_RETURN(const CallReader::Dims strides, call.PerDimension("strides"));
  const int64_t shifted = call.dimension();
  CallReader::Dims dims = call.DimsOf(0);
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t most = dims[d] - (static_cast<int64_t>(d) == shifted ? amount : 0);
    if (starts[d] < 0 || limits[d] < starts[d] || limits[d] > most || strides[d] < 1) {
      return call.Unfit(absl::StrCat("a slice of dimension ", d, " within 0 to ", most),
                        absl::StrCat("[", starts[d], ":", limits[d], ":", strides[d], "]"));
    }
    const int64_t rows = limits[d] - starts[d];
    dims[d] = rows == 0 ? 0 : (rows - 1) / strides[d] + 1;
  }
  CallExpansion out;
  out.results.assign(amount + 1, call.Like(dims));
  out.make = [=](GraphBuilder& b, CallReader::Ids x) {
    std::vector<InstrId> made;
    for (int64_t k = 0; k <= amount; ++k) {
      CallReader::Dims from = starts, to = limits;
      from[shifted] += k;
      to[shifted] += k;
      made.push_back(b.Slice(x[0], from, to, strides));
    }
    return made;
  };
  return out;
}

absl::StatusOr<CallExpansion> ReadMultiPad(CallReader& call) {
  SHARDCALL_RETURN_IF_ERROR(call.WantOperands(2));
  SHARDCALL_RETURN_IF_ERROR(call.ReadConfig());
  SHARDCALL_ASSIGN_OR_RETURN(const int64_t amount, call.Number("amt", int64_t{1} << 20));
  SHARDCALL_RETURN_IF_ERROR(call.WantResults(amount + 1));
  if (call.operand(1)->rank() != 0 ||
      call.operand(1)->element_type() != call.operand(0)->element_type()) {
    return call.Unfit("a scalar of the same type as operand 1",
                      call.operand(1)->bare()->ToString());
  }
  const int64_t d = call.dimension();
  CallReader::Dims dims = call.DimsOf(0);
  dims[d] += amount;
  CallExpansion out;
  out.results.assign(amount + 1, call.Like(dims));
  out.make = [amount, d, rank = dims.size()](GraphBuilder& b, CallReader::Ids x) {
    std::vector<InstrId> made;
    for (int64_t k = 0; k <= amount; ++k) {
      CallReader::Dims low(rank), high(rank);
      low[d] = amount - k;
      high[d] = k;
      made.push_back(b.Pad(x[0], x[1], low, high));
    }
    return made;
  };
  return out;
}

}  // namespace internal
}  // namespace shardcall
