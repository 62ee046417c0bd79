// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall::inline internal {
namespace {

constexpr const Strategy* kStrategies[] = {
#define SHARDCALL_OP(opcode, text, attrs, arity, shape, rule, strategy, sized, lower, stablehlo, \
                     traits)                                                                     \
  &k##strategy##Strategy,
#include "shardcall/partitioner/ir/opcodes.inc"
#undef SHARDCALL_OP
};

constexpr const Strategy* kGeneral[] = {&kMovedStrategy};

// The dimension of operand 0 that consists of factor `f` alone, or -1.
int DimOf(const ShardingRule& rule, int f) {
  if (rule.operands.empty()) return -1;
  const TensorFactors& tensor = rule.operands[0];
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    if (tensor.dims[d].size() == 1 && tensor.dims[d][0] == f) return static_cast<int>(d);
  }
  return -1;
}

// Bytes of one device's shard under `s`, without padding.
double UnpaddedBytes(const Shape* shape, const Sharding* s) {
  double shards = 1;
  for (int i = 0; i < shape->rank(); ++i) shards *= s->num_shards(i);
  return static_cast<double>(shape->byte_size()) / shards;
}

// Bytes of the shards of all operands and results.
double TouchedShardBytes(const Module& module, const Instruction& instr, const Decision& d) {
  double bytes = 0;
  int flat = 0;
  for (InstrId o : module.operands(instr)) {
    const Shape* shape = module.instr(o).shape;
    for (int k = 0; k < shape->num_leaves(); ++k, ++flat) {
      if (d.operands[flat] != nullptr) bytes += UnpaddedBytes(shape->leaf(k), d.operands[flat]);
    }
  }
  for (int k = 0; k < instr.shape->num_leaves(); ++k) {
    if (d.produced[k] != nullptr) bytes += UnpaddedBytes(instr.shape->leaf(k), d.produced[k]);
  }
  return bytes;
}

}  // namespace

const Strategy& StrategyOf(Opcode opcode) { return *kStrategies[static_cast<int>(opcode)]; }

absl::Span<const Strategy* const> GeneralStrategies() { return kGeneral; }

bool AcceptsCrossing(const Module& module, const Instruction& instr, const ShardingRule& rule,
                     int f) {
  const auto accepts = StrategyOf(instr.opcode).accepts;
  if (accepts == nullptr) return false;
  const int d = DimOf(rule, f);
  if (d < 0) return false;
  // Empty dimensions are not sharded: there is nothing to fetch.
  if (module.instr(module.operands(instr)[0]).shape->dim(d) == 0) return false;
  if (instr.shape->IsArray() && d < instr.shape->rank() && instr.shape->dim(d) == 0) return false;
  return accepts(module, instr, d);
}

double StrategyBytes(const Strategy& strategy, const Module& module, const Instruction& instr,
                     const Decision& decision) {
  return strategy.bytes == nullptr ? 0 : strategy.bytes(module, instr, decision);
}

double StrategySeconds(const Strategy& strategy, const CostModel& cost, const Module& module,
                       const Instruction& instr, const Decision& decision) {
  if (strategy.seconds != nullptr) return strategy.seconds(cost, module, instr, decision);
  return cost.MemorySeconds(TouchedShardBytes(module, instr, decision));
}

}  // namespace shardcall::inline internal
