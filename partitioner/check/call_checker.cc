// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/call_checker.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/check/callback_costs.h"
#include "shardcall/partitioner/check/factor_uses.h"
#include "shardcall/partitioner/check/reference_check.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int kMostPairs = 12;

bool MayShard(const Factor& f) {
  return f.kind == FactorKind::kPassThrough || f.kind == FactorKind::kReduction;
}

}  // namespace

absl::Status CallChecker::Run() {
  SHARDCALL_RETURN_IF_ERROR(sizes_.Find());
  if (faulty()) return absl::OkStatus();
  std::set<int> constant_in_reference;
  if (options_.reference != nullptr) {
    constant_in_reference = ReferenceCheck(&sizes_, seed_, options_, &out_).Run();
  }
  CheckShapes();
  if (call_.callbacks) {
    CheckCallbacks();
    return absl::OkStatus();
  }
  for (int f = 0; f < NumFactors(call_); ++f) {
    if (MayShard(call_.rule.factors[f]) && !constant_in_reference.contains(f)) CheckFactor(f);
    if (faulty()) return absl::OkStatus();
  }
  CheckPairs();
  CheckInGivenSizes();
  return absl::OkStatus();
}

FindingsByName CallChecker::FindImprovements() {
  if (call_.callbacks) return CallbackCosts(&sizes_, &trials_, seed_, options_).Find();
  return Improvements(&sizes_, &trials_, sound_).Find();
}

void CallChecker::CheckFactor(int f) {
  const std::string& name = call_.rule.factors[f].name;
  if (!IsMajor(call_, f)) {
    if (InAnOperand(call_, f) || InAResult(call_, f)) {
      out_.untested.push_back(absl::StrCat(name, ": it stands behind another in a dimension"));
    }
    return;
  }
  const FactorTrials::Tested tested = trials_.TestFactor(call_, f);
  if (faulty()) return;
  if (tested.failure.has_value()) {
    Report(f, *tested.failure);
    return;
  }
  if (tested.runs == 0) {
    out_.untested.push_back(absl::StrCat(name, ": ", tested.reason));
    return;
  }
  sound_.push_back(f);
  if (tested.uneven == 0) {
    out_.untested.push_back(absl::StrCat(name, ", uneven sizes: ", tested.uneven_reason));
  }
}

void CallChecker::CheckShapes() {
  const TargetRegistry* targets = options_.targets;
  const TargetFacts* facts = targets == nullptr ? nullptr : targets->Facts(call_.target);
  if (facts == nullptr || facts->shapes == nullptr) return;
  Context context;
  std::vector<const Shape*> shapes;
  for (int t = 0; t < call_.num_tensors(); ++t) {
    shapes.push_back(context.MakeArray(call_.types[t], call_.Dims(t, base_)));
  }
  const auto results = absl::MakeConstSpan(shapes).subspan(call_.num_operands);
  const Shape* declared =
      results.size() == 1 && !call_.tuple_result ? results[0] : context.MakeTuple(results);
  const absl::Status status =
      targets->CheckShape({&context, call_.target, call_.backend_config,
                           absl::MakeConstSpan(shapes).first(call_.num_operands)},
                          declared);
  if (status.ok()) return;
  RuleFinding finding;
  finding.verdict = RuleVerdict::kIncorrect;
  finding.rule = call_.RuleLine(base_);
  finding.message =
      absl::StrCat("the target's shape function contradicts its handler, which gives ",
                   declared->ToString(/*with_layout=*/false), "; asked of it: ", status.message());
  finding.signature = call_.SignatureText(base_);
  finding.backend_config = call_.backend_config;
  out_.findings.push_back(std::move(finding));
}

void CallChecker::CheckPairs() {
  int pairs = 0;
  for (size_t i = 0; i < sound_.size(); ++i) {
    for (size_t j = i + 1; j < sound_.size(); ++j) {
      if (faulty()) return;
      if (++pairs > kMostPairs) {
        out_.untested.push_back(absl::StrCat("pairs of factors after the first ", kMostPairs));
        return;
      }
      for (int64_t tile : {2, 8, 32}) {
        CallSizes::Sizes whole = base_;
        if (options_.inputs.empty()) {
          for (int f : {sound_[i], sound_[j]}) whole[f] = 2 * tile;
          call_.Relate(&whole);
          CallSizes::Sizes part = whole;
          for (int f : {sound_[i], sound_[j]}) part[f] = tile;
          if (!sizes_.Takes(whole) || !sizes_.Takes(part)) continue;
        }
        FactorTrials::Tested tested;
        trials_.Try({.call = &call_, .sizes = whole, .shards = {{sound_[i], 2}, {sound_[j], 2}}},
                    &tested);
        if (tested.failure.has_value()) {
          Report(sound_[j], *tested.failure);
          return;
        }
        break;
      }
    }
  }
}

void CallChecker::CheckInGivenSizes() {
  if (!call_.of_program || !options_.inputs.empty()) return;
  CallSizes::Sizes given;
  for (const Factor& f : call_.rule.factors) given.push_back(f.size);
  call_.Relate(&given);
  if (!sizes_.Takes(given)) return;
  for (const int f : sound_) {
    for (const int64_t n : {2, 3}) {
      if (faulty() || given[f] < n) break;
      const int64_t tile = (given[f] + n - 1) / n;
      if (!sizes_.Takes(sizes_.Shard(given, f, tile))) continue;
      FactorTrials::Tested tested;
      trials_.Try({.call = &call_, .sizes = given, .shards = {{f, n}}}, &tested);
      if (!tested.failure.has_value()) continue;
      Report(f, *tested.failure);
      return;
    }
  }
}

void CallChecker::Report(int f, const FactorTrials::Failure& failure) {
  RuleFinding finding;
  finding.verdict = RuleVerdict::kIncorrect;
  finding.rule = call_.RuleLine(base_);
  finding.factor = call_.rule.factors[f].name;
  std::string over;
  for (const auto& [factor, n] : failure.trial.shards) {
    const std::string& name = call_.rule.factors[factor].name;
    finding.shards.emplace_back(name, n);
    absl::StrAppend(&over, over.empty() ? "" : ", ", name, " = ", failure.trial.sizes[factor],
                    " over ", n, " devices");
  }
  const TrialOutcome outcome = failure.result.outcome;
  finding.message =
      absl::StrCat(over, ": ",
                   outcome == TrialOutcome::kRefused ? "the handler refuses a shard: "
                   : outcome == TrialOutcome::kCrashed || outcome == TrialOutcome::kOutside
                       ? absl::StrCat("given a shard, the handler of \"", call_.target, "\" ")
                       : "",
                   failure.result.message);
  finding.signature = call_.SignatureText(failure.trial.sizes);
  finding.backend_config = call_.backend_config;
  finding.seed = failure.trial.seed;
  if (failure.trial.shards.size() == 1) {
    finding.suggestion = trials_.Better(call_, f, /*with_replication=*/true)->RuleLine(base_);
  }
  out_.findings.push_back(std::move(finding));
}

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

bool CallChecker::CheckCallbacksDim(const CallSizes::Sizes& sizes, int t, int dim) {
  const int64_t size = call_.Dims(t, sizes)[dim];
  const std::string where = absl::StrCat("operand ", t, ", dimension ", dim);
  bool uneven = false;
  for (int64_t n : FactorTrials::kDevices) {
    FactorTrials::Tested tested;
    const bool compared =
        trials_.Try({.call = &call_, .sizes = sizes, .dims = {{{t, dim}, n}}}, &tested);
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

}  // namespace internal
}  // namespace shardcall
