// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/strategy.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "shardcall/partitioner/ir/shapes/instruction_cost.h"

namespace shardcall {
inline namespace internal {
namespace {

// The strategy in each op's row.
constexpr const Strategy* kOwn[] = {
#define SHARDCALL_OP(opcode, text, attrs, arity, shape, rule, strategy, sized, lower, stablehlo, \
                     traits)                                                                     \
  &k##strategy##Strategy,
#include "shardcall/partitioner/ir/opcodes.inc"
#undef SHARDCALL_OP
};

// The ops that have others beside it.
struct Several {
  Opcode opcode;
  const Strategy* strategies[4];  // the last ones may be null
};
constexpr Several kSeveral[] = {
    {Opcode::kCholesky, {&kLocalStrategy, &kCholeskyByBlocksStrategy}},
    {Opcode::kConcatenate, {&kConcatenateStrategy, &kConcatenateThroughStrategy, &kRotateStrategy}},
    {Opcode::kCustomCall,
     {&kCustomCallStrategy, &kCholeskyByBlocksStrategy, &kSolveByBlocksStrategy,
      &kRightSidesStrategy}},
    {Opcode::kConvolution, {&kConvolutionStrategy, &kConvolutionSumStrategy}},
    {Opcode::kDynamicUpdateSlice, {&kDynamicUpdateSliceStrategy, &kPlacedUpdateStrategy}},
    {Opcode::kFft,
     {&kLocalStrategy, &kFftOfDimsStrategy, &kFftOfLineStrategy, &kFftOfRealLineStrategy}},
    {Opcode::kPad, {&kPadStrategy, &kPadThroughStrategy}},
    {Opcode::kReshape, {&kLocalStrategy, &kReshapeExchangeStrategy}},
    {Opcode::kReduceWindow, {&kReduceWindowStrategy, &kCumulativeStrategy}},
    {Opcode::kSort, {&kLocalStrategy, &kEndsOfLineStrategy, &kSortOfLineStrategy}},
    {Opcode::kSlice,
     {&kSliceStrategy, &kSliceStridedStrategy, &kSliceSumStrategy, &kSliceThroughStrategy}},
    {Opcode::kTriangularSolve, {&kLocalStrategy, &kSolveByBlocksStrategy}},
};

constexpr const Strategy* kGeneral[] = {&kMovedStrategy};

// Whether the strategy may shard factor f, which is crossing. Never if a dimension of it is empty:
// there is nothing to exchange.
bool Crosses(const OpQuery& op, const Strategy& strategy, int f) {
  if (strategy.crosses == nullptr || op.rule->factors[f].size == 0) return false;
  for (const auto& [key, extent] : op.rule->extents) {
    if (key.second == f && extent == 0) return false;
  }
  return strategy.crosses(op, f);
}

// Bytes of one device's shard under `s`, without padding.
double UnpaddedBytes(const Shape* shape, const Sharding* s) {
  double shards = 1;
  for (int i = 0; i < shape->rank(); ++i) shards *= s->num_shards(i);
  return static_cast<double>(shape->byte_size()) / shards;
}

// Bytes of the shards that an op reads and writes.
double TouchedShardBytes(const Module& module, const Instruction& instr, const Decision& d) {
  absl::InlinedVector<double, 12> operands, results;
  const auto add = [](const Shape* shape, const Sharding* s, auto* out) {
    out->push_back(s == nullptr ? 0 : UnpaddedBytes(shape, s));
  };
  int flat = 0;
  for (InstrId o : module.operands(instr)) {
    const Shape* shape = module.instr(o).shape;
    for (int k = 0; k < shape->num_leaves(); ++k) {
      add(shape->leaf(k), d.operands[flat++], &operands);
    }
  }
  for (int k = 0; k < instr.shape->num_leaves(); ++k) {
    add(instr.shape->leaf(k), d.produced[k], &results);
  }
  return TouchedOf(instr.opcode, operands, results);
}

}  // namespace

absl::Span<const Strategy* const> StrategiesOf(Opcode opcode) {
  for (const Several& row : kSeveral) {
    if (row.opcode != opcode) continue;
    const auto* const end =
        std::find(std::begin(row.strategies), std::end(row.strategies), nullptr);
    return absl::MakeConstSpan(row.strategies, end - std::begin(row.strategies));
  }
  return absl::MakeConstSpan(&kOwn[static_cast<int>(opcode)], 1);
}

bool ReadsSources(Opcode opcode) {
  static const std::array<bool, kNumOpcodes> reads = [] {
    std::array<bool, kNumOpcodes> out{};
    for (const Several& row : kSeveral) {
      for (const Strategy* s : row.strategies) {
        out[static_cast<int>(row.opcode)] |= s != nullptr && s->reads_sources;
      }
    }
    return out;
  }();
  return reads[static_cast<int>(opcode)];
}

absl::Span<const Strategy* const> GeneralStrategies() { return kGeneral; }

IndexSet FactorsAllowedByRule(const ShardingRule& rule) {
  IndexSet allowed;
  for (int f = 0; f < static_cast<int>(rule.factors.size()); ++f) {
    if (rule.factors[f].kind != FactorKind::kNeedReplication && !IsCrossing(rule, f)) {
      allowed.Insert(f);
    }
  }
  return allowed;
}

IndexSet AllowedFactors(const OpQuery& op, const Strategy& strategy) {
  IndexSet allowed = FactorsAllowedByRule(*op.rule);
  for (int f = 0; f < static_cast<int>(op.rule->factors.size()); ++f) {
    if (allowed.Contains(f) || op.rule->factors[f].kind == FactorKind::kNeedReplication) continue;
    if (Crosses(op, strategy, f)) allowed.Insert(f);
  }
  return allowed;
}

double StrategySeconds(const Strategy& strategy, const CostModel& cost, const Module& module,
                       const Instruction& instr, const Decision& decision) {
  if (strategy.seconds != nullptr) return strategy.seconds(cost, module, instr, decision);
  return cost.MemorySeconds(TouchedShardBytes(module, instr, decision));
}

}  // namespace internal
}  // namespace shardcall
