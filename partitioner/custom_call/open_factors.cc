// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/open_factors.h"

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::Status LeftOpen(const std::string& factor, absl::string_view target, absl::string_view source,
                      absl::string_view rule) {
  const bool ellipsis = absl::StartsWith(factor, "...");
  return ToStatus(
      {.code = "E112",
       .message = absl::StrCat("the rule of target \"", target, "\"",
                               source.empty() ? "" : absl::StrCat(" (", source, ")"),
                               " does not say what becomes of ", ellipsis ? "" : "factor ", factor,
                               ", which no result has"),
       .expected = "reduction or need_replication for it",
       .found = std::string(rule),
       .fix = ellipsis
                  ? absl::StrCat("Name the dimensions that ", factor,
                                 " stands for, and give each "
                                 "a reduction, or need_replication")
                  : absl::StrCat("Declare reduction={\"", factor,
                                 "\": add} (or max, min, ..) if "
                                 "results are combined over its shards, or need_replication={\"",
                                 factor, "\"} if the kernel must see it whole")});
}

// The first open factor or ellipsis of the rule; empty if there is none.
std::string FirstOpenFactor(const RuleAlternative& rule) {
  const RuleText& text = rule.text;
  std::set<std::string> settled(text.need_replication.begin(), text.need_replication.end());
  settled.insert(text.permutation.begin(), text.permutation.end());
  settled.insert(text.blocked.begin(), text.blocked.end());
  for (const auto& [name, op] : text.reduction) settled.insert(name);
  for (size_t k = rule.num_operands; k < rule.values.size(); ++k) {
    const RuleAlternative::Value& value = rule.values[k];
    if (value.ellipsis) settled.insert(absl::StrCat("...", value.group));
    for (const auto& dim : value.dims) settled.insert(dim.begin(), dim.end());
  }
  for (int k = 0; k < rule.num_operands; ++k) {
    const RuleAlternative::Value& value = rule.values[k];
    const std::string rest = absl::StrCat("...", value.group);
    if (value.ellipsis && settled.count(rest) == 0) return rest;
    for (const auto& dim : value.dims) {
      for (const std::string& f : dim) {
        if (settled.count(f) == 0) return f;
      }
    }
  }
  return "";
}

}  // namespace

absl::Status CheckOpenFactors(const RuleAlternative& rule, absl::string_view target,
                              absl::string_view source) {
  const bool scalar = static_cast<int>(rule.values.size()) == rule.num_operands + 1 &&
                      rule.values.back().IsScalar();
  const std::string open = FirstOpenFactor(rule);
  return scalar || open.empty() ? absl::OkStatus() : LeftOpen(open, target, source, rule.text.rule);
}

bool LeavesFactorsOpen(const RuleAlternative& rule) { return !FirstOpenFactor(rule).empty(); }

absl::Status CheckOpenFactors(const ShardingRule& rule, absl::Span<const Shape* const> results,
                              absl::string_view target) {
  const IndexSet open = OpenFactors(rule, results);
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    if (!open.Contains(static_cast<int>(f))) continue;
    return LeftOpen(rule.factors[f].name, target, "", rule.ToString());
  }
  return absl::OkStatus();
}

void KeepResultFactorsWhole(ShardingRule* rule) {
  IndexSet given;
  for (const TensorFactors& tensor : rule->operands) {
    for (const FactorList& dim : tensor.dims) {
      for (int f : dim) given.Insert(f);
    }
  }
  for (size_t f = 0; f < rule->factors.size(); ++f) {
    Factor& factor = rule->factors[f];
    if (given.Contains(static_cast<int>(f)) || factor.blocked) continue;
    if (factor.kind == FactorKind::kPassThrough) factor.kind = FactorKind::kNeedReplication;
  }
}

}  // namespace internal
}  // namespace shardcall
