// SPDX-License-Identifier: Apache-2.0
// Rules of contractions. A contracted dimension is a reduction factor with pad 0: its padding must
// be zero in one operand and finite in the other.
#include "shardcall/partitioner/rules/rule_builder.h"

namespace shardcall {
inline namespace internal {
namespace {

// Which factor kinds the ragged and scaled forms allow.
struct DotKinds {
  bool ragged = false;
  bool contract = true;
};

void MapDot(const RuleArgs& args, const DotAttrs& a, const DotKinds& kinds, int first_result_dim,
            RuleBuilder* b) {
  const int result = args.num_operands();
  int out = first_result_dim;
  auto is_ragged = [&](int64_t lhs_dim) {
    return kinds.ragged && ContainsDim(a.lhs_ragged, lhs_dim);
  };
  for (size_t i = 0; i < a.lhs_batch.size(); ++i) {
    const int f = b->AddFor(
        0, static_cast<int>(a.lhs_batch[i]),
        is_ragged(a.lhs_batch[i]) ? FactorKind::kNeedReplication : FactorKind::kPassThrough);
    b->Map(1, static_cast<int>(a.rhs_batch[i]), f);
    b->Map(result, out++, f);
  }
  for (size_t i = 0; i < a.lhs_contracting.size(); ++i) {
    const bool sum = kinds.contract && !is_ragged(a.lhs_contracting[i]);
    const int f = b->AddFor(0, static_cast<int>(a.lhs_contracting[i]),
                            sum ? FactorKind::kReduction : FactorKind::kNeedReplication);
    if (sum) b->SetPad(f, 0);
    b->Map(1, static_cast<int>(a.rhs_contracting[i]), f);
  }
  for (int d = 0; d < args.rank(0); ++d) {
    if (ContainsDim(a.lhs_batch, d) || ContainsDim(a.lhs_contracting, d)) continue;
    b->Map(result, out++,
           b->AddFor(0, d, is_ragged(d) ? FactorKind::kNeedReplication : FactorKind::kPassThrough));
  }
  for (int d = 0; d < args.rank(1); ++d) {
    if (ContainsDim(a.rhs_batch, d) || ContainsDim(a.rhs_contracting, d) ||
        (kinds.ragged && ContainsDim(a.rhs_group, d))) {
      continue;
    }
    b->Map(result, out++, b->AddFor(1, d));
  }
}

}  // namespace

ShardingRule DotRule(const RuleArgs& args) {
  RuleBuilder b(args);
  MapDot(args, args.instr.as<DotAttrs>(), {}, 0, &b);
  return b.Build();
}

// Groups are runs along the ragged dimension, so that dimension, the group
// dimension and the sizes stay whole.
ShardingRule RaggedDotRule(const RuleArgs& args) {
  const DotAttrs& a = args.instr.as<DotAttrs>();
  RuleBuilder b(args);
  const bool contracting = !a.lhs_ragged.empty() && ContainsDim(a.lhs_contracting, a.lhs_ragged[0]);
  MapDot(args, a, {.ragged = true}, contracting ? 1 : 0, &b);
  return b.Build();
}

// A scale that has a batch or free dimension at full size is sharded with it; block dimensions
// need replication.
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
    b.Map(1, static_cast<int>(a.rhs_contracting[i]),
          b.AddFor(0, static_cast<int>(a.lhs_contracting[i]), FactorKind::kNeedReplication));
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
