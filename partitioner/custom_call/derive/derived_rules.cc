// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/derive/derived_rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/custom_call/rule_values.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using Value = RuleAlternative::Value;

absl::StatusOr<RuleAlternative> WithLeading(const RuleAlternative& rule,
                                            const std::vector<bool>& chosen, bool whole) {
  auto cannot = [&](std::string message) {
    return ToStatus({.code = "E117",
                     .message = std::move(message),
                     .expected = rule.text.rule,
                     .found = absl::StrJoin(chosen, ","),
                     .fix = "Declare how the target is batched with RegisterBatching"});
  };
  if (static_cast<int>(chosen.size()) != rule.num_operands ||
      std::find(chosen.begin(), chosen.end(), true) == chosen.end()) {
    return cannot("a batch is of one operand or more of those that the rule has");
  }
  bool ellipsis = false, fits = true;
  std::vector<Value> values = rule.values;
  for (size_t k = 0; k < values.size(); ++k) {
    const bool has = static_cast<int>(k) >= rule.num_operands || chosen[k];
    ellipsis = ellipsis || values[k].ellipsis;
    fits = fits && values[k].ellipsis == has;
  }
  RuleAlternative out = rule;
  out.rule = nullptr;
  if (ellipsis) {
    if (fits && !whole) return out;
    return cannot("'...' of the rule does not stand where the batch is");
  }
  const std::string name = FreshFactor(FactorsOf(values), whole ? "step" : "batch");
  for (size_t k = 0; k < values.size(); ++k) {
    if (static_cast<int>(k) < rule.num_operands && !chosen[k]) continue;
    values[k].dims.insert(values[k].dims.begin(), std::vector<std::string>{name});
  }
  out.text.rule = RuleString(values, rule.num_operands);
  out.values = std::move(values);
  if (whole) out.text.need_replication.push_back(name);
  return out;
}

}  // namespace

absl::StatusOr<RuleAlternative> BatchedRule(const RuleAlternative& rule,
                                            const std::vector<bool>& batched) {
  return WithLeading(rule, batched, /*whole=*/false);
}

bool TakesBatch(const TargetRule& rule, absl::string_view backend_config,
                absl::Span<const Shape* const> operands, absl::Span<const Shape* const> results,
                const std::vector<bool>& batched) {
  const RuleAlternative* const a = rule.Choose(backend_config, operands, results);
  if (a == nullptr || operands.empty() || batched.size() != operands.size()) return false;
  const size_t first = a->num_operands;
  for (size_t k = 0; k < a->values.size(); ++k) {
    if (a->values[k].ellipsis != (k >= first || batched[k])) return false;
  }
  // A narrower rule may be that of the call with more dimensions.
  Context context;
  std::vector<const Shape*> wide;
  for (size_t k = 0; k < operands.size() + results.size(); ++k) {
    const Shape& shape = k < first ? *operands[k] : *results[k - first];
    std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
    if (k >= first || batched[k]) dims.insert(dims.begin(), 2);
    wide.push_back(context.MakeArray(shape.element_type(), dims));
  }
  const absl::Span<const Shape* const> all(wide);
  return rule.Choose(backend_config, all.first(first), all.subspan(first)) == a;
}

absl::StatusOr<RuleAlternative> ScannedRule(const RuleAlternative& rule,
                                            const std::vector<bool>& stacked) {
  return WithLeading(rule, stacked, /*whole=*/true);
}

namespace {

std::string Describe(const BatchingSpec& b) {
  static constexpr absl::string_view kKinds[] = {"leading", "broadcast", "target", "loop"};
  return absl::StrCat(kKinds[static_cast<int>(b.kind)], b.target.empty() ? "" : " ", b.target);
}

}  // namespace

absl::Status TargetRegistry::RegisterBatching(std::string target, BatchingSpec batching) {
  using Kind = BatchingSpec::Kind;
  const auto state = state_.Lock();
  const TargetRule* found = Find(target, "");
  const TargetFacts* known = Facts(target);
  const bool has = known != nullptr && known->batching.has_value();
  if (has && known->batching->kind == batching.kind && known->batching->target == batching.target) {
    return absl::OkStatus();
  }
  if (found == nullptr || has || batching.target.empty() == (batching.kind == Kind::kTarget)) {
    return ToStatus(
        {.code = "E105",
         .message = absl::StrCat("the batching of \"", target, "\" cannot be registered"),
         .expected = "a target that has a rule for any backend_config and no batching yet; with "
                     "the name of another target for that kind alone",
         .found =
             found == nullptr
                 ? (EntriesOf(target).empty() ? "no rule" : "rules for one backend_config each")
             : has ? absl::StrCat(Describe(*known->batching), ", and now ", Describe(batching))
                   : Describe(batching),
         .fix = "Register the rule first, and its batching once"});
  }
  if (found->level == RuleLevel::kRule &&
      (batching.kind == Kind::kLeading || batching.kind == Kind::kBroadcast)) {
    // The ranks of a call's operands show which of them are batched.
    std::vector<RuleAlternative> all = found->alternatives;
    for (const RuleAlternative& a : found->alternatives) {
      // All operands batched, and, where there are few operands, every subset of them.
      std::vector<std::vector<bool>> forms = {std::vector<bool>(a.num_operands, true)};
      constexpr int kMost = 6;  // operands: 63 forms
      if (batching.kind == Kind::kLeading && a.num_operands <= kMost) {
        for (uint32_t bits = (1u << a.num_operands) - 1; bits-- > 1;) {
          std::vector<bool>& flags = forms.emplace_back();
          for (int k = 0; k < a.num_operands; ++k) flags.push_back((bits >> k & 1) != 0);
        }
      }
      for (const std::vector<bool>& flags : forms) {
        absl::StatusOr<RuleAlternative> batched = BatchedRule(a, flags);
        if (batched.ok() && batched->text.rule != a.text.rule) all.push_back(*std::move(batched));
      }
    }
    TargetRule derived;
    derived.target = target;
    derived.source = found->source;
    const size_t num_given = found->num_given;
    TargetRegistry batched;
    SHARDCALL_RETURN_IF_ERROR(
        batched.RegisterDerived(std::move(derived), std::move(all), found->types_bind));
    TargetRule rule = *batched.Find(target, "");
    rule.num_given = num_given;
    state->Put(std::move(rule));
  }
  TargetFacts facts = FactsOf(target);
  facts.batching = std::move(batching);
  state->PutFacts(target, std::move(facts));
  return absl::OkStatus();
}

}  // namespace shardcall
