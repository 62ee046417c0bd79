// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/factor_trials.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/check/factor_uses.h"
#include "shardcall/partitioner/ir/monoid.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int64_t kTiles[] = {1, 2, 4, 8, 16, 32, 64};  // sizes of a factor's shard

// Whether all results are of types that have the reduction. Else the partitioner keeps a factor
// with it whole, and a trial would show nothing.
bool ResultsHave(const CheckedCall& call, PartialOp op) {
  const absl::Span<const ElementType> types = call.types;
  return absl::c_all_of(types.subspan(call.num_operands), [&](ElementType type) {
    return !IsArrayType(type) || HasIdentity(op, type);
  });
}

}  // namespace

bool FactorTrials::Try(RuleTrial trial, Tested* tested) {
  bool compared = false;
  const bool even = absl::c_all_of(trial.shards, [&](const std::pair<int, int64_t>& s) {
    return trial.sizes[s.first] % s.second == 0;
  });
  const absl::Span<const ElementType> types = trial.call->types;
  const bool has_floats = absl::c_any_of(types.first(trial.call->num_operands), IsFloat);
  // Negative elements alone show what a maximum is padded with.
  const int kinds = even || !has_floats || !options_.inputs.empty() ? 2 : 3;
  for (int kind = 0; kind < kinds; ++kind) {
    if (sizes_.faulty()) return false;
    trial.seed = 2 * seed_ + std::min(kind, 1);
    trial.negative = kind == 2;
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
      tested->reason = trial.call->num_tensors() == trial.call->num_operands
                           ? "its calls have no results to compare"
                           : "its results have no elements";
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

FactorTrials::Tested FactorTrials::TestGiven(const CheckedCall& call, int f) {
  Tested tested;
  const CallSizes::Sizes& base = sizes_.base();
  tested.reason = "the given inputs have too few of it";
  tested.uneven_reason = "the given inputs divide evenly";
  for (int64_t n : kDevices) {
    if (base[f] < n) continue;
    const bool compared = Try({.call = &call, .sizes = base, .shards = {{f, n}}}, &tested);
    tested.runs += compared;
    tested.uneven += compared && base[f] % n != 0;
    if (!compared && base[f] % n != 0) tested.uneven_reason = tested.reason;
    if (tested.failure.has_value()) return tested;
  }
  return tested;
}

std::optional<FactorTrials::Failure> FactorTrials::TestEmpty(const CheckedCall& call, int f) {
  Tested tested;
  for (int64_t n : kDevices) {
    if (sizes_.empty().empty() || sizes_.faulty() || tested.failure.has_value()) break;
    Try({.call = &call, .sizes = sizes_.empty(), .shards = {{f, n}}}, &tested);
  }
  return std::move(tested.failure);
}

FactorTrials::Tested FactorTrials::TestFactor(const CheckedCall& call, int f) {
  if (!options_.inputs.empty()) return TestGiven(call, f);
  Tested tested;
  tested.failure = TestEmpty(call, f);
  if (tested.failure.has_value()) return tested;
  std::vector<int64_t> tiles(std::begin(kTiles), std::end(kTiles));
  if (!call.attributes.empty()) {
    // Calls that state a grid may have whole blocks alone, as those of the program.
    for (int64_t tile : {int64_t{128}, int64_t{256}, sizes_.base()[f]}) tiles.push_back(tile);
  }
  bool taken = false;
  TrialResult refusal;
  for (int64_t n : kDevices) {
    for (int64_t tile : tiles) {
      const CallSizes::Sizes whole = sizes_.With(f, n * tile);
      TrialResult why;
      if (!sizes_.Takes(whole, &why) || !sizes_.Takes(sizes_.Shard(whole, f, tile), &why)) {
        if (why.outcome == TrialOutcome::kNoCall) {
          tested.reason = why.message;
        } else if (!why.message.empty()) {
          refusal = why;
        }
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
      const CallSizes::Sizes whole = sizes_.With(f, size);
      const CallSizes::Sizes part = sizes_.Shard(whole, f, (size + n - 1) / n);
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
  const CallSizes::Sizes& base = sizes_.base();
  if (!taken && !refusal.message.empty() && !sizes_.faulty() && base[f] > 0) {
    // The handler takes the whole call, but none with a smaller size of this factor.
    RuleTrial trial{.sizes = base, .shards = {{f, 2}}};
    if (refusal.outcome == TrialOutcome::kHolds) refusal.outcome = TrialOutcome::kRefused;
    tested.failure = Failure{trial, refusal};
  }
  return tested;
}

std::optional<CheckedCall> FactorTrials::Better(const CheckedCall& given, int f,
                                                bool with_replication) {
  std::vector<Factor> variants;
  auto add = [&](FactorKind kind, PartialOp op, std::optional<double> pad) {
    if (kind == FactorKind::kReduction && !ResultsHave(given, op)) return;
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
    if (TestFactor(call, f).holds()) return call;
  }
  if (!with_replication) return std::nullopt;
  CheckedCall call = given;
  call.rule.factors[f].kind = FactorKind::kNeedReplication;
  call.rule.factors[f].has_pad = false;
  return call;
}

}  // namespace internal
}  // namespace shardcall
