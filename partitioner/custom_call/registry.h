// SPDX-License-Identifier: Apache-2.0
// Registers custom-call targets with the partitioner: a TargetRegistry holds, per target (and
// optionally per backend_config), a rule at one of three levels: batch dims, a rule string, or
// callbacks. Rules are used at compile time only; the run-time handlers of the same targets are in
// kernels' HandlerRegistry.
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
#include "shardcall/partitioner/custom_call/attribute_condition.h"
#include "shardcall/partitioner/custom_call/partition_context.h"
#include "shardcall/partitioner/custom_call/target_facts.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/base/synchronized.h"
#include "shardcall/sharding/rule/rule.h"

namespace shardcall SHARDCALL_PUBLIC {

enum class RuleLevel : uint8_t { kBatchDims, kRule, kCallbacks };
absl::string_view RuleLevelName(RuleLevel level);  // "batch_dims", "rule", "callbacks"

class LocalCall;  // rule_callbacks.h
// Computes this device's results, in the shapes LocalCall::LocalResult, from the local operands.
using LocalBody = std::function<absl::StatusOr<std::vector<InstrId>>(
    LocalCall& call, absl::Span<const InstrId> operands)>;

// The three callbacks. All get leaf shapes and shardings (tuples flattened). Each may be null:
// propagation then does not pass that call in that direction, and `partition` alone chooses the
// shardings. A callback must depend on nothing but its arguments, and not on the instruction's
// name: it is called once for calls of equal shapes, shardings and attributes.
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
  // Of a target whose callbacks are made from a rule and a body (RegisterRuleWithBody): the body.
  // The partitioner then plans a call by the rule, as that of any op, and the body builds it; the
  // callbacks are for other partitioners.
  LocalBody body = {};
  // Version of the callbacks' behaviour, part of cache keys.
  int version = 1;
  // A call with side effects may say sharding={replicated}: it then runs on
  // every device. Otherwise such a call needs a maximal device or a rule.
  bool can_side_effecting_have_replicated_sharding = false;
  // Whether propagate_user_sharding reads nothing of the call but its results and its
  // backend_config. XLA passes no more than those, so through XLA only such callbacks are asked.
  bool propagate_reads_result_alone = false;
  // Identifies these callbacks, for example by their functions' addresses: two registrations with
  // equal, non-empty identities and equal versions are equal.
  std::vector<const void*> identity = {};
};

// batch_dims of a target whose calls give it themselves, in the frontend attribute num_batch_dims.
inline constexpr int kBatchDimsOfCall = std::numeric_limits<int>::min();

struct ParsedTypes;

// One signature of a target. A target may have several (an optional operand or
// result, attributes that change what a dimension means). They are told apart by counts, ranks,
// types and attributes; the narrowest that fits a call is its rule (rule_choice.h).
struct RuleAlternative {
  RuleText text = {};
  // Whether calls with this backend_config have this signature; null: all.
  bool (*applies)(absl::string_view backend_config) = nullptr;
  // Values of attributes that calls with this signature have.
  AttributeConditions when = {};
  bool AppliesTo(absl::string_view backend_config) const {
    return (applies == nullptr || applies(backend_config)) && Satisfies(backend_config, when);
  }
  // Configs with which a check of the rule calls the target; none: one call without a config.
  std::vector<std::string> example_configs = {};
  // Element types in the form of TypeSignature: "T, s32 -> T". Of several signatures, one with
  // types is for calls with these alone. Empty: not known; a result whose shape is inferred then
  // has the common type of all operands.
  std::string types = {};
  std::shared_ptr<const ParsedTypes> parsed_types = nullptr;  // filled on registration
  // Attributes of the call that follow its shard, {{"grid_x", "m / 16"}}, with formulas over the
  // sizes that the factors have there: see attribute_formulas.h.
  std::vector<std::pair<std::string, std::string>> attributes = {};
  std::shared_ptr<const RuleTemplate> rule = nullptr;  // filled on registration
  // The dimensions of each operand, then of each result, as factor names.
  struct Value {
    bool ellipsis = false;
    std::string group = {};  // the digits after the ellipsis
    std::vector<std::vector<std::string>> dims;
    // A scalar; the only value of its side, it also stands for a call that has none there.
    bool IsScalar() const { return !ellipsis && dims.empty(); }
  };
  std::vector<Value> values = {};  // filled on registration
  int num_operands = 0;
};

struct TargetRule {
  std::string target = {};
  std::string backend_config = {};  // empty: any config
  RuleLevel level = RuleLevel::kRule;
  int batch_dims = 0;
  RuleText text = {};
  std::shared_ptr<const RuleTemplate> rule = {};
  std::vector<RuleAlternative> alternatives = {};  // [0] is text and rule
  // How many of the alternatives were registered; the rest follow from the batching rule.
  size_t num_given = 0;
  // Whether a rule with types is for calls in these alone. Those of a target's only rule, and of
  // the rules that follow from it, say no more than what types results have.
  bool types_bind = false;
  PartitionerCallbacks callbacks = {};
  std::string source = {};  // "built in", "manifest FILE", "program"

