// SPDX-License-Identifier: Apache-2.0
// What one device runs: a conditional on the partition id, whose branch without the op
// yields zeros, and a sum of the bits, which brings those of that device to all. No
// collective stands in a branch.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/plan/transfers.h"
#include "shardcall/partitioner/spmd/strategies/strategy.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

ElementType BitsOfSize(int bits) {
  switch (bits) {
    case 4: return ElementType::kU4;
    case 8: return ElementType::kU8;
    case 16: return ElementType::kU16;
    case 32: return ElementType::kU32;
    default: return ElementType::kU64;
  }
}

}  // namespace

// All but one device of a group along `free` hold zeros, so the sum of the bits is that
// device's value, its negative zeros and NaNs too. NCCL has no sums of 4 and 16 bits:
// those are widened.
InstrId Localizer::FromDevice(InstrId x, absl::Span<const AxisRef> free) {
  GraphBuilder& b = builder();
  const ElementType type = b.type(x);
  if (IsComplex(type)) {
    const InstrId re = FromDevice(b.Unary(Opcode::kReal, x), free);
    const InstrId im = FromDevice(b.Unary(Opcode::kImag, x), free);
    return b.Binary(Opcode::kComplex, re, im);
  }
  if (type == ElementType::kPred) return emitter().AllReduce(x, free, PartialOp::kOr);
  if (IsFloat(type)) {
    const InstrId bits = b.BitcastConvert(x, BitsOfSize(ElementTypeBits(type)));
    return b.BitcastConvert(FromDevice(bits, free), type);
  }
  const int width = ElementTypeBits(type);
  if (width == 8 || width >= 32) return emitter().AllReduce(x, free, PartialOp::kSum);
  const InstrId wide = b.Convert(x, width < 8 ? ElementType::kS8 : ElementType::kS32);
  return b.Convert(emitter().AllReduce(wide, free, PartialOp::kSum), type);
}

InstrId Localizer::BroadcastResult(InstrId id, int flat, InstrId value, int64_t device,
                                   absl::Span<const AxisRef> free) {
  emitter().set_cause({CollectiveCause::Kind::kResult, id, flat});
  const size_t before = shared_.records.size();
  value = FromDevice(value, free);
  double bytes = 0;
  for (size_t k = before; k < shared_.records.size(); ++k) bytes += shared_.records[k].bytes_moved;
  if (!WithinLimit(bytes)) {
    FailAboveLimit(absl::StrCat("the broadcast of result ", flat, " of %", global_.instr(id).name,
                                " from device ", device),
                   bytes);
  }
  return value;
}

// pred[]: whether this is the device, or stands where it does along the free axes.
InstrId Localizer::IsThere(int64_t device, absl::Span<const AxisRef> free) {
  GraphBuilder& b = builder();
  const BaseMesh& mesh = *program_.mesh;
  if (AxesSize(free) == mesh.num_devices()) {
    const InstrId id = b.Convert(emitter().PartitionId(), ElementType::kS64);
    return b.Compare(Direction::kEq, id, b.ConstantInt(ElementType::kS64, device));
  }
  const int64_t there = mesh.Coordinate(free, mesh.order().PositionOf(device));
  return b.Compare(Direction::kEq, emitter().Coordinate(&mesh, free),
                   b.ConstantInt(ElementType::kS32, there));
}

bool Localizer::StaysThere(InstrId id, int flat, int64_t device) {
  if (users_.empty()) {
    users_.resize(global_.num_instructions());
    for (int n = 0; n < global_.num_instructions(); ++n) {
      for (InstrId o : global_.operands(InstrId(n))) users_[o.value].push_back(InstrId(n));
    }
  }
  std::vector<std::pair<InstrId, int>> work{{id, flat}};
  while (!work.empty()) {
    const auto [value, k] = work.back();
    work.pop_back();
    const Instruction& instr = global_.instr(value);
    if (global_.comp(instr.computation).root == value) return false;
    for (InstrId user : users_[value.value]) {
      const Instruction& u = global_.instr(user);
      if (u.opcode == Opcode::kGetTupleElement) {
        int begin = 0;
        const int64_t index = u.as<TupleIndexAttrs>().index;
        for (int64_t e = 0; e < index; ++e) begin += instr.shape->tuple()[e]->num_leaves();
        if (k >= begin && k < begin + u.shape->num_leaves()) work.push_back({user, k - begin});
        continue;
      }
      const bool there = plan_.ops[user.value].kind == PlanKind::kOneDevice ||
                         (IsTransfer(u.opcode) && plan_.ops[user.value].kind == PlanKind::kDead);
      if (!there || RunsOnDevice(program_, user) != device) return false;
    }
  }
  return true;
}

