// SPDX-License-Identifier: Apache-2.0
// Rules of reductions, windows, sort, top-k and scan. Initial values have no
// dimensions.
#include "shardcall/partitioner/ir/analysis/accumulated_dim.h"
#include "shardcall/partitioner/ir/analysis/pointwise_body.h"
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

// Whether a scan combines what it has so far with a slice of the inputs as it would combine two
// slices, in any order of combining. Then shards are scanned alone, and their totals combined.
bool CombinesSlices(const RuleArgs& args, const ScanAttrs& a, int inputs) {
  if (a.is_associative != 1 || inputs != a.num_carries) return false;
  for (int k = 0; k < inputs; ++k) {
    const Shape* slice = args.tensor(k);
    const Shape* carry = args.tensor(inputs + k);
    if (slice->element_type() != carry->element_type()) return false;
    std::vector<int64_t> dims(slice->dims().begin(), slice->dims().end());
    dims.erase(dims.begin() + a.dimension);
    if (carry->dims() != dims) return false;
  }
  return true;
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

// Windows reach a little beyond a shard. What accumulates, from the first element to each one, does
// so in parts, or needs the dimension whole.
ShardingRule ReduceWindowRule(const RuleArgs& args) {
  const auto& a = args.instr.as<ReduceWindowAttrs>();
  const Window& w = a.window;
  RuleBuilder b(args);
  const int inputs = args.num_operands() / 2;
  const int accumulated = AccumulatedDim(w, args.tensor(0));
  PartialOp known;
  const bool parts = inputs == 1 && (args.by_parts || IsSelectingReducer(args.module, a.to_apply) ||
                                     RecognizePartialOp(args.module, a.to_apply, &known));
  for (int d = 0; d < args.rank(0); ++d) {
    const int f = b.AddFor(0, d,
                           IsTrivialWindow(w, d)       ? FactorKind::kPassThrough
                           : d != accumulated || parts ? FactorKind::kPermutation
                                                       : FactorKind::kNeedReplication);
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

// Inputs and outputs have the scanned dimension, carries do not. A body that works element by
// element does so on shards of the others; any other body needs these whole.
ShardingRule ScanRule(const RuleArgs& args) {
  const ScanAttrs& a = args.instr.as<ScanAttrs>();
  RuleBuilder b(args);
  const int inputs = args.num_operands() - static_cast<int>(a.num_carries);
  const int outputs = static_cast<int>(args.results.size()) - static_cast<int>(a.num_carries);
  if (inputs <= 0) return b.Build();
  const int d = static_cast<int>(a.dimension);
  const int scanned = b.AddFor(
      0, d,
      CombinesSlices(args, a, inputs) ? FactorKind::kPermutation : FactorKind::kNeedReplication);
  std::vector<int64_t> slice(args.tensor(0)->dims().begin(), args.tensor(0)->dims().end());
  slice.erase(slice.begin() + d);
  const FactorKind kind = IsPointwiseBody(args.module, a.to_apply, slice)
                              ? FactorKind::kPassThrough
                              : FactorKind::kNeedReplication;
  std::vector<int> others;  // of the slice's dimensions
  for (int k = 0; k < static_cast<int>(slice.size()); ++k) {
    others.push_back(b.AddFor(0, k + (k >= d ? 1 : 0), kind));
  }
  for (int t = 1; t < args.num_tensors(); ++t) {
    const int r = t - args.num_operands();
    const bool stacked = r < 0 ? t < inputs : r < outputs;
    if (stacked) b.MapWhole(t, d, scanned);
    if (args.rank(t) - (stacked ? 1 : 0) != static_cast<int>(slice.size())) continue;
    for (int k = 0; k < static_cast<int>(slice.size()); ++k) {
      const int dim = k + (stacked && k >= d ? 1 : 0);
      if (args.tensor(t)->dim(dim) == slice[k]) b.Map(t, dim, others[k]);
    }
  }
  return b.Build();
}

}  // namespace internal
}  // namespace shardcall
