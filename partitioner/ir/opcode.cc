// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/opcode.h"

#include "shardcall/partitioner/ir/row_by_text.h"

namespace shardcall {
namespace {

template <Opcode AsyncForms::* kForm>
const AsyncForms* FindForms(Opcode opcode) {
  for (const AsyncForms& forms : kAsyncForms) {
    if (forms.*kForm == opcode) return &forms;
  }
  return nullptr;
}

}  // namespace

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
