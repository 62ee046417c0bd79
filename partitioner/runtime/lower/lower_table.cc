// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/lower/lower_table.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr LowerFn kLowerings[] = {
#define SHARDCALL_OP(opcode, text, attrs, arity, shape, rule, strategy, sized, lower, stablehlo, \
                     traits)                                                                     \
  Lower##lower,
#include "shardcall/partitioner/ir/opcodes.inc"
#undef SHARDCALL_OP
};

}  // namespace

// Names in the lower column for ops without a step; each reports why. Such ops are still read and
// partitioned.
absl::Status LowerNone(const LowerContext& context, Step*) {
  return context.Unimplemented("this opcode");
}
// The result is the slot of an operand or a constant: ComputationLowering::Alias.
absl::Status LowerAlias(const LowerContext& context, Step* step) {
  return LowerNone(context, step);
}
absl::Status LowerNoTransfer(const LowerContext& context, Step*) {
  return context.Unimplemented(
      "a transfer to another program or to the host, which has no other side here,");
}
absl::Status LowerNoFeed(const LowerContext& context, Step*) {
  return context.Unimplemented("a feed from or to the host, which has no queue here,");
}

absl::Status LowerByOpcode(const LowerContext& context, Step* step) {
  SHARDCALL_RETURN_IF_ERROR(kLowerings[static_cast<int>(context.instr.opcode)](context, step));
  SHARDCALL_CHECK(step->fn != nullptr);
  return absl::OkStatus();
}

absl::Status LowerContext::Error(absl::string_view code, absl::string_view message,
                                 absl::string_view fix, absl::StatusCode status) const {
  // The verifier rejects these programs, so this is reached only if it was not run.
  if (fix.empty() && code == "E311") fix = "Ask VerifyModule, which says what the op needs";
  return ToStatus({.code = std::string(code),
                   .message = absl::StrCat(OpcodeText(instr.opcode), ": ", message),
                   .where = absl::StrCat("%", instr.name),
                   .fix = std::string(fix)},
                  status);
}

absl::Status LowerContext::Unimplemented(absl::string_view message) const {
  return Error("E310", absl::StrCat(message, " cannot be executed"), "",
               absl::StatusCode::kUnimplemented);
}

LeafShape MakeLeafShape(const Shape& shape) {
  LeafShape leaf;
  leaf.type = shape.element_type();
  leaf.dims.assign(shape.dims().begin(), shape.dims().end());
  leaf.minor_to_major.assign(shape.minor_to_major().begin(), shape.minor_to_major().end());
  for (int d = 0; shape.IsDynamic() && d < shape.rank(); ++d) {
    leaf.dynamic.push_back(shape.IsDynamicDim(d));
  }
  return leaf;
}

}  // namespace internal
}  // namespace shardcall
