// SPDX-License-Identifier: Apache-2.0
// Finds rules that are correct, but that a better rule exists for: see CallChecker::Improvements.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/check/call_checker.h"

namespace shardcall::inline internal {
namespace {

bool IsWhole(const Factor& f) {
  return f.kind == FactorKind::kNeedReplication || f.kind == FactorKind::kPermutation;
}

}  // namespace

CheckedCall Merged(const CheckedCall& call, const std::vector<int>& group) {
  CheckedCall merged = call;
  for (auto* side : {&merged.rule.operands, &merged.rule.results}) {
    for (TensorFactors& tensor : *side) {
      for (FactorList& dim : tensor.dims) {
        for (int& f : dim) {
          if (std::find(group.begin(), group.end(), f) != group.end()) {
            f = group[0];
          }
        }
      }
    }
  }
  return merged;
}

std::map<std::string, RuleFinding> CallChecker::Improvements() {
  std::map<std::string, RuleFinding> found;
  if (call_.callbacks) {
    FindCallbackCosts(&found);
    return found;
  }
  FindMissing(&found);
  FindNeedless(&found);
  FindOneAsSeveral(&found);
  return found;
}

void CallChecker::AddFinding(RuleVerdict verdict, const std::string& factor, std::string message,
                             const CheckedCall& better,
                             std::map<std::string, RuleFinding>* out) const {
  RuleFinding finding;
  finding.verdict = verdict;
  finding.rule = call_.RuleLine(base_);
  finding.factor = factor;
  finding.message = std::move(message);
  finding.backend_config = call_.backend_config;
  finding.suggestion = better.RuleLine(base_);
  out->emplace(absl::StrCat(RuleVerdictName(verdict), " ", factor), std::move(finding));
}

void CallChecker::FindMissing(std::map<std::string, RuleFinding>* out) {
  for (int f = 0; f < NumFactors(); ++f) {
    // The size of a factor that is only in results is determined by no operand.
    if (!IsWhole(call_.rule.factors[f]) || !IsMajor(f) || !InAnOperand(f)) continue;
    const std::optional<CheckedCall> better = Better(call_, f, /*with_replication=*/false);
    if (!better.has_value()) continue;
    const std::string& name = call_.rule.factors[f].name;
    AddFinding(
        RuleVerdict::kMissing, name,
        absl::StrCat("factor ", name, " is kept whole, and sharding it gives the same results"),
        *better, out);
  }
}

void CallChecker::FindNeedless(std::map<std::string, RuleFinding>* out) {
  for (int f : sound_) {
    const Factor& factor = call_.rule.factors[f];
    CheckedCall better = call_;
    Factor& other = better.rule.factors[f];
    if (factor.kind == FactorKind::kReduction && !InEveryResult(call_, f)) {
      other.kind = FactorKind::kPassThrough;
      other.blocked = !InAResult(call_, f);
      other.has_pad = false;
      const Tested tested = TestFactor(better, f);
      if (tested.runs > 0 && !tested.failure.has_value()) {
        AddFinding(RuleVerdict::kNeedless, factor.name,
                   absl::StrCat("factor ", factor.name,
                                " is reduced over, and every shard of it "
                                "gives the whole result: the all-reduce is needless"),
                   better, out);
        continue;
      }
      other = factor;
    }
    if (factor.blocked && InAResult(call_, f)) {
      other.blocked = false;
      AddFinding(RuleVerdict::kNeedless, factor.name,
                 absl::StrCat("factor ", factor.name,
                              " is blocked and passes: what stands before "
                              "and behind the call is resharded for nothing"),
                 better, out);
    }
  }
}

void CallChecker::FindOneAsSeveral(std::map<std::string, RuleFinding>* out) {
  FindGroups([&](const std::vector<int>& group) {
    const std::optional<CheckedCall> better =
        Better(Merged(call_, group), group[0], /*with_replication=*/false);
    if (!better.has_value()) return;
    std::vector<std::string> names;
    for (int f : group) names.push_back(call_.rule.factors[f].name);
    AddFinding(RuleVerdict::kNeedless, names[0],
               absl::StrCat("factors ", absl::StrJoin(names, " and "),
                            " are one: kept apart, each of them is gathered"),
               *better, out);
  });
}

void CallChecker::FindGroups(absl::FunctionRef<void(const std::vector<int>& group)> visit) {
  std::vector<int> whole;
  for (int f = 0; f < NumFactors(); ++f) {
    if (!IsWhole(call_.rule.factors[f]) || !IsMajor(f)) continue;
    // If the handler takes another size of it alone, it is a dimension of its own.
    if (!sizes_.Takes(sizes_.With(f, 2 * base_[f]))) whole.push_back(f);
  }
  constexpr size_t kMost = 8;
  if (whole.size() > kMost) return;
  // Groups in order of size, to find the smallest ones whose size can change.
  std::vector<uint32_t> groups;
  for (uint32_t bits = 1; bits < 1u << whole.size(); ++bits) {
    const int n = __builtin_popcount(bits);
    if (n == 2 || n == 3) groups.push_back(bits);
  }
  std::stable_sort(groups.begin(), groups.end(), [](uint32_t a, uint32_t b) {
    return __builtin_popcount(a) < __builtin_popcount(b);
  });
  std::vector<uint32_t> found;
  for (uint32_t bits : groups) {
    if (std::any_of(found.begin(), found.end(), [&](uint32_t g) { return (g & bits) != 0; })) {
      continue;
    }
    std::vector<int> group;
    for (size_t k = 0; k < whole.size(); ++k) {
      if ((bits >> k & 1) != 0) group.push_back(whole[k]);
    }
    bool apart = true, operand = false;
    for (int t = 0; t < call_.num_tensors(); ++t) {
      int here = 0;
      for (int f : group) here += Has(call_.rule.tensor(t), f);
      apart = apart && here <= 1;  // an axis shards at most one dimension of a tensor
      operand = operand || (here > 0 && t < call_.num_operands);
    }
    for (int f : group) apart = apart && base_[f] == base_[group[0]];
    if (!apart || !operand) continue;
    sizes_.Link(group);
    if (sizes_.Takes(sizes_.With(group[0], 2 * base_[group[0]]))) {
      found.push_back(bits);
      visit(group);
    }
    sizes_.Unlink(group[0]);
  }
}

}  // namespace shardcall::inline internal
