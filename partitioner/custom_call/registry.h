// SPDX-License-Identifier: Apache-2.0
// How custom-call targets join the partitioner: a TargetRegistry holds, per
// target (and optionally per backend_config), a rule at one of three levels:
// batch dims, a rule string, or callbacks. Rules are compile-time facts; the
// run-time handlers of the same targets stand in kernels' HandlerRegistry.
//
//   TargetRegistry targets;
//   targets.RegisterRule("my_norm", {.rule = "... d, d -> ... d",
//                                    .need_replication = {"d"}});
//   targets.RegisterBatchPartitionable("row_solve", /*batch_dims=*/1);
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_REGISTRY_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_REGISTRY_H_

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shardcall/partitioner/custom_call/partition_context.h"
#include "shardcall/partitioner/custom_call/target_facts.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/rule/rule.h"

namespace shardcall SHARDCALL_PUBLIC {

enum class RuleLevel : uint8_t { kBatchDims, kRule, kCallbacks };
absl::string_view RuleLevelName(RuleLevel level);  // "batch_dims", "rule", "callbacks"

// The three callbacks. All get leaf shapes and shardings (tuples flattened).
// Each may be null; then the call's operands and results take part only as
// `partition` chooses, and propagation leaves them alone. All must depend on
// nothing but what they are shown, and not on the instruction's name: they are
// asked once for calls of equal shapes, shardings and attributes.
struct PartitionerCallbacks {
  // Backwards: a user wants result `index` sharded as `user`; returns what the
  // result can be sharded as.
  std::function<absl::StatusOr<const Sharding*>(const CustomCallView& call, int index,
                                                const Sharding* user)>
      propagate_user_sharding = {};
  // Forwards: shardings of all results from those of all operands.
  std::function<absl::StatusOr<std::vector<const Sharding*>>(
      const CustomCallView& call, absl::Span<const Sharding* const> operands)>
      infer_sharding_from_operands = {};
  // Chooses final shardings and builds the local computation.
  std::function<absl::Status(PartitionContext& context)> partition = {};
  // Version of the callbacks' behaviour, part of cache keys.
  int version = 1;
  // A call with side effects may say sharding={replicated}: it then runs on
  // every device. Otherwise such a call needs a maximal device or a rule.
  bool can_side_effecting_have_replicated_sharding = false;
  // propagate_user_sharding looks at nothing of the call but its results and its
  // backend_config. XLA tells no more when it asks, so only then is it asked there.
  bool propagate_reads_result_alone = false;
  // What tells these callbacks from others, such as their functions' addresses:
  // two registrations with equal ones, not empty, and one version are equal.
  std::vector<const void*> identity = {};
};

// batch_dims of a target whose calls say it themselves, in the frontend
// attribute num_batch_dims.
inline constexpr int kBatchDimsOfCall = std::numeric_limits<int>::min();

// One signature of a target. A target may have several (an optional operand or
// result, attributes that change what a dimension means); the first that fits
// a call's backend_config, counts and ranks is its rule.
struct RuleAlternative {
  RuleText text = {};
  // Factors of compounds alone whose size follows from the call's shapes: of
  // "b s (g r) e, b t g e -> ..." r is the quotient of the dimensions (g r), g.
  std::vector<std::string> inferred = {};
  // Whether calls with this backend_config have this signature; null: all.
  bool (*applies)(absl::string_view backend_config) = nullptr;
  // Configs that a check of the rule calls the target with; none: one call without.
  std::vector<std::string> example_configs = {};
  // Element types as TypeSignature reads them: "T, s32 -> T". Empty: not known; a
  // result whose shape is inferred then has the one type of all operands.
  std::string types = {};
  std::shared_ptr<const RuleTemplate> rule = nullptr;  // filled on registration
  // The dimensions of each operand, then of each result, as factor names.
  struct Value {
    bool ellipsis = false;
    std::string group = {};  // the digits behind the ellipsis
    std::vector<std::vector<std::string>> dims;
  };
  std::vector<Value> values = {};  // filled on registration
  int num_operands = 0;
};

struct TargetRule {
  std::string target = {};
  std::string backend_config = {};  // empty: any; else keyed by (target, backend_config)
  RuleLevel level = RuleLevel::kRule;
  int batch_dims = 0;
  RuleText text = {};
  std::shared_ptr<const RuleTemplate> rule = {};
  std::vector<RuleAlternative> alternatives = {};  // [0] is text and rule
  // How many of them were registered; those behind follow from the batching rule.
  size_t num_given = 0;
  PartitionerCallbacks callbacks = {};
  std::string source = {};  // "built in", "manifest FILE", "program"

