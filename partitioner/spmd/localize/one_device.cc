// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/localize/one_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/spmd/localize/group_collectives.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/plan/transfers.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

InstrId BroadcastResult(OpBuilder& ops, InstrId id, int flat, InstrId value, int64_t device,
                        absl::Span<const AxisRef> free) {
  ops.emitter().set_cause({CollectiveCause::Kind::kResult, id, flat});
  const size_t before = ops.records().size();
  value = GroupCollectives(ops.emitter(), ops.emitter().Groups(free)).FromOne(value);
  double bytes = 0;
  for (size_t k = before; k < ops.records().size(); ++k) bytes += ops.records()[k].bytes_moved;
  ops.CheckBytes(bytes, [&] {
    return absl::StrCat("the broadcast of result ", flat, " of %", ops.global().instr(id).name,
                        " from device ", device);
  });
  return value;
}

// pred[]: whether this is `device`, or has the same coordinates along the free axes.
InstrId OneDeviceLocalizer::IsThere(int64_t device, absl::Span<const AxisRef> free) {
  GraphBuilder& b = ops_.builder();
  const BaseMesh& mesh = *ops_.program().mesh;
  if (AxesSize(free) == mesh.num_devices()) {
    const InstrId id = b.Convert(ops_.emitter().PartitionId(), ElementType::kS64);
    return b.Compare(Direction::kEq, id, b.ConstantInt(ElementType::kS64, device));
  }
  const int64_t there = mesh.Coordinate(free, mesh.order().PositionOf(device));
  return b.Compare(Direction::kEq, ops_.emitter().Coordinate(&mesh, free),
                   b.ConstantInt(ElementType::kS32, there));
}

bool OneDeviceLocalizer::StaysThere(InstrId id, int flat, int64_t device) {
  if (users_.empty()) {
    users_.resize(ops_.global().num_instructions());
    for (int n = 0; n < ops_.global().num_instructions(); ++n) {
      for (InstrId o : ops_.global().operands(InstrId(n))) users_[o.value].push_back(InstrId(n));
    }
  }
  std::vector<std::pair<InstrId, int>> work{{id, flat}};
  while (!work.empty()) {
    const auto [value, k] = work.back();
    work.pop_back();
    const Instruction& instr = ops_.global().instr(value);
    if (ops_.global().comp(instr.computation).root == value) return false;
    for (InstrId user : users_[value.value]) {
      const Instruction& u = ops_.global().instr(user);
      if (u.opcode == Opcode::kGetTupleElement) {
        int begin = 0;
        const int64_t index = u.as<TupleIndexAttrs>().index;
        for (int64_t e = 0; e < index; ++e) begin += instr.shape->tuple()[e]->num_leaves();
        if (k >= begin && k < begin + u.shape->num_leaves()) work.push_back({user, k - begin});
        continue;
      }
      const bool there =
          l_.plan().ops[user.value].kind == PlanKind::kOneDevice ||
          (IsTransfer(u.opcode) && l_.plan().ops[user.value].kind == PlanKind::kDead);
      if (!there || RunsOnDevice(ops_.program(), user) != device) return false;
    }
  }
  return true;
}

// The op on whole operands, as in the global program.
LocalIds OneDeviceLocalizer::RunWhole(const LocalOp& op) {
  if (op.instr.opcode == Opcode::kCustomCall) return kCustomCallStrategy.emit(ops_, op);
  const InstrId start = TransferStart(ops_.global(), op.id);
  if (!start.valid()) return ops_.Clone(op, AssembleOperands(ops_, op));
  const Instruction& started = ops_.global().instr(start);
  LocalOp first{start, started, op.decision, op.operands, op.operand_shapes, {}};
  for (int k = 0; k < started.shape->num_leaves(); ++k) {
    first.result_shapes.push_back(started.shape->leaf(k));
  }
  const LocalIds under_way = ops_.Clone(first, AssembleOperands(ops_, first));
  // The result of a start is one value, whose elements are not read.
  return ops_.Clone(op, {ops_.local().operand(under_way[0], 0)});
}

void OneDeviceLocalizer::Localize(const LocalOp& op) {
  const InstrId start = TransferStart(ops_.global(), op.id);
  const int64_t device = RunsOnDevice(ops_.program(), start.valid() ? start : op.id);
  const AxisList free = FreeAxes(ops_.program(), op.id);
  const InstrId mine = IsThere(device, free);
  const InstrId operands = ops_.builder().Tuple(op.operands);
  const Shape* shape = ops_.builder().shape(operands);
  const CompId runs = ops_.AddBranch("on_device", shape, [&](const LocalIds& given) {
    return RunWhole({op.id, op.instr, op.decision, given, op.operand_shapes, op.result_shapes});
  });
  const CompId not_here = ops_.AddBranch("elsewhere", shape, [&](const LocalIds&) {
    GraphBuilder& b = ops_.builder();
    LocalIds results;
    for (const Shape* leaf : op.result_shapes) {
      results.push_back(leaf->IsArray() ? ZeroBits(b, leaf) : b.Add(Opcode::kAfterAll, {}));
    }
    return results;
  });

  ConditionalAttrs attrs;
  const CompId branches[] = {runs, not_here};
  attrs.is_pred = true;
  attrs.branches = branches;
  const InstrId chosen = ops_.builder().Add(Opcode::kConditional, {mine, operands, operands},
                                            InternAttributes(ops_.context(), attrs));
  LocalIds produced = ops_.Flatten(chosen);
  for (size_t k = 0; k < produced.size(); ++k) {
    const int flat = static_cast<int>(k);
    if (!op.result_shapes[k]->IsArray()) continue;
    if (op.decision.final[k] == op.decision.produced[k] && StaysThere(op.id, flat, device)) {
      continue;
    }
    produced[k] = BroadcastResult(ops_, op.id, flat, produced[k], device, free);
  }
  l_.StoreResults(op.id, op.decision, produced);
}

}  // namespace internal
}  // namespace shardcall
