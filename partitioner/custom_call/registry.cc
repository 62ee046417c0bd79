// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/registry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/custom_call/attribute_formulas.h"
#include "shardcall/partitioner/custom_call/default_rules.h"
#include "shardcall/partitioner/custom_call/open_factors.h"
#include "shardcall/partitioner/custom_call/rule_choice.h"
#include "shardcall/partitioner/custom_call/rule_values.h"
#include "shardcall/partitioner/custom_call/type_signature.h"
#include "shardcall/sharding/base/near_names.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

absl::Status CheckTypes(const RuleAlternative& a, absl::string_view target) {
  if (a.types.empty()) return absl::OkStatus();
  const std::vector<TypeSignature>& all = a.parsed_types->signatures;
  const int results = static_cast<int>(a.values.size()) - a.num_operands;
  if (std::all_of(all.begin(), all.end(), [&](const TypeSignature& types) {
        const bool none = results == 1 && types.num_results() == 0 && a.values.back().IsScalar();
        return types.num_operands() == a.num_operands && (types.num_results() == results || none);
      })) {
    return absl::OkStatus();
  }
  return ToStatus(
      {.code = "E110",
       .message = absl::StrCat("the element types of \"", target, "\" do not fit its rule"),
       .expected = absl::StrCat(a.num_operands, " operands and ", results, " results"),
       .found = a.types,
       .fix = "Give one type for each operand and result"});
}

bool Equal(const RuleText& a, const RuleText& b) {
  return a.rule == b.rule && a.need_replication == b.need_replication &&
         a.permutation == b.permutation && a.blocked == b.blocked && a.reduction == b.reduction &&
         SamePads(a.pad, b.pad) && a.sizes == b.sizes;
}

// Functions cannot be compared, so callbacks are equal by their identities.
bool Equal(const PartitionerCallbacks& a, const PartitionerCallbacks& b) {
  return !a.identity.empty() && a.identity == b.identity && a.version == b.version &&
         a.can_side_effecting_have_replicated_sharding ==
             b.can_side_effecting_have_replicated_sharding &&
         a.propagate_reads_result_alone == b.propagate_reads_result_alone;
}

}  // namespace

bool Equal(const TargetRule& a, const TargetRule& b) {
  if (a.level != b.level || a.batch_dims != b.batch_dims ||
      (a.level == RuleLevel::kCallbacks && !Equal(a.callbacks, b.callbacks)) ||
      a.num_given != b.num_given) {
    return false;
  }
  for (size_t i = 0; i < a.num_given; ++i) {
    if (a.alternatives[i].applies != b.alternatives[i].applies ||
        a.alternatives[i].types != b.alternatives[i].types ||
        a.alternatives[i].when != b.alternatives[i].when ||
        a.alternatives[i].attributes != b.alternatives[i].attributes ||
        !Equal(a.alternatives[i].text, b.alternatives[i].text)) {
      return false;
    }
  }
  return true;
}

namespace {

std::string Describe(const TargetRule& r) {
  std::string out;
  switch (r.level) {
    case RuleLevel::kBatchDims:
      out = r.batch_dims == kBatchDimsOfCall ? "batch_dims of the call"
                                             : absl::StrCat("batch_dims=", r.batch_dims);
      break;
    case RuleLevel::kCallbacks:
      out = "callbacks without an identity";
      if (!r.callbacks.identity.empty()) {
        out = absl::StrCat("callbacks of identity {",
                           absl::StrJoin(r.callbacks.identity, ",",
                                         [](std::string* s, const void* p) {
                                           absl::StrAppend(
                                               s, "0x", absl::Hex(reinterpret_cast<uintptr_t>(p)));
                                         }),
                           "}");
      }
      absl::StrAppend(
          &out, ", version ", r.callbacks.version,
          r.callbacks.can_side_effecting_have_replicated_sharding ? ", replicated with side effects"
                                                                  : "",
          r.callbacks.propagate_reads_result_alone ? ", propagating from the result alone" : "");
      break;
    case RuleLevel::kRule: {
      std::vector<std::string> texts;
      for (const RuleAlternative& a : r.alternatives) texts.push_back(DescribeSignature(a));
      out = absl::StrJoin(texts, " or ");
      break;
    }
  }
  return absl::StrCat(out, " (", r.source, ")");
}

}  // namespace

