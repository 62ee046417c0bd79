// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/improvements.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/check/factor_uses.h"
#include "shardcall/partitioner/check/linked_factors.h"

namespace shardcall {
inline namespace internal {

FindingsByName Improvements::Find() {
  FindMissing();
  FindNeedless();
  FindOneAsSeveral();
  return std::move(found_);
}

void Improvements::Add(RuleVerdict verdict, const std::string& factor, std::string message,
                       const CheckedCall& better) {
  RuleFinding finding;
  finding.verdict = verdict;
  finding.rule = call_.RuleLine(sizes_.base());
  finding.factor = factor;
  finding.message = std::move(message);
  finding.backend_config = call_.backend_config;
  finding.suggestion = better.RuleLine(sizes_.base());
  found_.emplace(absl::StrCat(RuleVerdictName(verdict), " ", factor), std::move(finding));
}

void Improvements::FindMissing() {
  for (int f = 0; f < NumFactors(call_); ++f) {
    // The size of a factor that is only in results is determined by no operand.
    if (!IsKeptWhole(call_.rule.factors[f]) || !IsMajor(call_, f) || !InAnOperand(call_, f))
      continue;
    const std::optional<CheckedCall> better = trials_.Better(call_, f, /*with_replication=*/false);
    if (!better.has_value()) continue;
    const std::string& name = call_.rule.factors[f].name;
    Add(RuleVerdict::kMissing, name,
        absl::StrCat("factor ", name, " is kept whole, and sharding it gives the same results"),
        *better);
  }
}

void Improvements::FindNeedless() {
  for (int f : sound_) {
    const Factor& factor = call_.rule.factors[f];
    CheckedCall better = call_;
    Factor& other = better.rule.factors[f];
    if (factor.kind == FactorKind::kReduction && !InEveryResult(call_, f)) {
      other.kind = FactorKind::kPassThrough;
      other.blocked = !InAResult(call_, f);
      other.has_pad = false;
      if (trials_.TestFactor(better, f).holds()) {
        Add(RuleVerdict::kNeedless, factor.name,
            absl::StrCat("factor ", factor.name,
                         " is reduced over, and every shard of it "
                         "gives the whole result: the all-reduce is needless"),
            better);
        continue;
      }
      other = factor;
    }
    if (factor.blocked && InAResult(call_, f)) {
      other.blocked = false;
      Add(RuleVerdict::kNeedless, factor.name,
          absl::StrCat("factor ", factor.name,
                       " is blocked and passes: what stands before "
                       "and behind the call is resharded for nothing"),
          better);
    }
  }
}

void Improvements::FindOneAsSeveral() {
  ForEachLinkedGroup(&sizes_, [&](const std::vector<int>& group) {
    const std::optional<CheckedCall> better =
        trials_.Better(Merged(call_, group), group[0], /*with_replication=*/false);
    if (!better.has_value()) return;
    std::vector<std::string> names;
    for (int f : group) names.push_back(call_.rule.factors[f].name);
    Add(RuleVerdict::kNeedless, names[0],
        absl::StrCat("factors ", absl::StrJoin(names, " and "),
                     " are one: kept apart, each of them is gathered"),
        *better);
  });
}

}  // namespace internal
}  // namespace shardcall
