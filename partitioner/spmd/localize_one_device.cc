// SPDX-License-Identifier: Apache-2.0
// A custom call of sharding={maximal device=k}: a conditional on the partition
// id, whose branch without the call yields zeros, and a sum of the bits, which
// brings those of device k to all. No collective stands in a branch.
#include <memory>
#include <utility>

#include "partitioner/spmd/localizer.h"
#include "sharding/status.h"

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

// All but one device hold zeros, so the sum of the bits is that device's value, its
// negative zeros and NaNs too. NCCL has no sums of 4 and 16 bits: those are widened.
InstrId Localizer::FromDevice(InstrId x, int64_t device) {
  GraphBuilder& b = builder();
  const ElementType type = b.type(x);
  const AxisList all = Complement(*program_.mesh, {});
  if (IsComplex(type)) {
    const InstrId re = FromDevice(b.Unary(Opcode::kReal, x), device);
    const InstrId im = FromDevice(b.Unary(Opcode::kImag, x), device);
    return b.Binary(Opcode::kComplex, re, im);
  }
  if (type == ElementType::kPred) return emitter().AllReduce(x, all, PartialOp::kOr);
  if (IsFloat(type)) {
    const InstrId bits = b.BitcastConvert(x, BitsOfSize(ElementTypeBits(type)));
    return b.BitcastConvert(FromDevice(bits, device), type);
  }
  const int width = ElementTypeBits(type);
  if (width == 8 || width >= 32) return emitter().AllReduce(x, all, PartialOp::kSum);
  const InstrId wide = b.Convert(x, width < 8 ? ElementType::kS8 : ElementType::kS32);
  return b.Convert(emitter().AllReduce(wide, all, PartialOp::kSum), type);
}

void Localizer::LocalizeOneDevice(const LocalOp& op) {
  const int64_t device = MaximalDevice(program_, op.id);
  const InstrId id = builder().Convert(emitter().PartitionId(), ElementType::kS64);
  const InstrId mine = builder().Compare(Direction::kEq, id,
                                         builder().ConstantInt(ElementType::kS64, device));
  const InstrId operands = builder().Tuple(op.operands);
  const Shape* shape = builder().shape(operands);
  const Metadata* metadata = builder().metadata();

  std::unique_ptr<Emitter> outer = std::move(emitter_);
  std::vector<CompId> branches;
  for (const bool runs : {true, false}) {
    const CompId branch = local().AddComputation(runs ? "on_device" : "elsewhere");
    branches.push_back(branch);
    emitter_ = std::make_unique<Emitter>(&result_.module, branch, program_.mesh, &shared_);
    GraphBuilder& b = builder();
    b.set_metadata(metadata);
    const InstrId given = b.Parameter(0, shape);
    LocalIds results;
    if (runs) {
      LocalOp inside{op.id, op.instr, op.decision, Flatten(given), op.operand_shapes,
                     op.result_shapes};
      results = HandleCustomCall(*this, inside);
    } else {
      for (const Shape* leaf : op.result_shapes) {
        results.push_back(leaf->IsArray() ? b.BroadcastScalar(b.Zero(leaf->element_type()), leaf)
                                          : b.Add(Opcode::kAfterAll, {}));
      }
    }
    b.SetRoot(b.Tuple(results));
  }
  emitter_ = std::move(outer);

  ConditionalAttrs attrs;
  attrs.is_pred = true;
  attrs.branches = branches;
  const InstrId chosen = builder().Add(Opcode::kConditional, {mine, operands, operands},
                                       InternAttributes(context_, attrs));
  LocalIds produced = Flatten(chosen);
  for (size_t k = 0; k < produced.size(); ++k) {
    emitter().set_cause({CollectiveCause::Kind::kResult, op.id, static_cast<int>(k)});
    if (op.result_shapes[k]->IsArray()) produced[k] = FromDevice(produced[k], device);
  }
  StoreResults(op.id, op.decision, produced);
}

}  // namespace shardcall
