// SPDX-License-Identifier: Apache-2.0
// How the op families write their rules: a RuleArgs describes the op, a RuleBuilder collects
// factors and maps dimensions to them. A dimension that is mapped to no factor and is longer than
// 1 needs replication, so omitting a dimension is safe.
#ifndef SHARDCALL_PARTITIONER_RULES_RULE_BUILDER_H_
#define SHARDCALL_PARTITIONER_RULES_RULE_BUILDER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/rule/rule.h"

namespace shardcall {
inline namespace internal {

struct RuleArgs {
  const Module& module;
  const Instruction& instr;
  absl::Span<const Shape* const> operands, results;  // flat leaves
  bool by_parts = false;  // a reduction that RuleOptions::reduces_by_parts allows

  int num_operands() const { return static_cast<int>(operands.size()); }
  int num_tensors() const { return static_cast<int>(operands.size() + results.size()); }
  const Shape* tensor(int t) const {
    return t < num_operands() ? operands[t] : results[t - num_operands()];
  }
  // Tokens and opaque values have no dimensions.
  int rank(int t) const { return tensor(t)->IsArray() ? tensor(t)->rank() : 0; }
};

// Whether the types of all arrays from tensor number `first` on have an identity of the reduction.
bool HasIdentities(const RuleArgs& args, PartialOp op, int first = 0);

class RuleBuilder {
 public:
  explicit RuleBuilder(const RuleArgs& args);

  // A reduction without an identity in a type of the op (f8e8m0fnu has none) needs replication.
  int Add(int64_t size, FactorKind kind = FactorKind::kPassThrough,
          PartialOp reduction = PartialOp::kSum);
  // Adds `factor` as the most minor factor of the dimension so far. The extent is the factor's
  // size unless given.
  void Map(int tensor, int dim, int factor, int64_t extent = -1);
  // Makes the dimension `factor` alone, with the dimension's own extent.
  void MapWhole(int tensor, int dim, int factor);
  // Makes a new factor of the size of (tensor, dim) and maps it there.
  int AddFor(int tensor, int dim, FactorKind kind = FactorKind::kPassThrough,
             PartialOp reduction = PartialOp::kSum);
  void SetPad(int factor, double pad);
  Factor& factor(int f) { return rule_.factors[f]; }

  // Numbers and names the factors (i, j, .., z, a, .., h, f26, ..) by first use, and drops unused
  // ones.
  ShardingRule Build();

 private:
  TensorFactors& Tensor(int t);
  void NumberFactors();
  const RuleArgs& args_;
  ShardingRule rule_;
};

// "i", "j", ..., "z", "a", ..., "h", "f26", ...
std::string FactorName(int index);
bool ContainsDim(Ints dims, int64_t d);

// Every dimension needs replication, as a factor of its own.
ShardingRule NeedReplicationRule(const RuleArgs& args);
// All tensors that are not scalars share their dimensions.
ShardingRule PointwiseRule(const RuleArgs& args);
// As PointwiseRule, but the dimensions in `whole` need replication; tensors may differ in their
// sizes.
ShardingRule PointwiseRuleExcept(const RuleArgs& args, absl::Span<const int64_t> whole);

// The rule functions that the op table names, one per family of ops. Dimensions that a collective
// does not touch pass through, which matters for the free axes of a manual region.
#define SHARDCALL_OP(opcode, text, attrs, arity, shape, rule, strategy, sized, lower, stablehlo, \
                     traits)                                                                     \
  ShardingRule rule##Rule(const RuleArgs& args);
#include "shardcall/partitioner/ir/opcodes.inc"
#undef SHARDCALL_OP

// Where the rule of a custom call comes from, in order of precedence: the call's own sharding
// rule, the registry, `num_batch_dims`, targets that only move data, calls that run on any shards.
enum class CustomCallSource : uint8_t {
  kMissing,
  kOwnRule,
  kRegistry,
  kBatchDims,
  kHarmless,
  kOnShards,
  kNothingToShard,
};
// The source of the rule; sets `*target` to the registry's entry, even if it leaves the rule to
// the call, or to null.
CustomCallSource FindCustomCallRule(const RuleArgs& args, const TargetRegistry* targets,
                                    bool maximal, const TargetRule** target);
absl::StatusOr<ShardingRule> CustomCallRule(const RuleArgs& args, CustomCallSource source,
                                            const TargetRule* target);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RULES_RULE_BUILDER_H_
