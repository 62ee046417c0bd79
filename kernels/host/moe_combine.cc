// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "shardcall/kernels/host/moe.h"
#include "shardcall/kernels/host/moe_routes.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

template <typename T>
void Run(const MoeRoutes& routes, const BufferView& outputs, const BufferView& gates,
         const BufferView& y) {
  const int64_t d = routes.width, slots = routes.experts * routes.capacity;
  const int64_t bytes = ElementTypeBytes(outputs.type), gate_bytes = ElementTypeBytes(gates.type);
  std::vector<T> output(d), sum(d), weights(routes.choices);
  for (int64_t row = 0; row < routes.groups * routes.tokens; ++row) {
    const int64_t first = row * routes.choices, group = row / routes.tokens;
    LoadFloats(gates.type, static_cast<const char*>(gates.data) + first * gate_bytes,
               routes.choices, weights.data());
    std::fill(sum.begin(), sum.end(), T(0));
    for (int64_t a = 0; a < routes.choices; ++a) {
      const int64_t slot = routes.Slot(first + a);
      if (slot < 0) continue;
      LoadFloats(outputs.type,
                 static_cast<const char*>(outputs.data) + (group * slots + slot) * d * bytes, d,
                 output.data());
      for (int64_t i = 0; i < d; ++i) sum[i] += weights[a] * output[i];
    }
    StoreFloats(y.type, sum.data(), d, static_cast<char*>(y.data) + row * d * bytes);
  }
}

}  // namespace

absl::Status MoeCombine(const HandlerContext& context, absl::Span<const BufferView> operands,
                        absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"outputs", "experts", "positions", "gates"},
                           {"y"});
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Operand(0), kFloatTypes));
  const ElementType type = operands[0].type;
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Result(0), {type}));
  const ElementType gate_types[] = {type, ElementType::kF32};
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(
      Operand(3), absl::MakeConstSpan(gate_types, ElementTypeBytes(type) == 2 ? 2 : 1)));
  MoeRoutes routes;
  SHARDCALL_RETURN_IF_ERROR(ReadMoeRoutes(args, Result(0), Operand(0), &routes));
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Operand(3), operands[1].dims));
  SHARDCALL_RETURN_IF_ERROR(args.Located(context.attribute_map().OnlyKnown({})));
  if (type == ElementType::kF64) {
    Run<double>(routes, operands[0], operands[3], results[0]);
  } else {
    Run<float>(routes, operands[0], operands[3], results[0]);
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
