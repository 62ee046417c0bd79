// SPDX-License-Identifier: Apache-2.0
// Rules of contractions. A contracted dimension is a reduction factor with pad 0: its padding must
// be zero in one operand and finite in the other.
#include <numeric>

#include "shardcall/partitioner/rules/rule_builder.h"

namespace shardcall {
inline namespace internal {
namespace {

// The dimensions of a dot, or of a ragged-dot with that ragged dimension of the lhs; -1: a dot. Of
// the group sizes, those dimensions that follow one of the lhs get its factor.
void MapDot(const RuleArgs& args, const DotAttrs& a, int64_t ragged, int first_result_dim,
            RuleBuilder* b) {
  const int result = args.num_operands();
  int out = first_result_dim;
  // A list of group sizes for each place of the dimensions before the ragged one of its kind.
  const bool lists = ragged >= 0 && args.rank(2) > 1;
  const bool free = !ContainsDim(a.lhs_batch, ragged) && !ContainsDim(a.lhs_contracting, ragged);
  bool before = true;  // the ragged dimension, among those of its kind
  int list = 0;
  const auto map_sizes = [&](int f) {
    if (lists) b->Map(2, list++, f);
  };
  for (size_t i = 0; i < a.lhs_batch.size(); ++i) {
    const int64_t d = a.lhs_batch[i];
    const int f = b->AddFor(0, static_cast<int>(d),
                            d == ragged ? FactorKind::kNeedReplication : FactorKind::kPassThrough);
    b->Map(1, static_cast<int>(a.rhs_batch[i]), f);
    b->Map(result, out++, f);
    before = before && d != ragged;
    if (before) map_sizes(f);
  }
  before = ContainsDim(a.lhs_contracting, ragged);
  for (size_t i = 0; i < a.lhs_contracting.size(); ++i) {
    const int64_t d = a.lhs_contracting[i];
    const int f = b->AddFor(0, static_cast<int>(d), FactorKind::kReduction);
    b->SetPad(f, 0);
    b->Map(1, static_cast<int>(a.rhs_contracting[i]), f);
    before = before && d != ragged;
    if (before) map_sizes(f);
  }
  before = free;
  for (int d = 0; d < args.rank(0); ++d) {
    if (ContainsDim(a.lhs_batch, d) || ContainsDim(a.lhs_contracting, d)) continue;
    const int f = b->AddFor(0, d);
    b->Map(result, out++, f);
    before = before && d != ragged;
    if (before) map_sizes(f);
  }
  for (int d = 0; d < args.rank(1); ++d) {
    if (ContainsDim(a.rhs_batch, d) || ContainsDim(a.rhs_contracting, d)) continue;
    if (ragged >= 0 && ContainsDim(a.rhs_group, d)) {
      b->AddFor(1, d, FactorKind::kReduction);
    } else {
      b->Map(result, out++, b->AddFor(1, d));
    }
  }
}

// A contracted dimension of a scaled-dot, dimension l of the lhs and r of the rhs: blocks, as many
// as both scales can be cut into, and what is in them. A scale that is a scalar or 1 along it
// counts for all.
void MapBlocks(const RuleArgs& args, int l, int r, RuleBuilder* b) {
  const int64_t size = args.tensor(0)->dim(l);
  const auto scales = [&](int t, int d) { return args.rank(t) == 0 ? 1 : args.tensor(t)->dim(d); };
  if (size == 0) return;
  int64_t blocks = size;
  for (const int64_t n : {scales(2, l), scales(3, r)}) {
    if (n != 1) blocks = std::gcd(blocks, n);
  }
  const int f = b->Add(blocks);
  if (HasIdentities(args, PartialOp::kSum, args.num_operands())) {
    b->factor(f).kind = FactorKind::kReduction;
    b->SetPad(f, 0);
  } else {
    b->factor(f).kind = FactorKind::kNeedReplication;
  }
  const auto map = [&](int t, int d, int64_t n) {
    b->Map(t, d, f);
    // A factor of its own also where it has one element: blocks are never cut.
    b->Map(t, d, b->Add(n / blocks, FactorKind::kNeedReplication));
  };
  map(0, l, size);
  map(1, r, size);
  if (scales(2, l) != 1) map(2, l, scales(2, l));
  if (scales(3, r) != 1) map(3, r, scales(3, r));
}

}  // namespace

ShardingRule DotRule(const RuleArgs& args) {
  RuleBuilder b(args);
  MapDot(args, args.instr.as<DotAttrs>(), -1, 0, &b);
  return b.Build();
}

// Groups are runs along the ragged dimension. A shard of it has a part of them, by sizes of its own
// (spmd/strategies/ragged_dot.cc), and a shard of the groups gives their rows or zero, so that the
// shards' results are added. The sizes themselves stay whole. A ragged batch dimension, too.
ShardingRule RaggedDotRule(const RuleArgs& args) {
  const DotAttrs& a = args.instr.as<DotAttrs>();
  if (a.lhs_ragged.size() != 1) return NeedReplicationRule(args);
  RuleBuilder b(args);
  const int64_t ragged = a.lhs_ragged[0];
  MapDot(args, a, ragged, ContainsDim(a.lhs_contracting, ragged) ? 1 : 0, &b);
  return b.Build();
}

// A scale that has a batch or free dimension at full size is sharded with it. A contracted
// dimension consists of blocks that have one scale each in both operands; shards of whole blocks
// are summed.
ShardingRule ScaledDotRule(const RuleArgs& args) {
  const DotAttrs& a = args.instr.as<DotAttrs>();
  RuleBuilder b(args);
  const int result = args.num_operands();
  auto scale = [&](int operand, int dim) {
    const int t = operand + 2;
    return args.rank(t) == args.rank(operand) &&
           args.tensor(t)->dim(dim) == args.tensor(operand)->dim(dim);
  };
  // A scale that is a scalar or 1 along the dimension applies to every shard.
  auto fits = [&](int operand, int dim) {
    const int t = operand + 2;
    return args.rank(t) == 0 || scale(operand, dim) || args.tensor(t)->dim(dim) == 1;
  };
  int out = 0;
  for (size_t i = 0; i < a.lhs_batch.size(); ++i) {
    const int l = static_cast<int>(a.lhs_batch[i]), r = static_cast<int>(a.rhs_batch[i]);
    const bool ok = fits(0, l) && fits(1, r);
    const int f = b.AddFor(0, l, ok ? FactorKind::kPassThrough : FactorKind::kNeedReplication);
    b.Map(1, r, f);
    if (scale(0, l)) b.Map(2, l, f);
    if (scale(1, r)) b.Map(3, r, f);
    b.Map(result, out++, f);
  }
  for (size_t i = 0; i < a.lhs_contracting.size(); ++i) {
    MapBlocks(args, static_cast<int>(a.lhs_contracting[i]), static_cast<int>(a.rhs_contracting[i]),
              &b);
  }
  for (int side = 0; side < 2; ++side) {
    const Ints batch = side == 0 ? a.lhs_batch : a.rhs_batch;
    const Ints contracting = side == 0 ? a.lhs_contracting : a.rhs_contracting;
    for (int d = 0; d < args.rank(side); ++d) {
      if (ContainsDim(batch, d) || ContainsDim(contracting, d)) continue;
      const int f = b.AddFor(
          side, d, fits(side, d) ? FactorKind::kPassThrough : FactorKind::kNeedReplication);
      if (scale(side, d)) b.Map(side + 2, d, f);
      b.Map(result, out++, f);
    }
  }
  return b.Build();
}

}  // namespace internal
}  // namespace shardcall
