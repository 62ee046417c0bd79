// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/lower/lower_table.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

// What the lower column names: a function, or why an op is read and partitioned, but has no
// step here.
struct RowLowering {
  LowerFn make;
  absl::string_view why_not;
};

namespace row {
constexpr RowLowering Alias{nullptr, "this opcode"};  // its result is an operand's slot
constexpr RowLowering None{nullptr, "this opcode"};
constexpr RowLowering NoTransfer{
    nullptr, "a transfer to another program or to the host, which has no other side here,"};
constexpr RowLowering NoFeed{nullptr, "a feed from or to the host, which has no queue here,"};
#define SHARDCALL_LOWERING(name) constexpr RowLowering name{Lower##name, ""};
SHARDCALL_LOWERING(BatchNorm)
SHARDCALL_LOWERING(BitcastConvert)
SHARDCALL_LOWERING(Broadcast)
SHARDCALL_LOWERING(Call)
SHARDCALL_LOWERING(Cholesky)
SHARDCALL_LOWERING(Collective)
SHARDCALL_LOWERING(Concatenate)
SHARDCALL_LOWERING(Conditional)
SHARDCALL_LOWERING(Convolution)
SHARDCALL_LOWERING(CustomCall)
SHARDCALL_LOWERING(DeviceId)
SHARDCALL_LOWERING(Dot)
SHARDCALL_LOWERING(DynamicSlice)
SHARDCALL_LOWERING(DynamicUpdateSlice)
SHARDCALL_LOWERING(Elementwise)
SHARDCALL_LOWERING(Fft)
SHARDCALL_LOWERING(Gather)
SHARDCALL_LOWERING(GetDimensionSize)
SHARDCALL_LOWERING(Iota)
SHARDCALL_LOWERING(Map)
SHARDCALL_LOWERING(Pad)
SHARDCALL_LOWERING(Permute)
SHARDCALL_LOWERING(RaggedAllToAll)
SHARDCALL_LOWERING(RaggedDot)
SHARDCALL_LOWERING(Reduce)
SHARDCALL_LOWERING(ReduceWindow)
SHARDCALL_LOWERING(Reshape)
SHARDCALL_LOWERING(Reverse)
SHARDCALL_LOWERING(Rng)
SHARDCALL_LOWERING(RngBitGenerator)
SHARDCALL_LOWERING(RngGetAndUpdateState)
SHARDCALL_LOWERING(ScaledDot)
SHARDCALL_LOWERING(Scan)
SHARDCALL_LOWERING(Scatter)
SHARDCALL_LOWERING(SelectAndScatter)
SHARDCALL_LOWERING(Slice)
SHARDCALL_LOWERING(Sort)
SHARDCALL_LOWERING(TopK)
SHARDCALL_LOWERING(Transpose)
SHARDCALL_LOWERING(TriangularSolve)
SHARDCALL_LOWERING(While)
#undef SHARDCALL_LOWERING
}  // namespace row

constexpr RowLowering kLowerings[] = {
#define SHARDCALL_OP(opcode, text, attrs, arity, shape, rule, strategy, sized, lower, stablehlo, \
                     traits)                                                                     \
  row::lower,
#include "shardcall/partitioner/ir/opcodes.inc"
#undef SHARDCALL_OP
};

}  // namespace

absl::Status LowerByOpcode(const LowerContext& context, Step* step) {
  const RowLowering& row = kLowerings[static_cast<int>(context.instr.opcode)];
  if (row.make == nullptr) return context.Unimplemented(row.why_not);
  SHARDCALL_RETURN_IF_ERROR(row.make(context, step));
  SHARDCALL_CHECK(step->fn != nullptr);
  return absl::OkStatus();
}

absl::Status LowerContext::Error(absl::string_view code, absl::string_view message,
                                 absl::string_view fix, absl::StatusCode status) const {
  // What the verifier refuses comes here only where nobody asked it.
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

}  // namespace shardcall
