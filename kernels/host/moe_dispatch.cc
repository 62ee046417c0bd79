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
void Run(const MoeRoutes& routes, const BufferView& tokens, const BufferView& inputs) {
  const int64_t d = routes.width, slots = routes.experts * routes.capacity;
  const int64_t bytes = ElementTypeBytes(tokens.type);
  std::vector<T> token(d), sums(slots * d);
  for (int64_t g = 0; g < routes.groups; ++g) {
    std::fill(sums.begin(), sums.end(), T(0));
    for (int64_t t = 0; t < routes.tokens; ++t) {
      const int64_t row = g * routes.tokens + t;
      LoadFloats(tokens.type, static_cast<const char*>(tokens.data) + row * d * bytes, d,
                 token.data());
      for (int64_t a = 0; a < routes.choices; ++a) {
        const int64_t slot = routes.Slot(row * routes.choices + a);
        if (slot < 0) continue;
        for (int64_t i = 0; i < d; ++i) sums[slot * d + i] += token[i];
      }
    }
    StoreFloats(inputs.type, sums.data(), slots * d,
                static_cast<char*>(inputs.data) + g * slots * d * bytes);
  }
}

}  // namespace

absl::Status MoeDispatch(const HandlerContext& context, absl::Span<const BufferView> operands,
                         absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"tokens", "experts", "positions"},
                           {"inputs"});
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Operand(0), kFloatTypes));
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Result(0), {operands[0].type}));
  MoeRoutes routes;
  SHARDCALL_RETURN_IF_ERROR(ReadMoeRoutes(args, Operand(0), Result(0), &routes));
  SHARDCALL_RETURN_IF_ERROR(args.Located(context.attribute_map().OnlyKnown({})));
  if (operands[0].type == ElementType::kF64) {
    Run<double>(routes, operands[0], results[0]);
  } else {
    Run<float>(routes, operands[0], results[0]);
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
