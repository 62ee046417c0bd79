// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/host/arguments.h"
#include "shardcall/kernels/host/kernels.h"
#include "shardcall/kernels/math/sort_keys.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kBF16, ElementType::kF16,
                                  ElementType::kF64, ElementType::kS8,   ElementType::kS16,
                                  ElementType::kS32, ElementType::kS64,  ElementType::kU8,
                                  ElementType::kU16, ElementType::kU32,  ElementType::kU64};

}  // namespace

absl::Status TopK(const HandlerContext& context, absl::Span<const BufferView> operands,
                  absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"x", "labels"}, {"values", "indices"}, 1);
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Operand(0), kTypes));
  SHARDCALL_RETURN_IF_ERROR(args.CheckLeastRank(Operand(0), 1));
  const BufferView &x = operands[0], &values = results[0], &indices = results[1];
  if (operands.size() > 1) {
    SHARDCALL_RETURN_IF_ERROR(args.CheckType(Operand(1), {ElementType::kS32}));
    SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Operand(1), x.dims));
  }
  const int64_t n = x.dims.back();
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Result(0), {x.type}));
  SHARDCALL_RETURN_IF_ERROR(args.CheckRank(Result(0), x.rank()));
  const int64_t k = values.dims.back();
  if (k > n) return args.ShapeError(Result(0), absl::StrCat("at most ", n, " of ", n, " elements"));
  if (n > INT32_MAX) return args.ShapeError(Operand(0), "fewer than 2^31 elements in a line");
  std::vector<int64_t> dims = x.dims;
  dims.back() = k;
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Result(0), dims));
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Result(1), {ElementType::kS32}));
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Result(1), dims));
  SHARDCALL_RETURN_IF_ERROR(args.Located(context.attribute_map().OnlyKnown({"largest"})));
  SHARDCALL_ASSIGN_ATTRIBUTE(const bool largest, args,
                             context.attribute_map().GetBool("largest", true));

  const int bytes = ElementTypeBytes(x.type);
  const int64_t lines = n == 0 ? 0 : x.num_elements() / n;
  const auto* labels =
      operands.size() > 1 ? static_cast<const int32_t*>(operands[1].data) : nullptr;
  std::vector<int64_t> order(n), keys;
  for (int64_t l = 0; l < lines; ++l) {
    const char* from = static_cast<const char*>(x.data) + l * n * bytes;
    char* to = static_cast<char*>(values.data) + l * k * bytes;
    int32_t* which = static_cast<int32_t*>(indices.data) + l * k;
    OrderKeys(x.type, from, n, &keys);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
      if (keys[a] != keys[b]) return largest ? keys[a] > keys[b] : keys[a] < keys[b];
      return a < b;
    });
    for (int64_t i = 0; i < k; ++i) {
      std::memcpy(to + i * bytes, from + order[i] * bytes, bytes);
      which[i] = labels == nullptr ? static_cast<int32_t>(order[i]) : labels[l * n + order[i]];
    }
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
