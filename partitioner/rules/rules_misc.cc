// SPDX-License-Identifier: Apache-2.0
// Rules of convolution, fft, the linear algebra ops, batch norm, and of
// collectives inside manual regions.
#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "shardcall/partitioner/ir/shapes/dim_labels.h"
#include "shardcall/partitioner/rules/rule_builder.h"

namespace shardcall {
inline namespace internal {
// Feature groups are the major part of the features of operand, kernel and result, batch groups
// that of the operand's batch and of the features of kernel and result. A shard has a part of the
// groups.
ShardingRule ConvolutionRule(const RuleArgs& args) {
  const ConvolutionAttrs& a = args.instr.as<ConvolutionAttrs>();
  DimLabels labels;
  if (args.num_operands() != 2 || !ParseDimLabels(a.dim_labels, &labels) ||
      !a.sparsity_config.empty()) {
    return NeedReplicationRule(args);
  }
  const auto& [lhs, rhs, out] = labels;
  RuleBuilder b(args);
  const int kResult = 2;
  const auto size = [&](int t, int d) { return args.tensor(t)->dim(d); };
  const auto map = [&](int f, std::initializer_list<std::pair<int, int>> places) {
    for (const auto& [t, d] : places) b.Map(t, d, f);
  };
  const int64_t by_feature = a.feature_group_count, by_batch = a.batch_group_count;
  if (by_feature > 1 && by_batch > 1) return NeedReplicationRule(args);
  if (by_feature > 1) {
    map(b.Add(by_feature), {{0, lhs.feature}, {1, rhs.feature}, {kResult, out.feature}});
  }
  if (by_batch > 1) {
    map(b.Add(by_batch), {{0, lhs.batch}, {1, rhs.feature}, {kResult, out.feature}});
  }
  if (by_batch <= 1 || size(kResult, out.batch) > 1) {
    map(b.Add(size(kResult, out.batch)), {{0, lhs.batch}, {kResult, out.batch}});
  }
  if (by_feature <= 1 || size(1, rhs.batch) > 1) {
    const int f = b.Add(size(1, rhs.batch), FactorKind::kReduction, PartialOp::kSum);
    b.SetPad(f, 0);
    map(f, {{0, lhs.feature}, {1, rhs.batch}});
  }
  const int64_t features = size(kResult, out.feature) / std::max(by_feature, by_batch);
  if (std::max(by_feature, by_batch) <= 1 || features > 1) {
    map(b.Add(features), {{1, rhs.feature}, {kResult, out.feature}});
  }
  for (size_t s = 0; s < lhs.spatial.size(); ++s) {
    const Window& w = a.window;
    const bool trivial = w.size[s] == 1 && w.stride[s] == 1 && w.pad_low[s] == 0 &&
                         w.pad_high[s] == 0 && w.lhs_dilate[s] == 1;
    const int f =
        b.AddFor(0, lhs.spatial[s], trivial ? FactorKind::kPassThrough : FactorKind::kPermutation);
    b.MapWhole(kResult, out.spatial[s], f);
  }
  return b.Build();
}

ShardingRule FftRule(const RuleArgs& args) {
  const int whole = static_cast<int>(args.instr.as<FftAttrs>().length.size());
  std::vector<int64_t> dims;
  for (int d = args.rank(0) - whole; d < args.rank(0); ++d) dims.push_back(d);
  return PointwiseRuleExcept(args, dims);
}

ShardingRule CholeskyRule(const RuleArgs& args) {
  return PointwiseRuleExcept(args, {args.rank(0) - 2, args.rank(0) - 1});
}

// Right-hand sides are independent: they are columns of b if left_side, else rows.
ShardingRule TriangularSolveRule(const RuleArgs& args) {
  const bool left = args.instr.as<TriangularSolveAttrs>().left_side;
  RuleBuilder b(args);
  const int rank = args.rank(1);
  for (int d = 0; d < rank - 2; ++d) {
    const int f = b.AddFor(0, d);
    b.Map(1, d, f);
    b.Map(2, d, f);
  }
  const int n = b.AddFor(0, rank - 2, FactorKind::kNeedReplication);
  b.AddFor(0, rank - 1, FactorKind::kNeedReplication);
  const int free = b.AddFor(1, left ? rank - 1 : rank - 2);
  const int solved = left ? rank - 2 : rank - 1;
  b.Map(1, solved, n);
  b.Map(2, solved, n);
  b.Map(2, left ? rank - 1 : rank - 2, free);
  return b.Build();
}

// Statistics are reduced over all dimensions but the feature; inference only applies them.
ShardingRule BatchNormRule(const RuleArgs& args) {
  const int feature = static_cast<int>(args.instr.as<BatchNormAttrs>().feature_index);
  const bool inference = args.instr.opcode == Opcode::kBatchNormInference;
  RuleBuilder b(args);
  const int rank = args.rank(0);
  for (int d = 0; d < rank; ++d) {
    const int f = b.AddFor(
        0, d, d == feature || inference ? FactorKind::kPassThrough : FactorKind::kNeedReplication);
    for (int t = 1; t < args.num_tensors(); ++t) {
      // Tensors of rank 1 have one value per feature.
      if (args.rank(t) == rank && rank > 1)
        b.Map(t, d, f);
      else if (d == feature)
        b.Map(t, 0, f);
    }
  }
  return b.Build();
}

ShardingRule CollectivePassThroughRule(const RuleArgs& args) {
  const Opcode op = args.instr.opcode;
  RuleBuilder b(args);
  const int n = args.num_operands();
  const int results = static_cast<int>(args.results.size());
  if (op == Opcode::kRaggedAllToAll) {  // input, output, then four offset and size arrays
    for (int d = 1; d < args.rank(0); ++d) {
      const int f = b.AddFor(0, d);
      b.MapWhole(1, d, f);
      b.MapWhole(n, d, f);
    }
    return b.Build();
  }
  int64_t touched = -1;
  if (args.instr.attrs->kind == AttrKind::kCollective) {
    touched = args.instr.as<CollectiveAttrs>().dimension;
  }
  const bool exchange = op == Opcode::kAllToAll && touched < 0;  // the tuple form
  if (exchange) return PointwiseRule(args);
  for (int t = 0; t < n && t < results; ++t) {
    for (int d = 0; d < args.rank(t) && d < args.rank(n + t); ++d) {
      b.MapWhole(
          n + t, d,
          b.AddFor(t, d, d == touched ? FactorKind::kNeedReplication : FactorKind::kPassThrough));
    }
  }
  return b.Build();
}

}  // namespace internal
}  // namespace shardcall
