// SPDX-License-Identifier: Apache-2.0
// Collectives that are in the input program.
#include <optional>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/ir/shapes/collective_bytes.h"
#include "shardcall/partitioner/spmd/localize/backend_limits.h"
#include "shardcall/partitioner/spmd/localize/group_collectives.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/sharding/reshard/links.h"

namespace shardcall {
inline namespace internal {

void RecordProgramsOwn(OpBuilder& ops, const LocalOp& op, InstrId result) {
  const Module& m = ops.local();
  // The collective is the last instruction, or the operand of the get-tuple-elements of its
  // results.
  while (m.instr(result).opcode == Opcode::kGetTupleElement) result = m.operand(result, 0);
  ops.emitter().set_cause({CollectiveCause::Kind::kProgram, op.id, 0});
  ops.emitter().RecordAsWritten(result, ops.program().num_partitions);
}

namespace {

// What the program's own collective becomes on a backend that lacks it; none where it has it, or
// where no way is known, which CheckCollectives says of the program that is made.
LocalIds InAnotherWay(OpBuilder& ops, const LocalOp& op, absl::Span<const InstrId> operands) {
  const Module& m = ops.global();
  const BackendLimits& backend = m.context().Get<Links>().backend();
  const std::optional<Collective> kind = CollectiveOf(op.instr.opcode);
  const int64_t devices = ops.program().num_partitions;
  if (backend.has_all() || !kind.has_value() || m.header.replica_count != 1 ||
      devices != ops.program().mesh->num_devices() ||
      absl::c_any_of(operands, [&](InstrId x) { return !ops.builder().shape(x)->IsArray(); })) {
    return {};
  }
  Emitter& e = ops.emitter();
  e.set_cause({CollectiveCause::Kind::kProgram, op.id, 0});
  if (kind == Collective::kPermute) {
    const auto& attrs = op.instr.as<PermuteAttrs>();
    if (backend.Has(*kind) || attrs.channel_id < 0 || !attrs.slice_sizes.empty() ||
        operands.size() != 1) {
      return {};
    }
    return {SendPairs(e, operands[0], attrs.sources, attrs.targets)};
  }
  const auto& attrs = op.instr.as<CollectiveAttrs>();
  if (backend.Has(*kind) && RunsOver(backend, attrs.groups, devices)) return {};
  std::optional<ReplicaGroups> groups = DeviceGroupsOf(m, op.instr, devices);
  Opcode monoid = Opcode::kAdd;
  if (!groups.has_value() ||
      (attrs.to_apply.valid() && !RecognizeMonoid(m, attrs.to_apply, &monoid))) {
    return {};
  }
  GroupCollectives collectives(e, *groups);
  LocalIds out;
  for (InstrId x : operands) {
    switch (*kind) {
      case Collective::kAllGather:
        out.push_back(collectives.AllGather(x, static_cast<int>(attrs.dimension)));
        break;
      case Collective::kAllReduce: out.push_back(collectives.AllReduce(x, monoid)); break;
      case Collective::kReduceScatter:
        out.push_back(collectives.ReduceScatter(x, static_cast<int>(attrs.dimension), monoid));
        break;
      case Collective::kAllToAll:
        if (attrs.dimension < 0) return {};  // the form whose operands are the parts
        out.push_back(collectives.AllToAll(x, static_cast<int>(attrs.dimension)));
        break;
      case Collective::kBroadcast: out.push_back(collectives.Broadcast(x)); break;
      case Collective::kPermute:
      case Collective::kRaggedAllToAll: return {};
    }
  }
  return out;
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  const LocalIds operands = AssembleOperands(ops, op);
  if (LocalIds made = InAnotherWay(ops, op, operands); !made.empty()) return made;
  const LocalIds out = ops.Clone(op, operands);
  RecordProgramsOwn(ops, op, out[0]);
  return out;
}

}  // namespace

constexpr Strategy kCollectiveStrategy{.name = "as written", .emit = Emit};

}  // namespace internal
}  // namespace shardcall
