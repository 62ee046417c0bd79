// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/call_checker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::inline internal {
namespace {

bool MayShard(const Factor& f) {
  return f.kind == FactorKind::kPassThrough || f.kind == FactorKind::kReduction;
}

}  // namespace

absl::Status CallChecker::Run() {
  SHARDCALL_RETURN_IF_ERROR(sizes_.Find());
  if (faulty()) return absl::OkStatus();
  if (options_.reference != nullptr) CheckReference();
  CheckShapes();
  if (call_.callbacks) {
    CheckCallbacks();
    return absl::OkStatus();
  }
  for (int f = 0; f < NumFactors(); ++f) {
    const std::string& name = call_.rule.factors[f].name;
    if (!MayShard(call_.rule.factors[f]) || constant_in_reference_.contains(f)) continue;
    if (!IsMajor(f)) {
      if (InATensor(f)) {
        out_.untested.push_back(absl::StrCat(name, ": it stands behind another in a dimension"));
      }
      continue;
    }
    const Tested tested = TestFactor(call_, f);
    if (faulty()) return absl::OkStatus();
    if (tested.failure.has_value()) {
      Report(f, *tested.failure);
      continue;
    }
    if (tested.runs == 0) {
      out_.untested.push_back(absl::StrCat(name, ": ", tested.reason));
      continue;
    }
    sound_.push_back(f);
    if (tested.uneven == 0) {
      out_.untested.push_back(absl::StrCat(name, ", uneven sizes: ", tested.uneven_reason));
    }
  }
  CheckPairs(sound_);
  return absl::OkStatus();
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

bool CallChecker::IsMajor(int f) const {
  bool used = false;
  for (int t = 0; t < call_.num_tensors(); ++t) {
    for (const FactorList& dim : call_.rule.tensor(t).dims) {
      const auto it = std::find(dim.begin(), dim.end(), f);
      if (it != dim.begin() && it != dim.end()) return false;
      used = used || it != dim.end();
    }
  }
  return used;
}

bool CallChecker::InEveryResult(const CheckedCall& call, int f) {
  const auto& results = call.rule.results;
  return std::all_of(results.begin(), results.end(),
                     [&](const TensorFactors& t) { return Has(t, f); });
}

bool CallChecker::InATensor(int f) const { return InAnOperand(f) || InAResult(call_, f); }

bool CallChecker::InAResult(const CheckedCall& call, int f) {
  const auto& results = call.rule.results;
  return std::any_of(results.begin(), results.end(),
                     [&](const TensorFactors& t) { return Has(t, f); });
}

bool CallChecker::InAnOperand(int f) const {
  const auto& operands = call_.rule.operands;
  return std::any_of(operands.begin(), operands.end(),
                     [&](const TensorFactors& t) { return Has(t, f); });
}

}  // namespace shardcall::inline internal