  // The alternative of a call; null where none fits it.
  const RuleAlternative* Choose(absl::string_view call_backend_config,
                                absl::Span<const Shape* const> operands,
                                absl::Span<const Shape* const> results) const;
  // The rule of a call, for levels kBatchDims and kRule, and for callbacks that have rule strings.
  // Errors E111, and E112 for an open factor (open_factors.h).
  absl::StatusOr<ShardingRule> Instantiate(absl::string_view call_backend_config,
                                           absl::Span<const Shape* const> operands,
                                           absl::Span<const Shape* const> results) const;
};

// Whether the rules were registered alike; batched forms and sources are not compared.
bool Equal(const TargetRule& a, const TargetRule& b);

// Any threads may register, look up and copy at once; each call sees all of a registration or
// nothing of it. Entries do not change once they are there: a registration that says more of a
// target makes another one, and pointers to the one before stay valid.
class TargetRegistry : public TargetShapes {
 public:
  // Registering the same rule again is OK; a different one for the same key is kAlreadyExists
  // (E105), which shows both. E112: a factor that only operands have is in none of reduction,
  // need_replication, permutation and blocked. Of several rules, two that fit some call equally
  // well are E105.
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

  // Callbacks for a target that has rule strings too. The strings give the dimensions, for shape
  // inference and checks of the rule. See RegisterRuleWithBody.
  absl::Status RegisterCallbacksOfRule(std::string target,
                                       std::vector<RuleAlternative> alternatives,
                                       PartitionerCallbacks callbacks,
                                       std::string source = "program");

  // For targets whose rule string does not give the results' shapes; if there is one, the function
  // takes precedence over it. E105 if the target has another function. Functions cannot be
  // compared, so two are the same only if their identities are equal and not empty.
  absl::Status RegisterShapeInference(std::string target, ShapeFunction function,
                                      std::vector<const void*> identity = {},
                                      std::string source = "program");
  absl::StatusOr<const Shape*> InferShape(const ShapeRequest& call) const override;
  absl::Status CheckShape(const ShapeRequest& call, const Shape* declared) const override;

  // Keeps the HLO text that defines what the target computes; RegisterPartitionLike
  // (partitioner/check/reference.h) makes the rule from it. E105 if there is another.
  absl::Status RegisterReference(std::string target, std::string hlo);
  // The target must have a rule. If the target of its VJP has none registered, it gets the
  // transposed rules (derived_rules.h), for each backend_config that has rules. Registering an
  // equal VJP again is OK. E105 where there is another, E116 where arguments or gradients do not
  // fit the rule.
  absl::Status RegisterVjp(std::string target, VjpSpec vjp);
  // The target's rule strings get their batched forms. Those of its VJP do not, so that the VJP
  // may have a batching of its own. Registering an equal one again is OK; E105 as above.
  absl::Status RegisterBatching(std::string target, BatchingSpec batching);
  // Registering equal limits again is OK; E105 where there are others, or where they are invalid.
  absl::Status RegisterCallLimits(std::string target, CallLimits limits);
  const TargetFacts* Facts(absl::string_view target) const;  // null if there are none
  // The entry for (target, backend_config), else that for target alone; null if none. The pointer
  // is valid as long as the registry is.
  const TargetRule* Find(absl::string_view target, absl::string_view backend_config) const;
  std::vector<const TargetRule*> List() const;  // by target, then backend_config
  // At most three registered targets whose names are like `target`, which may be misspelt.
  std::vector<std::string> NamesLike(absl::string_view target) const;

  // Undoes all registrations since the copy `before` was made, those of other threads, too.
  // Pointers to entries that existed then stay valid.
  void Restore(const TargetRegistry& before);

 private:
  absl::Status Add(TargetRule rule);
  // `ordered`: they are asked in this order, though several may fit a call.
  absl::Status AddAlternatives(std::vector<RuleAlternative> alternatives, TargetRule rule,
                               bool ordered = false);
  // Rules that follow from others, for the target, the backend_config and the source of `rule`.
  absl::Status RegisterDerived(TargetRule rule, std::vector<RuleAlternative> alternatives,
                               bool types_bind);
  // Gives the target of the VJP its rules, for each backend_config that `target` has rules for.
  absl::Status DeriveVjpRules(const std::string& target, const VjpSpec& vjp);
  std::vector<const TargetRule*> EntriesOf(const std::string& target) const;
  struct State {
    // By target and backend_config.
    std::map<std::pair<std::string, std::string>, std::shared_ptr<const TargetRule>> rules;
    std::map<std::string, std::shared_ptr<const TargetFacts>> facts;
    std::vector<std::shared_ptr<const void>> replaced;  // somebody may have pointers to them
    void Put(TargetRule rule);
    void PutFacts(const std::string& target, TargetFacts facts);
  };
  TargetFacts FactsOf(const std::string& target) const;  // a copy, to be changed

  Synchronized<State> state_;
};

// Registers all targets of partitioner/custom_call/targets/.
absl::Status RegisterBuiltinTargets(TargetRegistry& registry);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_REGISTRY_H_