CompId Localizer::AddBranch(absl::string_view name, const Shape* parameter,
                            absl::FunctionRef<LocalIds(const LocalIds&)> make) {
  const Metadata* metadata = builder().metadata();
  const CompId branch = local().AddComputation(name);
  std::unique_ptr<Emitter> outer = std::move(emitter_);
  emitter_ = std::make_unique<Emitter>(&result_.module, branch, program_.mesh, &shared_);
  builder().set_metadata(metadata);
  const LocalIds results = make(Flatten(builder().Parameter(0, parameter)));
  builder().SetRoot(builder().Tuple(results));
  emitter_ = std::move(outer);
  return branch;
}

// The op on whole operands, as the program has it.
LocalIds Localizer::RunWhole(const LocalOp& op) {
  if (op.instr.opcode == Opcode::kCustomCall) return kCustomCallStrategy.emit(*this, op);
  const InstrId start = TransferStart(global_, op.id);
  if (!start.valid()) return Clone(op, AssembleOperands(*this, op));
  const Instruction& started = global_.instr(start);
  LocalOp first{start, started, op.decision, op.operands, op.operand_shapes, {}};
  for (int k = 0; k < started.shape->num_leaves(); ++k) {
    first.result_shapes.push_back(started.shape->leaf(k));
  }
  const LocalIds under_way = Clone(first, AssembleOperands(*this, first));
  // What is under way is one value, whose elements nothing reads.
  return Clone(op, {local().operand(under_way[0], 0)});
}

void Localizer::LocalizeOneDevice(const LocalOp& op) {
  const InstrId start = TransferStart(global_, op.id);
  const int64_t device = RunsOnDevice(program_, start.valid() ? start : op.id);
  const AxisList free = FreeAxes(program_, op.id);
  const InstrId mine = IsThere(device, free);
  const InstrId operands = builder().Tuple(op.operands);
  const Shape* shape = builder().shape(operands);
  const CompId runs = AddBranch("on_device", shape, [&](const LocalIds& given) {
    return RunWhole({op.id, op.instr, op.decision, given, op.operand_shapes, op.result_shapes});
  });
  const CompId not_here = AddBranch("elsewhere", shape, [&](const LocalIds&) {
    GraphBuilder& b = builder();
    LocalIds results;
    for (const Shape* leaf : op.result_shapes) {
      results.push_back(leaf->IsArray() ? b.BroadcastScalar(b.Zero(leaf->element_type()), leaf)
                                        : b.Add(Opcode::kAfterAll, {}));
    }
    return results;
  });

  ConditionalAttrs attrs;
  const CompId branches[] = {runs, not_here};
  attrs.is_pred = true;
  attrs.branches = branches;
  const InstrId chosen = builder().Add(Opcode::kConditional, {mine, operands, operands},
                                       InternAttributes(context_, attrs));
  LocalIds produced = Flatten(chosen);
  for (size_t k = 0; k < produced.size(); ++k) {
    const int flat = static_cast<int>(k);
    if (!op.result_shapes[k]->IsArray()) continue;
    if (op.decision.final[k] == op.decision.produced[k] && StaysThere(op.id, flat, device)) {
      continue;
    }
    produced[k] = BroadcastResult(op.id, flat, produced[k], device, free);
  }
  StoreResults(op.id, op.decision, produced);
}

}  // namespace shardcall
