// SPDX-License-Identifier: Apache-2.0
// Rules of the ops that move data: broadcast, reshape, transpose, concatenate, slice, pad,
// reverse, iota. A dimension along which an op shifts data is a permutation factor with an extent
// per tensor.
#include <numeric>

#include "shardcall/partitioner/rules/rule_builder.h"

namespace shardcall {
inline namespace internal {

ShardingRule BroadcastRule(const RuleArgs& args) {
  const Ints dims = args.instr.as<DimensionsAttrs>().dimensions;
  RuleBuilder b(args);
  std::vector<int> factor(args.rank(1), -1);
  for (int d = 0; d < args.rank(0); ++d) {
    if (args.tensor(0)->dim(d) == args.tensor(1)->dim(dims[d])) factor[dims[d]] = b.AddFor(0, d);
  }
  for (int d = 0; d < args.rank(1); ++d) {
    if (factor[d] >= 0)
      b.Map(1, d, factor[d]);
    else
      b.AddFor(1, d);
  }
  return b.Build();
}

namespace {

// A dimension of a reshape while its factors are found from both ends.
struct Cut {
  int64_t rest;
  FactorList major, minor;  // minor: innermost first
};

}  // namespace

// Both shapes are split at every common boundary, from the major end and, where that stops, from
// the minor end: [6,4] -> [8,3] share a major factor of 2; the rest (3,4 against 4,3) needs
// replication.
ShardingRule ReshapeRule(const RuleArgs& args) {
  RuleBuilder b(args);
  const int ra = args.rank(0), rb = args.rank(1);
  if (args.tensor(0)->dims() == args.tensor(1)->dims()) return PointwiseRule(args);
  if (args.tensor(0)->num_elements() == 0) return NeedReplicationRule(args);
  std::vector<Cut> x, y;
  for (int d = 0; d < ra; ++d) x.push_back({args.tensor(0)->dim(d), {}, {}});
  for (int d = 0; d < rb; ++d) y.push_back({args.tensor(1)->dim(d), {}, {}});

  int i = 0, j = 0;
  while (true) {
    while (i < ra && x[i].rest == 1) ++i;
    while (j < rb && y[j].rest == 1) ++j;
    if (i >= ra || j >= rb) break;
    const int64_t common = std::gcd(x[i].rest, y[j].rest);
    if (common == 1) break;
    const int f = b.Add(common);
    x[i].major.push_back(f);
    y[j].major.push_back(f);
    x[i].rest /= common;
    y[j].rest /= common;
  }
  int p = ra - 1, q = rb - 1;
  while (true) {
    while (p >= 0 && x[p].rest == 1) --p;
    while (q >= 0 && y[q].rest == 1) --q;
    if (p < 0 || q < 0) break;
    const int64_t common = std::gcd(x[p].rest, y[q].rest);
    if (common == 1) break;
    const int f = b.Add(common);
    x[p].minor.push_back(f);
    y[q].minor.push_back(f);
    x[p].rest /= common;
    y[q].rest /= common;
  }
  auto map = [&](int tensor, std::vector<Cut>& cuts) {
    for (int d = 0; d < static_cast<int>(cuts.size()); ++d) {
      Cut& c = cuts[d];
      for (int f : c.major) b.Map(tensor, d, f);
      if (c.rest > 1) b.Map(tensor, d, b.Add(c.rest, FactorKind::kNeedReplication));
      for (auto it = c.minor.rbegin(); it != c.minor.rend(); ++it) b.Map(tensor, d, *it);
    }
  };
  map(0, x);
  map(1, y);
  return b.Build();
}

// A bitcast may reinterpret a layout; only one that keeps its dimensions has a rule.
ShardingRule BitcastRule(const RuleArgs& args) {
  return args.tensor(0)->IsArray() && args.tensor(1)->IsArray() &&
                 args.tensor(0)->dims() == args.tensor(1)->dims()
             ? PointwiseRule(args)
             : NeedReplicationRule(args);
}

ShardingRule TransposeRule(const RuleArgs& args) {
  const Ints dims = args.instr.as<DimensionsAttrs>().dimensions;
  RuleBuilder b(args);
  std::vector<int> factor(args.rank(0));
  for (int d = 0; d < args.rank(0); ++d) factor[d] = b.AddFor(0, d);
  for (int d = 0; d < args.rank(1); ++d) b.Map(1, d, factor[dims[d]]);
  return b.Build();
}

ShardingRule ConcatenateRule(const RuleArgs& args) {
  const Ints dims = args.instr.as<DimensionsAttrs>().dimensions;
  RuleBuilder b(args);
  const int result = args.num_operands();
  for (int d = 0; d < args.rank(result); ++d) {
    const bool moved = ContainsDim(dims, d) && args.num_operands() > 1;
    const int f = b.Add(args.tensor(result)->dim(d),
                        moved ? FactorKind::kPermutation : FactorKind::kPassThrough);
    for (int t = 0; t <= result; ++t) b.MapWhole(t, d, f);
  }
  return b.Build();
}

ShardingRule SliceRule(const RuleArgs& args) {
  const SliceAttrs& a = args.instr.as<SliceAttrs>();
  RuleBuilder b(args);
  for (int d = 0; d < args.rank(0); ++d) {
    const bool whole =
        a.starts[d] == 0 && a.strides[d] == 1 && a.limits[d] == args.tensor(0)->dim(d);
    const int f = b.AddFor(0, d, whole ? FactorKind::kPassThrough : FactorKind::kPermutation);
    b.MapWhole(1, d, f);
  }
  return b.Build();
}

ShardingRule PadRule(const RuleArgs& args) {
  const PadAttrs& a = args.instr.as<PadAttrs>();
  RuleBuilder b(args);
  for (int d = 0; d < args.rank(0); ++d) {
    const bool whole = a.low[d] == 0 && a.high[d] == 0 && a.interior[d] == 0;
    const int f = b.AddFor(0, d, whole ? FactorKind::kPassThrough : FactorKind::kPermutation);
    b.MapWhole(2, d, f);
  }
  return b.Build();
}

ShardingRule ReverseRule(const RuleArgs& args) {
  const Ints dims = args.instr.as<DimensionsAttrs>().dimensions;
  RuleBuilder b(args);
  for (int d = 0; d < args.rank(0); ++d) {
    const bool moved = ContainsDim(dims, d) && args.tensor(0)->dim(d) > 1;
    b.Map(1, d, b.AddFor(0, d, moved ? FactorKind::kPermutation : FactorKind::kPassThrough));
  }
  return b.Build();
}

ShardingRule IotaRule(const RuleArgs& args) {
  RuleBuilder b(args);
  for (int d = 0; d < args.rank(0); ++d) b.AddFor(0, d);
  return b.Build();
}

}  // namespace internal
}  // namespace shardcall
