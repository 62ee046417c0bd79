// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/opcode.h"

#include <iterator>

#include "shardcall/partitioner/ir/row_by_text.h"

namespace shardcall {
namespace {

#define SHARDCALL_OP(opcode, text, attrs, arity, shape, rule, strategy, sized, lower, stablehlo, \
                     traits)                                                                     \
  Opcode::opcode,
constexpr Opcode kOpcodeOfRow[] = {
#include "shardcall/partitioner/ir/opcodes.inc"
};
#undef SHARDCALL_OP

constexpr bool RowsAreInOrder() {
  for (int i = 0; i < kNumOpcodes; ++i) {
    if (kOpcodeOfRow[i] != static_cast<Opcode>(i)) return false;
  }
  return true;
}
static_assert(std::size(kOpcodeOfRow) == kNumOpcodes && RowsAreInOrder(),
              "opcode_list.inc and opcodes.inc have other opcodes, or another order");

template <Opcode AsyncForms::* kForm>
const AsyncForms* FindForms(Opcode opcode) {
  for (const AsyncForms& forms : kAsyncForms) {
    if (forms.*kForm == opcode) return &forms;
  }
  return nullptr;
}

}  // namespace

#define SHARDCALL_OP(opcode, text, attrs, arity, shape, rule, strategy, sized, lower, stablehlo, \
                     traits)                                                                     \
  {text, AttrKind::attrs, arity, stablehlo, traits},
constexpr OpcodeInfo kOpcodeInfo[] = {
#include "shardcall/partitioner/ir/opcodes.inc"
};
#undef SHARDCALL_OP

const AsyncForms* FormsEndedBy(Opcode opcode) { return FindForms<&AsyncForms::done>(opcode); }
const AsyncForms* FormsStartedBy(Opcode opcode) { return FindForms<&AsyncForms::start>(opcode); }
const AsyncForms* FormsOf(Opcode opcode) { return FindForms<&AsyncForms::whole>(opcode); }

bool HasShortAsyncForm(Opcode opcode) {
  return !HasTrait(opcode, kAsyncForm) && FormsOf(opcode) == nullptr &&
         opcode != Opcode::kParameter && opcode != Opcode::kConstant;
}

bool OpcodeFromText(absl::string_view text, Opcode* opcode) {
  const int row = RowByText<kOpcodeInfo>::Find(text);
  if (row >= 0) *opcode = static_cast<Opcode>(row);
  return row >= 0;
}

}  // namespace shardcall