absl::string_view RuleLevelName(RuleLevel level) {
  switch (level) {
    case RuleLevel::kBatchDims: return "batch_dims";
    case RuleLevel::kRule: return "rule";
    case RuleLevel::kCallbacks: return "callbacks";
  }
  return "rule";
}

void TargetRegistry::State::Put(TargetRule rule) {
  std::shared_ptr<const TargetRule>& place = rules[{rule.target, rule.backend_config}];
  if (place != nullptr) replaced.push_back(std::move(place));
  place = std::make_shared<const TargetRule>(std::move(rule));
}

void TargetRegistry::State::PutFacts(const std::string& target, TargetFacts said) {
  std::shared_ptr<const TargetFacts>& place = facts[target];
  if (place != nullptr) replaced.push_back(std::move(place));
  place = std::make_shared<const TargetFacts>(std::move(said));
}

TargetFacts TargetRegistry::FactsOf(const std::string& target) const {
  const TargetFacts* const known = Facts(target);
  return known == nullptr ? TargetFacts() : *known;
}

absl::Status TargetRegistry::Add(TargetRule rule) {
  if (rule.target.empty()) {
    return ToStatus({.code = "E105",
                     .message = "a target needs a name",
                     .fix = "Register the rule under the custom_call_target of the call"});
  }
  const auto state = state_.Lock();
  const auto known = state->rules.find({rule.target, rule.backend_config});
  const TargetRule* const before = known == state->rules.end() ? nullptr : known->second.get();
  // Of what somebody says and a default, the former holds, also if both say the same.
  const bool said = before != nullptr && before->source != kDefaultSource;
  if (said && Equal(*before, rule)) return absl::OkStatus();
  if (before != nullptr && rule.source == kDefaultSource) return absl::OkStatus();
  if (before == nullptr || before->source == kDefaultSource) {
    const std::string target = rule.target;
    state->Put(std::move(rule));
    const TargetFacts* const facts = Facts(target);
    if (facts == nullptr || !facts->vjp.has_value()) return absl::OkStatus();
    return DeriveVjpRules(target, *facts->vjp);
  }
  const bool callbacks =
      rule.level == RuleLevel::kCallbacks && before->level == RuleLevel::kCallbacks;
  return ToStatus(
      {.code = "E105",
       .message = absl::StrCat("target \"", rule.target, "\" is registered twice"),
       .expected = Describe(*before),
       .found = Describe(rule),
       .fix = absl::StrCat("Keep one of the two, or tell them apart by backend_config",
                           callbacks ? "; functions have no equality, so give equal ones an equal "
                                       "PartitionerCallbacks::identity"
                                     : "")},
      absl::StatusCode::kAlreadyExists);
}

absl::Status TargetRegistry::AddAlternatives(std::vector<RuleAlternative> alternatives,
                                             TargetRule rule, bool ordered) {
  if (alternatives.empty()) {
    return ToStatus(
        {.code = "E105",
         .message = absl::StrCat("target \"", rule.target, "\" is registered with no rule"),
         .fix = "Give at least one rule string"});
  }
  for (RuleAlternative& a : alternatives) {
    auto parsed = ParseRule(a.text);
    if (!parsed.ok()) {
      return absl::Status(parsed.status().code(),
                          absl::StrCat(parsed.status().message(), " (rule of target \"",
                                       rule.target, "\", ", rule.source, ")"));
    }
    a.rule = *std::move(parsed);
    ReadValues(&a);
    SHARDCALL_ASSIGN_OR_RETURN(a.parsed_types, TypesOf(a));
    SHARDCALL_RETURN_IF_ERROR(CheckTypes(a, rule.target));
    SHARDCALL_RETURN_IF_ERROR(
        CheckAttributeFormulas(a.attributes, rule.target, FactorsOf(a.values)));
    if (rule.level == RuleLevel::kRule) {
      SHARDCALL_RETURN_IF_ERROR(CheckOpenFactors(a, rule.target, rule.source));
    }
  }
  if (!ordered) {
    SHARDCALL_RETURN_IF_ERROR(OrderSignatures(rule.target, rule.source, &alternatives));
    rule.types_bind = alternatives.size() > 1;
  }
  rule.text = alternatives[0].text;
  rule.rule = alternatives[0].rule;
  rule.num_given = alternatives.size();
  rule.alternatives = std::move(alternatives);
  return Add(std::move(rule));
}

