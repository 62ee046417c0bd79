// SPDX-License-Identifier: Apache-2.0
// Rules of gather, scatter and the dynamic slices.
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/rules/rule_builder.h"

namespace shardcall {
inline namespace internal {
namespace {

int64_t PositionOf(Ints dims, int64_t d) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == d) return static_cast<int64_t>(i);
  }
  return -1;
}

}  // namespace

// Example: an embedding lookup table[v, e], ids[b, s] -> out[b, s, e] is
// "i j, k l -> k l j" with i a reduction factor: each shard of the table looks
// up its own rows, gives zeros for the others, and the results are added.
ShardingRule GatherRule(const RuleArgs& args) {
  const GatherAttrs& a = args.instr.as<GatherAttrs>();
  RuleBuilder b(args);
  const int kOperand = 0, kIndices = 1, kResult = 2;
  std::vector<int> batch_factor(args.rank(kOperand), -1);
  // The dimensions of the indices are, in order, the result dimensions that are not offset_dims.
  int out = 0;
  for (int d = 0; d < args.rank(kIndices); ++d) {
    if (d == a.index_vector_dim) continue;
    while (ContainsDim(a.offset_dims, out)) ++out;
    const int f = b.AddFor(kIndices, d);
    b.Map(kResult, out++, f);
    const int64_t at = PositionOf(a.start_indices_batching_dims, d);
    if (at >= 0) b.Map(kOperand, static_cast<int>(a.operand_batching_dims[at]), f);
  }
  size_t offset = 0;
  for (int d = 0; d < args.rank(kOperand); ++d) {
    if (ContainsDim(a.operand_batching_dims, d)) continue;
    const int64_t size = args.tensor(kOperand)->dim(d);
    const bool collapsed = ContainsDim(a.collapsed_slice_dims, d);
    const bool some_rows =
        a.slice_sizes[d] > 0 && a.slice_sizes[d] < size && ContainsDim(a.start_index_map, d);
    if (some_rows) {
      b.AddFor(kOperand, d, FactorKind::kReduction, PartialOp::kSum);
    } else if (!collapsed) {
      const int f = b.AddFor(
          kOperand, d,
          a.slice_sizes[d] == size ? FactorKind::kPassThrough : FactorKind::kNeedReplication);
      b.MapWhole(kResult, static_cast<int>(a.offset_dims[offset]), f);
    }
    if (!collapsed) ++offset;
  }
  return b.Build();
}

ShardingRule ScatterRule(const RuleArgs& args) {
  const ScatterAttrs& a = args.instr.as<ScatterAttrs>();
  RuleBuilder b(args);
  const int n = (args.num_operands() - 1) / 2;
  const int indices = n;
  PartialOp op = PartialOp::kSum;
  const bool known = n == 1 && RecognizePartialOp(args.module, a.to_apply, &op);
  auto map_updates = [&](int64_t d, int f) {
    for (int k = 0; k < n; ++k) b.MapWhole(n + 1 + k, static_cast<int>(d), f);
  };
  auto map_operands = [&](int d, int f) {
    for (int k = 0; k < n; ++k) {
      b.MapWhole(k, d, f);
      b.MapWhole(args.num_operands() + k, d, f);
    }
  };
  // The dimensions of the indices are, in order, the update dimensions that are not window dims.
  // Each shard applies its own updates, so the result is partial, and only one of the shards
  // starts from the operand's values.
  int at = 0;
  for (int d = 0; d < args.rank(indices); ++d) {
    if (d == a.index_vector_dim) continue;
    while (ContainsDim(a.update_window_dims, at)) ++at;
    const int64_t batch = PositionOf(a.scatter_indices_batching_dims, d);
    const FactorKind kind = batch >= 0 ? FactorKind::kPassThrough
                            : known    ? FactorKind::kReduction
                                       : FactorKind::kNeedReplication;
    const int f = b.AddFor(indices, d, kind, op);
    map_updates(at++, f);
    if (batch >= 0) map_operands(static_cast<int>(a.input_batching_dims[batch]), f);
  }
  size_t window = 0;
  for (int d = 0; d < args.rank(0); ++d) {
    if (ContainsDim(a.input_batching_dims, d)) continue;
    const int64_t size = args.tensor(0)->dim(d);
    const bool indexed = ContainsDim(a.scatter_dims_to_operand_dims, d);
    if (ContainsDim(a.inserted_window_dims, d)) {
      // Each shard drops the updates that are outside its rows.
      map_operands(d,
                   b.Add(size, indexed ? FactorKind::kPassThrough : FactorKind::kNeedReplication));
      continue;
    }
    const int64_t update_dim = a.update_window_dims[window++];
    const int64_t update_size = args.tensor(n + 1)->dim(static_cast<int>(update_dim));
    if (update_size == size) {
      const int f = b.Add(size);
      map_operands(d, f);
      map_updates(update_dim, f);
    } else if (update_size > 0 && indexed) {
      map_operands(d, b.Add(size));  // each shard takes the rows of the windows that it has
    } else {
      const int f = b.Add(size, FactorKind::kNeedReplication);
      map_operands(d, f);
      map_updates(update_dim, f);
    }
  }
  return b.Build();
}

// Of a sharded dimension of which it takes a part, each shard takes the rows that it has, and the
// result is partial. Not where all starts are in one vector, as in legacy programs.
ShardingRule DynamicSliceRule(const RuleArgs& args) {
  const DynamicSliceAttrs& a = args.instr.as<DynamicSliceAttrs>();
  RuleBuilder b(args);
  const int result = args.num_operands();
  for (int d = 0; d < args.rank(0); ++d) {
    const int64_t size = args.tensor(0)->dim(d);
    if (a.sizes[d] == size) {
      b.Map(result, d, b.AddFor(0, d));
    } else if (a.sizes[d] > 0 && args.num_operands() > 1 && args.rank(1) == 0) {
      b.AddFor(0, d, FactorKind::kReduction);
    }
  }
  return b.Build();
}

// The operand's shards stay where they are. Each takes the part of the update that falls into it,
// so the update must be whole along those dimensions.
ShardingRule DynamicUpdateSliceRule(const RuleArgs& args) {
  RuleBuilder b(args);
  const int result = args.num_operands();
  for (int d = 0; d < args.rank(0); ++d) {
    const bool whole = args.tensor(1)->dim(d) == args.tensor(0)->dim(d);
    const int f = b.AddFor(0, d, whole ? FactorKind::kPassThrough : FactorKind::kPermutation);
    if (whole) b.Map(1, d, f);
    b.Map(result, d, f);
  }
  return b.Build();
}

}  // namespace internal
}  // namespace shardcall
