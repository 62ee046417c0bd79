// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/check_rule.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "shardcall/partitioner/check/call_checker.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

absl::string_view RuleVerdictName(RuleVerdict verdict) {
  constexpr absl::string_view kNames[] = {"holds", "needless", "missing", "incorrect",
                                          "handler_fault"};
  return kNames[static_cast<int>(verdict)];
}

void SortFindings(RuleCheck* check) {
  std::stable_sort(check->findings.begin(), check->findings.end(),
                   [](const RuleFinding& a, const RuleFinding& b) {
                     return a.advice != b.advice ? b.advice : a.verdict > b.verdict;
                   });
  const std::vector<RuleFinding>& all = check->findings;
  if (!all.empty() && !all[0].advice) check->verdict = all[0].verdict;
}

absl::StatusOr<RuleCheck> CheckRule(const std::vector<CheckedCall>& calls, uint64_t seed,
                                    const TrialOptions& given) {
  TrialRun run(given, calls);
  const TrialOptions& options = run.options();
  RuleCheck check;
  // An improvement counts only if it is found for all calls with the same rule.
  std::map<std::string, std::map<std::string, RuleFinding>> better;
  for (const CheckedCall& call : calls) {
    check.target = call.target;
    CallChecker checker(call, seed, options, &check);
    SHARDCALL_RETURN_IF_ERROR(checker.Run());
    if (checker.faulty()) continue;
    std::map<std::string, RuleFinding> found = checker.FindImprovements();
    const std::vector<int64_t> sizes(call.rule.factors.size(), 1);
    const auto [it, first] = better.try_emplace(call.RuleLine(sizes), found);
    if (first) continue;
    for (auto at = it->second.begin(); at != it->second.end();) {
      at = found.count(at->first) > 0 ? std::next(at) : it->second.erase(at);
    }
  }
  for (auto& [rule, by_factor] : better) {
    for (auto& [factor, finding] : by_factor) check.findings.push_back(std::move(finding));
  }
  SortFindings(&check);
  return check;
}

std::string RuleCheckJson(const RuleCheck& check) {
  using Json = nlohmann::ordered_json;
  Json j;
  j["target"] = check.target;
  j["verdict"] = RuleVerdictName(check.verdict).data();
  const bool none = check.findings.empty() || check.findings[0].advice;
  const RuleFinding first = none ? RuleFinding() : check.findings[0];
  j["factor"] = first.factor;
  j["suggestion"] = first.suggestion;
  j["trials"] = check.trials;
  j["findings"] = Json::array();
  for (const RuleFinding& f : check.findings) {
    Json shards = Json::object();
    for (const auto& [factor, n] : f.shards) shards[factor] = n;
    Json finding = {{"verdict", RuleVerdictName(f.verdict).data()},
                    {"rule", f.rule},
                    {"factor", f.factor},
                    {"message", f.message},
                    {"suggestion", f.suggestion}};
    if (f.advice) finding["advice"] = true;
    if (!f.backend_config.empty()) finding["backend_config"] = f.backend_config;
    if (!f.signature.empty()) {
      finding["counter_example"] = {{"call", f.signature}, {"shards", shards}, {"seed", f.seed}};
    }
    j["findings"].push_back(std::move(finding));
  }
  j["untested"] = check.untested;
  return j.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace shardcall
