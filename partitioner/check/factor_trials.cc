// SPDX-License-Identifier: Apache-2.0
// Trials of a rule's factors, alone and in pairs, and the search for a valid kind in place of a
// wrong one: see CallChecker.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/check/call_checker.h"

namespace shardcall::inline internal {
namespace {

constexpr int64_t kTiles[] = {1, 2, 4, 8, 16, 32, 64};  // sizes of a factor's shard
constexpr int kMostPairs = 12;

}  // namespace

bool CallChecker::Try(RuleTrial trial, Tested* tested) {
  bool compared = false;
  for (uint64_t kind : {0, 1}) {
    if (faulty()) return false;
    trial.seed = 2 * seed_ + kind;
    TrialResult result = RunTrial(trial, options_);
    if (result.outcome == TrialOutcome::kLate) {
      sizes_.ReportHandler(trial.sizes, result);
      return false;
    }
    if (result.outcome == TrialOutcome::kNoReference) continue;
    if (result.outcome == TrialOutcome::kNotSharded) {
      tested->reason = result.message;
      continue;
    }
    ++out_.trials;
    if (result.outcome == TrialOutcome::kHolds &&
        !CallSizes::HasResults(*trial.call, trial.sizes)) {
      tested->reason = "its results have no elements";
      continue;
    }
    compared = true;
    if (result.outcome == TrialOutcome::kHolds) continue;
    tested->failure = Failure{trial, std::move(result)};
    tested->failure->trial.call = nullptr;  // `call` may be destroyed earlier
    return true;
  }
  return compared;
}

CallChecker::Tested CallChecker::TestGiven(const CheckedCall& call, int f) {
  Tested tested;
  tested.reason = "the given inputs have too few of it";
  tested.uneven_reason = "the given inputs divide evenly";
  for (int64_t n : kTrialDevices) {
    if (base_[f] < n) continue;
    const bool compared = Try({.call = &call, .sizes = base_, .shards = {{f, n}}}, &tested);
    tested.runs += compared;
    tested.uneven += compared && base_[f] % n != 0;
    if (!compared && base_[f] % n != 0) tested.uneven_reason = tested.reason;
    if (tested.failure.has_value()) return tested;
  }
  return tested;
}

std::optional<CallChecker::Failure> CallChecker::TestEmpty(const CheckedCall& call, int f) {
  Tested tested;
  for (int64_t n : kTrialDevices) {
    if (sizes_.empty().empty() || faulty() || tested.failure.has_value()) break;
    Try({.call = &call, .sizes = sizes_.empty(), .shards = {{f, n}}}, &tested);
  }
  return std::move(tested.failure);
}

CallChecker::Tested CallChecker::TestFactor(const CheckedCall& call, int f) {
  if (!options_.inputs.empty()) return TestGiven(call, f);
  Tested tested;
  tested.failure = TestEmpty(call, f);
  if (tested.failure.has_value()) return tested;
  bool taken = false;
  TrialResult refusal;
  for (int64_t n : kTrialDevices) {
    for (int64_t tile : kTiles) {
      const Sizes whole = sizes_.With(f, n * tile);
      TrialResult why;
      if (!sizes_.Takes(whole, &why) || !sizes_.Takes(sizes_.Shard(whole, f, tile), &why)) {
        if (!why.message.empty()) refusal = why;
        continue;
      }
      taken = true;
      RuleTrial trial{.call = &call, .sizes = whole, .shards = {{f, n}}};
      tested.runs += Try(trial, &tested);
      if (tested.failure.has_value()) return tested;
      if (tile == 1) continue;  // one row per shard hardly tests the order
      break;
    }
    for (int64_t size : {2 * n - 1, 4 * n - 1, n + 1}) {
      const Sizes whole = sizes_.With(f, size);
      const Sizes part = sizes_.Shard(whole, f, (size + n - 1) / n);
      if (!sizes_.Takes(whole) || !sizes_.Takes(part)) continue;
      RuleTrial trial{.call = &call, .sizes = whole, .shards = {{f, n}}};
      const std::string even_reason = tested.reason;
      const bool compared = Try(trial, &tested);
      tested.runs += compared;
      tested.uneven += compared;
      if (!compared) tested.uneven_reason = tested.reason;
      if (tested.runs > 0) tested.reason = even_reason;
      if (tested.failure.has_value()) return tested;
    }
  }
  if (!taken && !refusal.message.empty() && !faulty() && base_[f] > 0) {
    // The handler takes the whole call, but none with a smaller size of this factor.
    RuleTrial trial{.sizes = base_, .shards = {{f, 2}}};
    if (refusal.outcome == TrialOutcome::kHolds) refusal.outcome = TrialOutcome::kRefused;
    tested.failure = Failure{trial, refusal};
  }
  return tested;
}

void CallChecker::CheckPairs(const std::vector<int>& factors) {
  int pairs = 0;
  for (size_t i = 0; i < factors.size(); ++i) {
    for (size_t j = i + 1; j < factors.size(); ++j) {
      if (faulty()) return;
      if (++pairs > kMostPairs) {
        out_.untested.push_back(absl::StrCat("pairs of factors after the first ", kMostPairs));
        return;
      }
      for (int64_t tile : {2, 8, 32}) {
        Sizes whole = base_;
        if (options_.inputs.empty()) {
          for (int f : {factors[i], factors[j]}) whole[f] = 2 * tile;
          call_.Relate(&whole);
          Sizes part = whole;
          for (int f : {factors[i], factors[j]}) part[f] = tile;
          if (!sizes_.Takes(whole) || !sizes_.Takes(part)) continue;
        }
        Tested tested;
        Try({.call = &call_, .sizes = whole, .shards = {{factors[i], 2}, {factors[j], 2}}},
            &tested);
        if (tested.failure.has_value()) {
          Report(factors[j], *tested.failure);
          return;
        }
        break;
      }
    }
  }
}

std::optional<CheckedCall> CallChecker::Better(const CheckedCall& given, int f,
                                               bool with_replication) {
  std::vector<Factor> variants;
  auto add = [&](FactorKind kind, PartialOp op, std::optional<double> pad) {
    Factor v = given.rule.factors[f];
    v.kind = kind;
    v.reduction = op;
    // A factor that is in no result, where any shard gives the whole result, is blocked.
    if (!InAResult(given, f)) v.blocked = kind == FactorKind::kPassThrough;
    v.has_pad = pad.has_value();
    v.pad = pad.value_or(0);
    variants.push_back(v);
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  add(FactorKind::kPassThrough, PartialOp::kSum, std::nullopt);
  if (given.rule.factors[f].kind == FactorKind::kPassThrough) {
    // A kernel that does not check its indices works with padding that is a valid index.
    add(FactorKind::kPassThrough, PartialOp::kSum, 0);
  }
  if (!InEveryResult(given, f)) {
    add(FactorKind::kReduction, PartialOp::kSum, 0);
    add(FactorKind::kReduction, PartialOp::kMax, -kInfinity);
    add(FactorKind::kReduction, PartialOp::kMin, kInfinity);
    for (PartialOp op : {PartialOp::kSum, PartialOp::kMax, PartialOp::kMin}) {
      add(FactorKind::kReduction, op, std::nullopt);
    }
  }
  for (const Factor& v : variants) {
    CheckedCall call = given;
    call.rule.factors[f] = v;
    const Tested tested = TestFactor(call, f);
    if (tested.runs > 0 && !tested.failure.has_value()) return call;
  }
  if (!with_replication) return std::nullopt;
  CheckedCall call = given;
  call.rule.factors[f].kind = FactorKind::kNeedReplication;
  call.rule.factors[f].has_pad = false;
  return call;
}

void CallChecker::Report(int f, const Failure& failure) {
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
    finding.suggestion = Better(call_, f, /*with_replication=*/true)->RuleLine(base_);
  }
  out_.findings.push_back(std::move(finding));
}

}  // namespace shardcall::inline internal