  // The rule of a call, for levels kBatchDims and kRule, and callbacks that have rule
  // strings. Errors E111, and E112 where the rule does not say what becomes of a factor
  // that only operands have.
  absl::StatusOr<ShardingRule> Instantiate(absl::string_view call_backend_config,
                                           absl::Span<const Shape* const> operands,
                                           absl::Span<const Shape* const> results) const;
};

class TargetRegistry : public TargetShapes {
 public:
  // Equal registrations pass; others of the same key are kAlreadyExists (E105)
  // that shows both. E112: a factor that only operands have is in none of reduction,
  // need_replication, permutation and blocked.
  absl::Status RegisterRule(std::string target, RuleText text, std::string backend_config = "",
                            std::string source = "program");
  absl::Status RegisterRules(std::string target, std::vector<RuleAlternative> alternatives,
                             std::string backend_config = "", std::string source = "program");
  // `batch_dims`: 0 or more, or kBatchDimsOfCall.
  absl::Status RegisterBatchPartitionable(std::string target, int batch_dims,
                                          std::string backend_config = "",
                                          std::string source = "program");
  absl::Status RegisterCustomCallPartitioner(std::string target, PartitionerCallbacks callbacks,
                                             std::string backend_config = "",
                                             std::string source = "program");

  // Callbacks whose target has rule strings too: they say what the dimensions are,
  // for shape inference and checks of the rule. See RegisterRuleWithBody.
  absl::Status RegisterCallbacksOfRule(std::string target,
                                       std::vector<RuleAlternative> alternatives,
                                       PartitionerCallbacks callbacks,
                                       std::string source = "program");

  // For targets whose rule string does not give the results' shapes, and in place
  // of it. E105 if the target has one, but for a function of the same identity, not
  // empty: functions themselves have no equality.
  absl::Status RegisterShapeInference(std::string target, ShapeFunction function,
                                      std::vector<const void*> identity = {},
                                      std::string source = "program");
  absl::StatusOr<const Shape*> InferShape(const ShapeRequest& call) const override;
  absl::Status CheckShape(const ShapeRequest& call, const Shape* declared) const override;

  // Keeps the HLO text that says what the target computes; RegisterPartitionLike
  // (partitioner/check/reference.h) makes the rule of it. E105 if there is another.
  absl::Status RegisterReference(std::string target, std::string hlo);
  // The target must have a rule. If that of its VJP is not registered, it gets the
  // transposed rule (derived_rules.h). An equal one passes. E105 where there is
  // another, E116 where arguments or gradients do not fit the rule.
  absl::Status RegisterVjp(std::string target, VjpSpec vjp);
  // The target's rule strings get their batched forms; its VJP's do not, so that it
  // may have a batching of its own. An equal one passes; E105, as above.
  absl::Status RegisterBatching(std::string target, BatchingSpec batching);
  // An equal one passes; E105 where there is another, or that makes no sense.
  absl::Status RegisterCallLimits(std::string target, CallLimits limits);
  const TargetFacts* Facts(absl::string_view target) const;  // null if there are none
  // The entry for (target, backend_config), else that for target alone; null if none.
  // It stays where it is as long as the registry does.
  const TargetRule* Find(absl::string_view target, absl::string_view backend_config) const;
  std::vector<const TargetRule*> List() const;  // by target, then backend_config

  // Makes it what it was when it was copied; entries that it had then stay where they
  // are.
  void Restore(const TargetRegistry& before);

 private:
  absl::Status Add(TargetRule rule);
  absl::Status AddAlternatives(std::vector<RuleAlternative> alternatives, TargetRule rule);
  std::map<std::pair<std::string, std::string>, TargetRule> rules_;
  std::map<std::string, TargetFacts> facts_;
};

// rms_norm, rms_norm_bwd, flash_attention_fwd, flash_attention_bwd,
// cublas_gemm, custom_relu, fft, and the LAPACK targets.
absl::Status RegisterBuiltinTargets(TargetRegistry& registry);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_REGISTRY_H_
