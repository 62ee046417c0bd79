// SPDX-License-Identifier: Apache-2.0
// Trials of partition callbacks, one dimension at a time: see CallChecker.
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/check/call_checker.h"

namespace shardcall::inline internal {

void CallChecker::CheckCallbacks() {
  for (int t = 0; t < call_.num_operands; ++t) {
    const int rank = static_cast<int>(call_.Dims(t, base_).size());
    for (int dim = 0; dim < rank; ++dim) {
      if (CheckCallbacksDim(base_, t, dim) && !sizes_.empty().empty() && sizes_.empty() != base_) {
        CheckCallbacksDim(sizes_.empty(), t, dim);
      }
      if (faulty()) return;
    }
  }
}

bool CallChecker::CheckCallbacksDim(const Sizes& sizes, int t, int dim) {
  const int64_t size = call_.Dims(t, sizes)[dim];
  const std::string where = absl::StrCat("operand ", t, ", dimension ", dim);
  bool uneven = false;
  for (int64_t n : kTrialDevices) {
    Tested tested;
    const bool compared = Try({.call = &call_, .sizes = sizes, .dims = {{{t, dim}, n}}}, &tested);
    if (faulty()) return false;
    if (!compared && !tested.reason.empty()) {
      if (sizes == base_) out_.untested.push_back(absl::StrCat(where, ": ", tested.reason));
      return true;
    }
    uneven = uneven || size % n != 0;
    if (!tested.failure.has_value()) continue;
    RuleFinding finding;
    finding.verdict = RuleVerdict::kIncorrect;
    finding.rule = "callbacks";
    finding.factor = where;
    const TrialResult& result = tested.failure->result;
    finding.message =
        result.outcome == TrialOutcome::kCrashed
            ? absl::StrCat("given a shard, the handler of \"", call_.target, "\" ", result.message)
            : result.message;
    finding.signature = call_.SignatureText(sizes);
    finding.backend_config = call_.backend_config;
    finding.shards.emplace_back(finding.factor, n);
    finding.seed = tested.failure->trial.seed;
    out_.findings.push_back(std::move(finding));
    return false;
  }
  if (!uneven && sizes == base_) {
    out_.untested.push_back(absl::StrCat(where, ", uneven sizes: it has ", size));
  }
  return true;
}

}  // namespace shardcall::inline internal
