// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/kernels/host/all_reduce.h"
#include "shardcall/kernels/host/arguments.h"
#include "shardcall/kernels/host/kernels.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kBF16, ElementType::kF16,
                                  ElementType::kF64, ElementType::kS8,   ElementType::kS16,
                                  ElementType::kS32, ElementType::kS64,  ElementType::kU8,
                                  ElementType::kU16, ElementType::kU32,  ElementType::kU64};

absl::StatusOr<ReduceKind> ReadKind(const CallArguments& args, const AttributeMapView& attributes) {
  SHARDCALL_ASSIGN_ATTRIBUTE(const std::string op, args, attributes.GetString("op", "sum"));
  for (ReduceKind kind :
       {ReduceKind::kSum, ReduceKind::kProduct, ReduceKind::kMax, ReduceKind::kMin}) {
    if (op == ReduceKindName(kind)) return kind;
  }
  return args.AttributeError("op", "\"sum\", \"product\", \"max\" or \"min\"",
                             absl::StrCat("\"", op, "\""));
}

// The group of this device.
absl::StatusOr<std::vector<int>> ReadGroup(const HandlerContext& context,
                                           const CallArguments& args) {
  const AttributeMapView& attributes = context.attribute_map();
  std::vector<int64_t> all(context.num_devices);
  std::iota(all.begin(), all.end(), 0);
  SHARDCALL_ASSIGN_ATTRIBUTE(const std::vector<int64_t> ids, args,
                             attributes.GetInts("replica_groups", all));
  SHARDCALL_ASSIGN_ATTRIBUTE(const int64_t size, args,
                             attributes.GetInt("group_size", static_cast<int64_t>(ids.size())));
  const int64_t count = static_cast<int64_t>(ids.size());
  if (size <= 0 || count % size != 0) {
    return args.AttributeError("group_size", absl::StrCat("a divisor of ", count, " devices"),
                               absl::StrCat(size));
  }
  std::vector<bool> seen(context.num_devices);
  std::vector<int> group;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t id = ids[i];
    if (id < 0 || id >= context.num_devices || seen[id]) {
      return args.AttributeError(
          "replica_groups", absl::StrCat("each of ", context.num_devices, " devices at most once"),
          absl::StrJoin(ids, ","));
    }
    seen[id] = true;
    if (id != context.device_ordinal) continue;
    const int64_t first = i / size * size;
    for (int64_t k = first; k < first + size; ++k) group.push_back(static_cast<int>(ids[k]));
  }
  if (group.empty()) {
    return args.AttributeError("replica_groups",
                               absl::StrCat("a group with device ", context.device_ordinal),
                               absl::StrJoin(ids, ","));
  }
  return group;
}

}  // namespace

absl::StatusOr<AllReduceCall> CheckAllReduce(const HandlerContext& context,
                                             const CallArguments& args) {
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Operand(0), kTypes));
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Result(0), {args.operand(0).type}));
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Result(0), args.operand(0).dims));
  SHARDCALL_RETURN_IF_ERROR(
      args.Located(context.attribute_map().OnlyKnown({"op", "replica_groups", "group_size"})));
  AllReduceCall call;
  SHARDCALL_ASSIGN_OR_RETURN(call.kind, ReadKind(args, context.attribute_map()));
  if (context.communicator == nullptr && context.num_devices == 1) return call;
  SHARDCALL_ASSIGN_OR_RETURN(call.group, ReadGroup(context, args));
  if (context.communicator != nullptr) return call;
  return args.Located(ToStatus({.code = "E317",
                                .message = "there is no communicator",
                                .expected = absl::StrCat("one for ", call.group.size(), " devices"),
                                .found = "none",
                                .fix = "Run the program on its devices"},
                               absl::StatusCode::kFailedPrecondition));
}

absl::Status NcclAllReduce(const HandlerContext& context, absl::Span<const BufferView> operands,
                           absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"x"}, {"y"});
  SHARDCALL_ASSIGN_OR_RETURN(const AllReduceCall call, CheckAllReduce(context, args));
  const BufferView &x = operands[0], &y = results[0];
  if (call.group.empty()) {
    if (x.data != y.data && x.byte_size() > 0) {
      std::memcpy(y.data, x.data, static_cast<size_t>(x.byte_size()));
    }
    return absl::OkStatus();
  }
  return context.communicator->AllReduce(call.group, call.kind, x.type, x.data, y.data,
                                         x.num_elements(), {context.instruction});
}

}  // namespace internal
}  // namespace shardcall
