// SPDX-License-Identifier: Apache-2.0
// How the op families write their rules: a RuleArgs says what the op is, a
// RuleBuilder collects factors and maps dimensions to them. A dimension that is
// mapped to nothing and is longer than 1 needs replication, so what a family
// does not mention is safe.
#ifndef SHARDCALL_PARTITIONER_RULES_RULE_BUILDER_H_
#define SHARDCALL_PARTITIONER_RULES_RULE_BUILDER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/rule/rule.h"

namespace shardcall {

struct RuleArgs {
  const Module& module;
  const Instruction& instr;
  absl::Span<const Shape* const> operands, results;  // flat leaves

  int num_operands() const { return static_cast<int>(operands.size()); }
  int num_tensors() const { return static_cast<int>(operands.size() + results.size()); }
  const Shape* tensor(int t) const {
    return t < num_operands() ? operands[t] : results[t - num_operands()];
  }
  // Tokens and opaque values have no dimensions.
  int rank(int t) const { return tensor(t)->IsArray() ? tensor(t)->rank() : 0; }
};

class RuleBuilder {
 public:
  explicit RuleBuilder(const RuleArgs& args);

  int Add(int64_t size, FactorKind kind = FactorKind::kPassThrough,
          PartialOp reduction = PartialOp::kSum);
  // Makes `factor` the next more minor factor of the dimension. The extent is
  // the factor's size unless given.
  void Map(int tensor, int dim, int factor, int64_t extent = -1);
  // The dimension is `factor` alone, as long as the dimension is there.
  void MapWhole(int tensor, int dim, int factor);
  // A new factor of the size of (tensor, dim), mapped there.
  int AddFor(int tensor, int dim, FactorKind kind = FactorKind::kPassThrough,
             PartialOp reduction = PartialOp::kSum);
  void SetPad(int factor, double pad);
  Factor& factor(int f) { return rule_.factors[f]; }

  // Factors are numbered and named (i, j, .., z, a, .., h, f26, ..) by first
  // use, and those that nothing uses are dropped.
  ShardingRule Build();

 private:
  TensorFactors& Tensor(int t);
  const RuleArgs& args_;
  ShardingRule rule_;
};

// "i", "j", ..., "z", "a", ..., "h", "f26", ...
std::string FactorName(int index);
bool ContainsDim(Ints dims, int64_t d);

// Every dimension needs replication, each by itself.
ShardingRule NeedReplicationRule(const RuleArgs& args);
// All tensors that are not scalars share their dimensions.
ShardingRule PointwiseRule(const RuleArgs& args);
// As PointwiseRule, but the dimensions for which `whole` says so need
// replication; tensors may differ in those.
ShardingRule PointwiseRuleExcept(const RuleArgs& args, absl::Span<const int64_t> whole);

// Those that rows of the table name, one for a family of ops. Of collectives, the dimensions
// that they do not touch pass through, which matters for the free axes of a manual region.
#define SHARDCALL_OP(opcode, text, attrs, arity, shape, rule, strategy, sized, lower, stablehlo, \
                     traits)                                                                     \
  ShardingRule rule##Rule(const RuleArgs& args);
#include "shardcall/partitioner/ir/opcodes.inc"
#undef SHARDCALL_OP

// Custom calls, in the order of what is asked: the call's own sharding rule,
// the registry, `num_batch_dims`, targets that move data only.
enum class CustomCallSource : uint8_t {
  kMissing,
  kOwnRule,
  kRegistry,
  kBatchDims,
  kHarmless,
  kNothingToShard,
};
// What decides; `target` is the registry's entry if there is one, even if it
// leaves the decision to the call.
CustomCallSource FindCustomCallRule(const RuleArgs& args, const TargetRegistry* targets,
                                    bool maximal, const TargetRule** target);
absl::StatusOr<ShardingRule> CustomCallRule(const RuleArgs& args, CustomCallSource source,
                                            const TargetRule* target);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RULES_RULE_BUILDER_H_
