// SPDX-License-Identifier: Apache-2.0
// The rule of a call, out of those of its target.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/custom_call/open_factors.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/custom_call/rule_choice.h"
#include "shardcall/partitioner/custom_call/type_signature.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using Shapes = absl::Span<const Shape* const>;

// `leading`: by ellipsis, how many dimensions it stands for.
bool SideFits(absl::Span<const RuleAlternative::Value> values,
              absl::Span<const Shape* const> shapes, std::map<std::string, size_t>* leading) {
  if (shapes.empty()) return values.size() == 1 && values[0].IsScalar();
  if (values.size() != shapes.size()) return false;
  for (size_t k = 0; k < values.size(); ++k) {
    const size_t rank = shapes[k]->IsArray() ? shapes[k]->rank() : 0;
    const size_t named = values[k].dims.size();
    if (values[k].ellipsis ? rank < named : rank != named) return false;
    if (!values[k].ellipsis) continue;
    const size_t rest = rank - named;
    if (leading->try_emplace(values[k].group, rest).first->second != rest) return false;
  }
  return true;
}

bool FitsTypes(const RuleAlternative& a, Shapes operands, const Shapes* results) {
  const auto known = TypesOf(a);
  if (!known.ok() || (*known)->signatures.empty()) return true;
  std::vector<ElementType> types;
  for (const Shape* s : operands) types.push_back(s->element_type());
  for (const Shape* s : results == nullptr ? Shapes() : *results) {
    types.push_back(s->element_type());
  }
  return absl::c_any_of((*known)->signatures, [&](const TypeSignature& s) {
    return results == nullptr ? s.Results(types).ok() : s.Fits(types);
  });
}

// Open factors are an error for a rule alone; with callbacks the body handles them.
absl::StatusOr<ShardingRule> RuleOfCall(const TargetRule& target, const RuleAlternative& a,
                                        absl::Span<const Shape* const> operands,
                                        absl::Span<const Shape* const> results) {
  SHARDCALL_ASSIGN_OR_RETURN(ShardingRule rule, InstantiateRule(*a.rule, operands, results));
  if (target.level == RuleLevel::kRule) {
    SHARDCALL_RETURN_IF_ERROR(CheckOpenFactors(rule, results, target.target));
    KeepResultFactorsWhole(&rule);
  }
  return rule;
}

}  // namespace

inline namespace internal {

bool FitsCall(const RuleAlternative& a, bool types_bind, absl::string_view backend_config,
              Shapes operands, const Shapes* results) {
  const absl::Span<const RuleAlternative::Value> values(a.values);
  std::map<std::string, size_t> leading;
  return SideFits(values.first(a.num_operands), operands, &leading) &&
         (results == nullptr || SideFits(values.subspan(a.num_operands), *results, &leading)) &&
         a.AppliesTo(backend_config) && (!types_bind || FitsTypes(a, operands, results));
}

absl::Status NoRuleFits(const TargetRule& rule, absl::string_view backend_config, Shapes operands,
                        const Shapes* results) {
  if (std::none_of(rule.alternatives.begin(), rule.alternatives.end(),
                   [&](const RuleAlternative& a) { return a.AppliesTo(backend_config); })) {
    return ToStatus(
        {.code = "E111",
         .message = absl::StrCat("no rule of target \"", rule.target, "\" is for these attributes"),
         .found = std::string(backend_config),
         .fix = "Register a rule for this backend_config, or one whose `when` it satisfies"});
  }
  std::vector<std::string> have;
  for (const RuleAlternative& a : rule.alternatives) have.push_back(DescribeSignature(a));
  const auto shapes = [](Shapes list) {
    return absl::StrJoin(list, ", ", [](std::string* out, const Shape* s) {
      absl::StrAppend(out, s->ToString(/*with_layout=*/false));
    });
  };
  return ToStatus(
      {.code = "E111",
       .message = absl::StrCat("no rule of target \"", rule.target, "\" fits this call"),
       .expected = absl::StrJoin(have, " or "),
       .found = absl::StrCat("(", shapes(operands), ")",
                             results == nullptr ? "" : absl::StrCat(" -> (", shapes(*results), ")"),
                             backend_config.empty() ? "" : " ", backend_config),
       .fix = "Register a rule with as many operands, results and dimensions, and for "
              "these types and attributes"});
}

}  // namespace internal

const RuleAlternative* TargetRule::Choose(absl::string_view call_backend_config, Shapes operands,
                                          Shapes results) const {
  for (const RuleAlternative& a : alternatives) {
    if (FitsCall(a, types_bind, call_backend_config, operands, &results)) return &a;
  }
  return nullptr;
}

absl::StatusOr<ShardingRule> TargetRule::Instantiate(absl::string_view call_backend_config,
                                                     Shapes operands, Shapes results) const {
  if (level == RuleLevel::kBatchDims) return BatchRule(batch_dims, operands, results);
  SHARDCALL_CHECK(!alternatives.empty());
  const RuleAlternative* chosen = Choose(call_backend_config, operands, results);
  // The error says what of the only rule does not fit.
  if (chosen == nullptr && alternatives.size() == 1 &&
      alternatives[0].AppliesTo(call_backend_config)) {
    chosen = &alternatives[0];
  }
  if (chosen == nullptr) return NoRuleFits(*this, call_backend_config, operands, &results);
  return RuleOfCall(*this, *chosen, operands, results);
}

}  // namespace shardcall
