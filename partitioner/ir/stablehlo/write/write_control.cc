// SPDX-License-Identifier: Apache-2.0
// Writes loops, branches and calls, and what becomes no operation: tuples.
#include <vector>

#include "shardcall/partitioner/ir/analysis/output_aliasing.h"
#include "shardcall/partitioner/ir/stablehlo/write/module_writer.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

absl::Status WriteTuple(ModuleWriter& w, InstrId id) {
  const Module& m = w.module();
  // The root's sharding is that of main's results.
  const bool root = m.comp(m.entry()).root == id;
  if (m.instr(id).frontend != nullptr || (m.instr(id).sharding != nullptr && !root)) {
    return w.Cannot(id, "a tuple with annotations");
  }
  ModuleWriter::Values leaves;
  for (InstrId o : m.operands(id)) {
    leaves.insert(leaves.end(), w.values(o).begin(), w.values(o).end());
  }
  w.SetValues(id, std::move(leaves));
  return absl::OkStatus();
}

absl::Status WriteTupleElement(ModuleWriter& w, InstrId id) {
  const Module& m = w.module();
  const Instruction& i = m.instr(id);
  const InstrId tuple = m.operand(id, 0);
  // XLA copies the annotations of what gives the tuple to its elements.
  const Instruction& giver = m.instr(tuple);
  const bool copied = (i.sharding == nullptr || giver.sharding != nullptr) &&
                      (i.frontend == nullptr || giver.frontend != nullptr);
  if (!copied) return w.Cannot(id, "a tuple's element with annotations");
  const auto first =
      w.values(tuple).begin() + FirstLeafAt(m.instr(tuple).shape, {i.as<TupleIndexAttrs>().index});
  w.SetValues(id, ModuleWriter::Values(first, first + i.shape->num_leaves()));
  return absl::OkStatus();
}

absl::Status WriteWhile(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<WhileAttrs>();
  std::vector<WrittenRegion> regions(2);
  SHARDCALL_ASSIGN_OR_RETURN(regions[0], w.RegionOf(id, a.condition));
  SHARDCALL_ASSIGN_OR_RETURN(regions[1], w.RegionOf(id, a.body));
  return w.Emit(id, {}, std::move(regions));
}

// Branches use the values around them.
absl::Status WriteConditional(ModuleWriter& w, InstrId id) {
  const Module& m = w.module();
  const auto& a = m.instr(id).as<ConditionalAttrs>();
  std::vector<WrittenRegion> regions(a.branches.size());
  for (size_t k = 0; k < a.branches.size(); ++k) {
    const ModuleWriter::Values given = w.values(m.operand(id, static_cast<int>(k) + 1));
    SHARDCALL_ASSIGN_OR_RETURN(regions[k], w.RegionOver(id, a.branches[k], given));
  }
  const ModuleWriter::Values chosen = w.values(m.operand(id, 0));
  const absl::string_view op =
      a.is_pred ? "stablehlo.if" : GetOpcodeInfo(Opcode::kConditional).stablehlo;
  return w.EmitOver(id, op, chosen, {}, std::move(regions));
}

absl::Status WriteCall(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<CallAttrs>();
  if (a.is_composite) return w.Cannot(id, "a composite");
  return w.Emit(id, {{"callee", w.FunctionOf(a.to_apply)}});
}

constexpr WriteRow kRows[] = {
    {Opcode::kTuple, WriteTuple},
    {Opcode::kGetTupleElement, WriteTupleElement},
    {Opcode::kWhile, WriteWhile},
    {Opcode::kCall, WriteCall},
    {Opcode::kConditional, WriteConditional},
};

}  // namespace

absl::Span<const WriteRow> WriteControlRows() { return kRows; }

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
