// SPDX-License-Identifier: Apache-2.0
// Finds the rule of a custom call.
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/custom_call/open_factors.h"
#include "shardcall/partitioner/ir/analysis/side_effects.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/rules/rule_builder.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr absl::string_view kBatchKey = "num_batch_dims";

absl::string_view Attribute(const Instruction& instr, absl::string_view key) {
  return instr.frontend == nullptr ? absl::string_view() : instr.frontend->Find(key);
}

// Targets that only place, pin or label a value and return it.
bool IsHarmless(const RuleArgs& args, absl::string_view target) {
  if (!HasTrait(FindKnownTarget(target), kKeepsSharding)) return false;
  if (args.operands.size() != args.results.size()) return false;
  for (size_t i = 0; i < args.operands.size(); ++i) {
    const Shape* a = args.operands[i];
    const Shape* b = args.results[i];
    if (a->IsArray() != b->IsArray() || (a->IsArray() && a->dims() != b->dims())) return false;
  }
  return true;
}

// Whether a registration determines the rule, and does not leave it to num_batch_dims.
bool Decides(const TargetRule& r) {
  return r.level != RuleLevel::kBatchDims || r.batch_dims != kBatchDimsOfCall;
}

bool SaysAttributes(const TargetRule* r) {
  return r != nullptr && r->level == RuleLevel::kRule &&
         absl::c_any_of(r->alternatives, [](const auto& a) { return !a.attributes.empty(); });
}

absl::StatusOr<int> BatchDims(absl::string_view text) {
  int k;
  if (absl::SimpleAtoi(text, &k) && k >= 0) return k;
  return ToStatus({.code = "E111",
                   .message = absl::StrCat("frontend attribute ", kBatchKey, " is no count"),
                   .expected = "0 or more",
                   .found = std::string(text),
                   .fix = "Give the number of leading independent dimensions"});
}

// With num_batch_dims=k beside a rule, the dimensions after the first k need replication.
void KeepBatchOnly(int k, ShardingRule* rule) {
  for (int t = 0; t < rule->num_tensors(); ++t) {
    const TensorFactors& tensor = rule->tensor(t);
    for (int d = k; d < static_cast<int>(tensor.dims.size()); ++d) {
      for (int f : tensor.dims[d]) rule->factors[f].kind = FactorKind::kNeedReplication;
    }
  }
}

// The shards' results are parts of a reduction, which their types must have; else its factor is
// whole.
ShardingRule WithoutImpossibleReductions(const RuleArgs& args, ShardingRule rule) {
  for (Factor& factor : rule.factors) {
    if (factor.kind == FactorKind::kReduction &&
        !HasIdentities(args, factor.reduction, args.num_operands())) {
      factor.kind = FactorKind::kNeedReplication;
    }
  }
  return rule;
}

// The factors of operands that some results have and others, which are arrays, lack.
IndexSet PartlyLacked(const ShardingRule& rule, absl::Span<const Shape* const> results) {
  IndexSet given, had, lacked;
  for (const TensorFactors& tensor : rule.operands) {
    for (const FactorList& dim : tensor.dims) {
      for (int f : dim) given.Insert(f);
    }
  }
  for (size_t k = 0; k < rule.results.size(); ++k) {
    IndexSet here;
    for (const FactorList& dim : rule.results[k].dims) {
      for (int f : dim) here.Insert(f);
    }
    for (int f = 0; f < static_cast<int>(rule.factors.size()); ++f) {
      if (here.Contains(f)) had.Insert(f);
      if (!here.Contains(f) && results[k]->IsArray()) lacked.Insert(f);
    }
  }
  IndexSet out;
  for (int f = 0; f < static_cast<int>(rule.factors.size()); ++f) {
    if (given.Contains(f) && had.Contains(f) && lacked.Contains(f)) out.Insert(f);
  }
  return out;
}

// Shardy's text does not name the op of a reduction, and has none over a factor that a result has
// (ShardingRule::ToSdyText). Whether a rule that is registered knows more.
bool LeavesReductionsOpen(const RuleArgs& args, absl::string_view text) {
  const absl::StatusOr<ShardingRule> rule = ParseSdyRule(text, args.operands, args.results);
  if (!rule.ok()) return false;
  const bool reduces = absl::c_any_of(
      rule->factors, [](const Factor& f) { return f.kind == FactorKind::kReduction; });
  return reduces || !(PartlyLacked(*rule, args.results) == IndexSet());
}

