// SPDX-License-Identifier: Apache-2.0
// Loops, branches, calls of functions, barriers.
#include <utility>

#include "shardcall/partitioner/ir/stablehlo/op_names.h"
#include "shardcall/partitioner/ir/stablehlo/read/computation_reader.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

// What the regions take from around them becomes part of the loop's state.
absl::Status ReadWhile(ComputationReader& c, const Operation& op) {
  if (op.regions.size() != 2 || op.results.size() != op.operands.size()) {
    return ModuleReader::Cannot("a while without two regions, or with other results than operands");
  }
  const std::vector<uint32_t> captured = c.Captured(op.regions);
  SHARDCALL_ASSIGN_OR_RETURN(auto state, c.Operands(op));
  for (uint32_t value : captured) {
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId id, c.Value(value));
    state.push_back(id);
  }
  WhileAttrs attrs;
  SHARDCALL_ASSIGN_OR_RETURN(attrs.condition, c.OverTuple(op, 0, captured));
  SHARDCALL_ASSIGN_OR_RETURN(attrs.body, c.OverTuple(op, 1, captured, /*pass_on=*/true));
  const InstrId init = c.Tuple(op, state);
  Module& m = c.reader().module();
  const InstrId loop =
      c.Emit(op, Opcode::kWhile, m.instr(init).shape, {init}, InternAttributes(c.context(), attrs));
  SHARDCALL_RETURN_IF_ERROR(c.Finish(op, loop, /*always_tuple=*/true));
  // A sharding says nothing of what was added to the state.
  if (const HloSharding* own = m.instr(loop).sharding; own != nullptr && !captured.empty()) {
    HloSharding all = *own;
    if (own->kind != HloSharding::Kind::kTuple) {
      all = HloSharding();
      all.kind = HloSharding::Kind::kTuple;
      all.tuple.assign(op.results.size(), *own);
    }
    all.tuple.resize(all.tuple.size() + captured.size());  // replicated
    m.mutable_instr(loop).sharding = InternHloSharding(c.context(), std::move(all));
  }
  return absl::OkStatus();
}

// Each branch gets a tuple of what it takes from around it.
absl::Status ReadBranches(ComputationReader& c, const Operation& op, bool is_pred) {
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId chosen, c.Operand(op, 0));
  absl::InlinedVector<InstrId, 8> operands = {chosen};
  std::vector<CompId> branches;
  for (size_t k = 0; k < op.regions.size(); ++k) {
    const std::vector<uint32_t> captured = c.Captured({&op.regions[k], 1});
    std::vector<InstrId> values;
    for (uint32_t value : captured) {
      SHARDCALL_ASSIGN_OR_RETURN(const InstrId id, c.Value(value));
      values.push_back(id);
    }
    operands.push_back(c.Tuple(op, values));
    SHARDCALL_ASSIGN_OR_RETURN(const CompId branch, c.OverTuple(op, k, captured));
    branches.push_back(branch);
  }
  std::vector<const Shape*> shapes;
  for (size_t k = 0; k < op.results.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, c.ShapeOf(op, k));
    shapes.push_back(shape);
  }
  ConditionalAttrs attrs;
  attrs.branches = branches;
  attrs.is_pred = is_pred;
  return c.Finish(op,
                  c.Emit(op, Opcode::kConditional, c.context().MakeTuple(shapes), operands,
                         InternAttributes(c.context(), attrs)),
                  /*always_tuple=*/true);
}
absl::Status ReadCase(ComputationReader& c, const Operation& op) {
  return ReadBranches(c, op, /*is_pred=*/false);
}
absl::Status ReadIf(ComputationReader& c, const Operation& op) {
  return ReadBranches(c, op, /*is_pred=*/true);
}

absl::Status ReadCall(ComputationReader& c, const Operation& op) {
  const Attribute* callee = c.Find(op, "callee");
  if (callee == nullptr || callee->kind != Attribute::Kind::kSymbol) {
    return ModuleReader::Cannot("a call of an unknown form");
  }
  CallAttrs attrs;
  SHARDCALL_ASSIGN_OR_RETURN(attrs.to_apply,
                             c.reader().Function(c.code().attribute(callee->items[0]).text));
  return c.EmitWhole(op, Opcode::kCall, InternAttributes(c.context(), attrs));
}

absl::Status ReadBarrier(ComputationReader& c, const Operation& op) {
  SHARDCALL_ASSIGN_OR_RETURN(const auto operands, c.Operands(op));
  if (op.results.size() != op.operands.size()) {
    return ModuleReader::Cannot("a barrier with other results than operands");
  }
  const InstrId x = c.Root(op, operands);
  return c.Finish(
      op, c.Emit(op, Opcode::kOptBarrier, c.reader().module().instr(x).shape, {x}, nullptr));
}

absl::Status ReadToken(ComputationReader& c, const Operation& op) {
  return c.EmitWhole(op, Opcode::kAfterAll, nullptr);
}

constexpr OpRow kRows[] = {
    {NameOf(Opcode::kWhile), ReadWhile},
    {NameOf(Opcode::kConditional), ReadCase},
    {"stablehlo.if", ReadIf},
    {NameOf(Opcode::kCall), ReadCall},
    {NameOf(Opcode::kOptBarrier), ReadBarrier},
    {"stablehlo.create_token", ReadToken},
};

}  // namespace

absl::Span<const OpRow> ControlRows() { return kRows; }

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