absl::Status TargetRegistry::RegisterRules(std::string target,
                                           std::vector<RuleAlternative> alternatives,
                                           std::string backend_config, std::string source) {
  TargetRule rule;
  rule.target = std::move(target);
  rule.backend_config = std::move(backend_config);
  rule.level = RuleLevel::kRule;
  rule.source = std::move(source);
  return AddAlternatives(std::move(alternatives), std::move(rule));
}

absl::Status TargetRegistry::RegisterDerived(TargetRule rule,
                                             std::vector<RuleAlternative> alternatives,
                                             bool types_bind) {
  rule.types_bind = types_bind;
  return AddAlternatives(std::move(alternatives), std::move(rule), /*ordered=*/true);
}

absl::Status TargetRegistry::RegisterCallbacksOfRule(std::string target,
                                                     std::vector<RuleAlternative> alternatives,
                                                     PartitionerCallbacks callbacks,
                                                     std::string source) {
  TargetRule rule;
  rule.target = std::move(target);
  rule.level = RuleLevel::kCallbacks;
  rule.callbacks = std::move(callbacks);
  rule.source = std::move(source);
  return AddAlternatives(std::move(alternatives), std::move(rule));
}

absl::Status TargetRegistry::RegisterRule(std::string target, RuleText text,
                                          std::string backend_config, std::string source) {
  std::vector<RuleAlternative> one(1);
  one[0].text = std::move(text);
  return RegisterRules(std::move(target), std::move(one), std::move(backend_config),
                       std::move(source));
}

absl::Status TargetRegistry::RegisterBatchPartitionable(std::string target, int batch_dims,
                                                        std::string backend_config,
                                                        std::string source) {
  if (batch_dims < 0 && batch_dims != kBatchDimsOfCall) {
    return ToStatus({.code = "E105",
                     .message = absl::StrCat("target \"", target, "\" has negative batch_dims"),
                     .expected = "0 or more",
                     .found = absl::StrCat(batch_dims),
                     .fix = "Give the number of leading independent dimensions"});
  }
  TargetRule rule;
  rule.target = std::move(target);
  rule.backend_config = std::move(backend_config);
  rule.level = RuleLevel::kBatchDims;
  rule.batch_dims = batch_dims;
  rule.source = std::move(source);
  return Add(std::move(rule));
}

absl::Status TargetRegistry::RegisterCustomCallPartitioner(std::string target,
                                                           PartitionerCallbacks callbacks,
                                                           std::string backend_config,
                                                           std::string source) {
  TargetRule rule;
  rule.target = std::move(target);
  rule.backend_config = std::move(backend_config);
  rule.level = RuleLevel::kCallbacks;
  rule.callbacks = std::move(callbacks);
  rule.source = std::move(source);
  return Add(std::move(rule));
}

absl::Status TargetRegistry::RegisterReference(std::string target, std::string hlo) {
  const auto state = state_.Lock();
  TargetFacts facts = FactsOf(target);
  if (facts.reference != nullptr && *facts.reference != hlo) {
    return ToStatus({.code = "E105",
                     .message = absl::StrCat("target \"", target, "\" has another reference"),
                     .expected = *facts.reference,
                     .found = hlo,
                     .fix = "Register one reference"},
                    absl::StatusCode::kAlreadyExists);
  }
  facts.reference = std::make_shared<const std::string>(std::move(hlo));
  state->PutFacts(target, std::move(facts));
  return absl::OkStatus();
}

const TargetRule* TargetRegistry::Find(absl::string_view target,
                                       absl::string_view backend_config) const {
  const auto state = state_.Lock();
  auto it = state->rules.find({std::string(target), std::string(backend_config)});
  if (it == state->rules.end() && !backend_config.empty()) {
    it = state->rules.find({std::string(target), std::string()});
  }
  return it == state->rules.end() ? nullptr : it->second.get();
}

void TargetRegistry::Restore(const TargetRegistry& before) { state_ = before.state_; }

std::vector<const TargetRule*> TargetRegistry::List() const {
  std::vector<const TargetRule*> out;
  const auto state = state_.Lock();
  for (const auto& [key, rule] : state->rules) out.push_back(rule.get());
  return out;
}

std::vector<std::string> TargetRegistry::NamesLike(absl::string_view target) const {
  std::vector<absl::string_view> names;
  const auto state = state_.Lock();
  for (const auto& [key, rule] : state->rules) {
    if (names.empty() || names.back() != rule->target) names.push_back(rule->target);
  }
  return NearNames(target, names);
}

}  // namespace shardcall