// Where nothing else is known, as XLA does: nothing combines what the shards have of a result
// without the factor.
void KeepPartlyLackedWhole(absl::Span<const Shape* const> results, ShardingRule* rule) {
  const IndexSet lacked = PartlyLacked(*rule, results);
  for (int f = 0; f < static_cast<int>(rule->factors.size()); ++f) {
    Factor& factor = rule->factors[f];
    if (lacked.Contains(f) && factor.kind == FactorKind::kPassThrough && !factor.blocked) {
      factor.kind = FactorKind::kNeedReplication;
    }
  }
}

}  // namespace

CustomCallSource FindCustomCallRule(const RuleArgs& args, const TargetRegistry* targets,
                                    bool maximal, const TargetRule** target) {
  *target = nullptr;
  const CustomCallAttrs& a = args.instr.as<CustomCallAttrs>();
  const absl::string_view own = Attribute(args.instr, kSdyShardingRule);
  const TargetRule* const found =
      targets == nullptr ? nullptr : targets->Find(a.target, args.instr.backend_config);
  // A call's own rule cannot say how its attributes follow the shard, nor all reductions. A
  // registered one that does takes its place.
  if (!own.empty() && !SaysAttributes(found) &&
      (found == nullptr || !Decides(*found) || found->level == RuleLevel::kCallbacks ||
       !LeavesReductionsOpen(args, own))) {
    return CustomCallSource::kOwnRule;
  }
  *target = found;
  if (found != nullptr && Decides(*found)) return CustomCallSource::kRegistry;
  if (!Attribute(args.instr, kBatchKey).empty()) return CustomCallSource::kBatchDims;
  if (IsHarmless(args, a.target)) return CustomCallSource::kHarmless;
  if (RunsOnShards(args.instr)) return CustomCallSource::kOnShards;
  bool dims = false;
  for (int t = 0; t < args.num_tensors(); ++t) dims = dims || args.rank(t) > 0;
  if (maximal || !dims) return CustomCallSource::kNothingToShard;
  return CustomCallSource::kMissing;
}

absl::StatusOr<ShardingRule> CustomCallRule(const RuleArgs& args, CustomCallSource source,
                                            const TargetRule* target) {
  const absl::string_view batch = Attribute(args.instr, kBatchKey);
  switch (source) {
    case CustomCallSource::kOwnRule: {
      SHARDCALL_ASSIGN_OR_RETURN(
          ShardingRule rule,
          ParseSdyRule(Attribute(args.instr, kSdyShardingRule), args.operands, args.results));
      if (!batch.empty()) {
        SHARDCALL_ASSIGN_OR_RETURN(int k, BatchDims(batch));
        KeepBatchOnly(k, &rule);
      }
      // The callback combines what shards of open factors have, and sees what the rule needs whole.
      if (target != nullptr) return rule;
      // Shardy shards open factors as well, but nothing would combine the results of the shards.
      const IndexSet open = OpenFactors(rule, args.results);
      for (size_t f = 0; f < rule.factors.size(); ++f) {
        if (open.Contains(static_cast<int>(f))) {
          rule.factors[f].kind = FactorKind::kNeedReplication;
        }
      }
      KeepResultFactorsWhole(&rule);
      KeepPartlyLackedWhole(args.results, &rule);
      return WithoutImpossibleReductions(args, std::move(rule));
    }
    case CustomCallSource::kRegistry: {
      SHARDCALL_ASSIGN_OR_RETURN(
          ShardingRule rule,
          target->Instantiate(args.instr.backend_config, args.operands, args.results));
      return WithoutImpossibleReductions(args, std::move(rule));
    }
    case CustomCallSource::kBatchDims: {
      SHARDCALL_ASSIGN_OR_RETURN(int k, BatchDims(batch));
      return BatchRule(k, args.operands, args.results);
    }
    case CustomCallSource::kHarmless: {
      RuleBuilder b(args);
      for (int t = 0; t < args.num_operands(); ++t) {
        for (int d = 0; d < args.rank(t); ++d) b.Map(args.num_operands() + t, d, b.AddFor(t, d));
      }
      return b.Build();
    }
    case CustomCallSource::kOnShards:
    case CustomCallSource::kNothingToShard:
    case CustomCallSource::kMissing: break;
  }
  return NeedReplicationRule(args);
}

}  // namespace internal
}  // namespace shardcall
