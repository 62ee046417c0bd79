// SPDX-License-Identifier: Apache-2.0
#include "absl/container/flat_hash_map.h"
#include "shardcall/kernels/host/arguments.h"
#include "shardcall/kernels/host/moe.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::Status MoePositions(const HandlerContext& context, absl::Span<const BufferView> operands,
                          absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"experts"}, {"positions"});
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Operand(0), {ElementType::kS32}));
  SHARDCALL_RETURN_IF_ERROR(args.CheckLeastRank(Operand(0), 2));
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Result(0), {ElementType::kS32}));
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Result(0), operands[0].dims));
  SHARDCALL_RETURN_IF_ERROR(args.Located(context.attribute_map().OnlyKnown({"choices_first"})));
  SHARDCALL_ASSIGN_ATTRIBUTE(const bool choices_first, args,
                             context.attribute_map().GetBool("choices_first", false));

  const std::vector<int64_t>& dims = operands[0].dims;
  const int64_t choices = dims.back(), group = dims[dims.size() - 2] * choices;
  const int64_t groups = group == 0 ? 0 : operands[0].num_elements() / group;
  const auto* experts = static_cast<const int32_t*>(operands[0].data);
  auto* positions = static_cast<int32_t*>(results[0].data);
  absl::flat_hash_map<int32_t, int32_t> taken;
  for (int64_t g = 0; g < groups; ++g) {
    taken.clear();
    for (int64_t i = 0; i < group; ++i) {
      // Choices in counting order, each at its index in memory.
      const int64_t tokens = group / choices;
      const int64_t at = choices_first ? i % tokens * choices + i / tokens : i;
      const int32_t expert = experts[g * group + at];
      positions[g * group + at] = expert < 0 ? -1 : taken[expert]++;
    }
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
