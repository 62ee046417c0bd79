// SPDX-License-Identifier: Apache-2.0
// Rules of reductions, windows, sort, top-k and scan. Initial values have no
// dimensions.
#include "shardcall/partitioner/ir/analysis/selecting_reducer.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/rules/rule_builder.h"

namespace shardcall {
inline namespace internal {
namespace {

// A window of size 1 without stride, padding or dilation: there is no halo.
bool IsTrivialWindow(const Window& w, int d) {
  return w.size[d] == 1 && w.stride[d] == 1 && w.pad_low[d] == 0 && w.pad_high[d] == 0 &&
         w.lhs_dilate[d] == 1 && w.rhs_dilate[d] == 1;
}

}  // namespace

// A reducer that selects, such as that of an argmax, has no partial sums, nor has one that a
// program made for itself: the results of the shards are brought together and reduced once more.
ShardingRule ReduceRule(const RuleArgs& args) {
  const ReduceAttrs& a = args.instr.as<ReduceAttrs>();
  RuleBuilder b(args);
  const int inputs = args.num_operands() / 2;
  PartialOp op = PartialOp::kSum;
  const bool known = inputs == 1 && RecognizePartialOp(args.module, a.to_apply, &op);
  const bool merges = !known && (args.by_parts || IsSelectingReducer(args.module, a.to_apply));
  int out = 0;
  for (int d = 0; d < args.rank(0); ++d) {
    const bool reduced = ContainsDim(a.dimensions, d);
    const FactorKind kind = !reduced ? FactorKind::kPassThrough
                            : known  ? FactorKind::kReduction
                            : merges ? FactorKind::kPermutation
                                     : FactorKind::kNeedReplication;
    const int f = b.AddFor(0, d, kind, op);
    for (int t = 1; t < inputs; ++t) b.Map(t, d, f);
    if (reduced) continue;
    for (int r = 0; r < static_cast<int>(args.results.size()); ++r) {
      b.Map(args.num_operands() + r, out, f);
    }
    ++out;
  }
  return b.Build();
}

ShardingRule ReduceWindowRule(const RuleArgs& args) {
  const Window& w = args.instr.as<ReduceWindowAttrs>().window;
  RuleBuilder b(args);
  const int inputs = args.num_operands() / 2;
  for (int d = 0; d < args.rank(0); ++d) {
    const int f =
        b.AddFor(0, d, IsTrivialWindow(w, d) ? FactorKind::kPassThrough : FactorKind::kPermutation);
    for (int t = 1; t < inputs; ++t) b.Map(t, d, f);
    for (int r = 0; r < static_cast<int>(args.results.size()); ++r) {
      b.MapWhole(args.num_operands() + r, d, f);
    }
  }
  return b.Build();
}

ShardingRule SelectAndScatterRule(const RuleArgs& args) {
  const Window& w = args.instr.as<SelectAndScatterAttrs>().window;
  RuleBuilder b(args);
  for (int d = 0; d < args.rank(0); ++d) {
    const int f =
        b.AddFor(0, d, IsTrivialWindow(w, d) ? FactorKind::kPassThrough : FactorKind::kPermutation);
    b.MapWhole(1, d, f);
    b.MapWhole(args.num_operands(), d, f);
  }
  return b.Build();
}

ShardingRule SortRule(const RuleArgs& args) {
  const int64_t d = args.instr.as<SortAttrs>().dimension;
  return PointwiseRuleExcept(args, absl::MakeConstSpan(&d, 1));
}

// Each shard of a line has its own best elements, of which the best are the result.
ShardingRule TopKRule(const RuleArgs& args) {
  RuleBuilder b(args);
  const int line = args.rank(0) - 1;
  for (int d = 0; d < line; ++d) {
    const int f = b.AddFor(0, d);
    for (int t = 1; t < args.num_tensors(); ++t) b.Map(t, d, f);
  }
  if (line >= 0) b.AddFor(0, line, FactorKind::kPermutation);
  return b.Build();
}

// Inputs and outputs have the scanned dimension, carries do not.
ShardingRule ScanRule(const RuleArgs& args) {
  const ScanAttrs& a = args.instr.as<ScanAttrs>();
  RuleBuilder b(args);
  const int inputs = args.num_operands() - static_cast<int>(a.num_carries);
  const int outputs = static_cast<int>(args.results.size()) - static_cast<int>(a.num_carries);
  const int scanned =
      inputs > 0 ? b.AddFor(0, static_cast<int>(a.dimension), FactorKind::kNeedReplication) : -1;
  if (scanned < 0) return b.Build();
  for (int t = 1; t < inputs; ++t) b.MapWhole(t, static_cast<int>(a.dimension), scanned);
  for (int r = 0; r < outputs; ++r) {
    b.MapWhole(args.num_operands() + r, static_cast<int>(a.dimension), scanned);
  }
  return b.Build();
}

}  // namespace internal
}  // namespace shardcall
