// SPDX-License-Identifier: Apache-2.0
// Targets whose dimensions a rule describes, but whose shards need more than a call of the target:
// for example indices that must be relative to the shard's first element, or partial results that
// are combined in a special way. Such a target registers a rule and a body. The partitioner plans
// its calls by the rule: it compares the candidates by what each of them sends, the collectives of
// the body among it. Three callbacks are made from both, for other partitioners.
//
// In the rule, a factor may occur in results only (the body computes its part of the result), and
// a pass-through factor may be missing from a result (the body combines over it). A reduction
// factor leaves partial results, as in any rule. Where a factor has a pad value, operands are
// padded with it.
//
// Example: the columns of a one-hot matrix, `t -> t v`. On a device whose columns start at
// `first`, the body subtracts `first` from the indices and calls the target with the local number
// of columns.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_RULE_CALLBACKS_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_RULE_CALLBACKS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/custom_call/partition_context.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/rule/factor_assignment.h"
#include "shardcall/sharding/rule/rule.h"

namespace shardcall SHARDCALL_PUBLIC {

// A call on one device, as a body sees it. Factors are named as in the rule; a name that the rule
// does not have, or that only `...` stands for, is a CHECK failure.
class LocalCall {
 public:
  LocalCall(PartitionContext& context, const ShardingRule& rule, const FactorAssignment& factors)
      : context_(context), rule_(rule), factors_(factors) {}

  PartitionContext& context() const { return context_; }
  const CustomCallView& call() const { return context_.call(); }
  CheckedBuilder& builder() const { return context_.builder(); }

  const Shape* shape(InstrId id) const { return builder().shape(id); }
  bool IsSharded(absl::string_view factor) const { return !Axes(factor).empty(); }
  absl::Span<const AxisRef> Axes(absl::string_view factor) const;  // major to minor
  int64_t Size(absl::string_view factor) const;                    // global
  int64_t Tile(absl::string_view factor) const;                    // of each device
  // The first global index of this device's tile: s32[].
  absl::StatusOr<InstrId> Start(absl::string_view factor) const;
  // Indices into the factor's dimension, made relative to this device's first one, in x's signed
  // integer type: those in [0, Tile) are on this device. An index that is invalid in the global
  // dimension is invalid here too, even where the tile is padded.
  absl::StatusOr<InstrId> LocalIndices(InstrId x, absl::string_view factor) const;
  // x, which has the local dimensions of operand `i`, with the scalar `fill` past
  // the valid extent of `dim`.
  absl::StatusOr<InstrId> MaskOperand(InstrId x, int i, int dim, InstrId fill) const;

  // What tensor t (operands, then results) is sharded by.
  const Sharding* TensorSharding(int t) const;
  const Shape* LocalResult(int i) const;  // the local shape of result i
  // The target on these operands, with the local shapes of all results.
  absl::StatusOr<std::vector<InstrId>> CallTarget(absl::Span<const InstrId> operands) const;
  // A typed-FFI call of `target` with the attributes `config` ("" or "{..}"); returns its result
  // leaves. It keeps nothing else of the original call, unlike CallTarget.
  absl::StatusOr<std::vector<InstrId>> MakeCall(absl::string_view target, absl::string_view config,
                                                absl::Span<const InstrId> operands,
                                                absl::Span<const Shape* const> results) const;
  absl::StatusOr<InstrId> AllReduce(InstrId x, PartialOp op, absl::string_view factor) const;
  absl::StatusOr<InstrId> AllGather(InstrId x, int dim, absl::string_view factor) const;

 private:
  int Factor(absl::string_view name) const;

  PartitionContext& context_;
  const ShardingRule& rule_;
  const FactorAssignment& factors_;
};

// Registers `target` with a rule and a body; `alternatives` as for RegisterRules, but without
// compounds. A body depends on its arguments alone: it is also called to see what it sends. Misuse
// in a body is E120 or E021 to E025.
absl::Status RegisterRuleWithBody(TargetRegistry& registry, std::string target,
                                  std::vector<RuleAlternative> alternatives, LocalBody body,
                                  std::string source = "program");

}  // namespace shardcall

namespace shardcall {
inline namespace internal {

// Builds the call of `context` by its rule: takes the operands as `factors` shard them, pads them,
// and sets what the body makes of them as results.
absl::Status BuildByRule(PartitionContext& context, const ShardingRule& rule,
                         const FactorAssignment& factors, const LocalBody& body);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_RULE_CALLBACKS_H_
