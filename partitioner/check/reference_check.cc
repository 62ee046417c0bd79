// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/reference_check.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/check/factor_uses.h"
#include "shardcall/partitioner/check/reference.h"
#include "shardcall/partitioner/ir/text/parser.h"

namespace shardcall {
inline namespace internal {

void ReferenceCheck::AddFinding(const std::string& factor, const Sizes& sizes,
                                std::string message) {
  RuleFinding finding;
  finding.verdict = RuleVerdict::kIncorrect;
  finding.rule = call_.RuleLine(base_);
  finding.factor = factor;
  finding.message = std::move(message);
  finding.signature = call_.SignatureText(sizes);
  finding.backend_config = call_.backend_config;
  finding.seed = seed_;
  out_.findings.push_back(std::move(finding));
}

std::optional<ReferenceCheck::Sizes> ReferenceCheck::WrittenSizes() const {
  const TargetFacts* facts =
      options_.targets == nullptr ? nullptr : options_.targets->Facts(call_.target);
  if (facts == nullptr || facts->reference == nullptr) return std::nullopt;
  const absl::StatusOr<Module> module =
      ParseModule(facts->reference, std::make_shared<Context>(), "reference", options_.targets);
  if (!module.ok()) return std::nullopt;
  const auto& parameters = module->comp(module->entry()).parameters;
  if (static_cast<int>(parameters.size()) != call_.num_operands) return std::nullopt;
  Sizes sizes = base_;
  for (int t = 0; t < call_.num_operands; ++t) {
    const auto& dims = call_.rule.tensor(t).dims;
    const Shape* shape = module->instr(parameters[t]).shape;
    if (!shape->IsArray() || shape->rank() != static_cast<int>(dims.size())) return std::nullopt;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d].empty()) continue;
      int64_t minor = 1;
      for (size_t k = 1; k < dims[d].size(); ++k) minor *= sizes[dims[d][k]];
      if (minor > 0) sizes[dims[d][0]] = shape->dim(static_cast<int>(d)) / minor;
    }
  }
  for (int t = 0; t < call_.num_operands; ++t) {
    const auto now = call_.Dims(t, sizes);
    const auto dims = module->instr(parameters[t]).shape->dims();
    if (!std::equal(now.begin(), now.end(), dims.begin(), dims.end())) return std::nullopt;
  }
  return sizes;
}

std::set<int> ReferenceCheck::FindConstantSizes() {
  std::set<int> found;
  const std::optional<Sizes> written = WrittenSizes();
  if (!written.has_value() || !sizes_.Takes(*written)) return found;
  ++out_.trials;
  if (AgainstReference(call_, *written, seed_, options_).outcome != TrialOutcome::kHolds) {
    return found;
  }
  for (int f = 0; f < NumFactors(call_); ++f) {
    for (int64_t size : {3, 5}) {
      Sizes sizes = *written;
      if (sizes[f] == size) continue;
      sizes[f] = size;
      call_.Relate(&sizes);
      if (!sizes_.Takes(sizes)) continue;
      const TrialResult result = AgainstReference(call_, sizes, seed_, options_);
      if (result.outcome == TrialOutcome::kNoReference) continue;
      ++out_.trials;
      if (result.outcome != TrialOutcome::kWrong) continue;
      const std::string& name = call_.rule.factors[f].name;
      found.insert(f);
      AddFinding(
          name, sizes,
          absl::StrCat("the handler and the reference agree on ", call_.SignatureText(*written),
                       ", in which the reference is written, and disagree with ", name, " = ", size,
                       ": ", result.message,
                       "; a constant of the reference is made from "
                       "the size of ",
                       name, ": take it by get-dimension-size in its place"));
      break;
    }
  }
  return found;
}

std::set<int> ReferenceCheck::Run() {
  std::vector<Sizes> tries = {base_};
  if (!sizes_.empty().empty() && sizes_.empty() != base_) tries.push_back(sizes_.empty());
  for (int f = 0; f < NumFactors(call_); ++f) {
    for (int64_t size : {1, 3, 8}) tries.push_back(sizes_.With(f, size));
  }
  for (const Sizes& sizes : tries) {
    if (!sizes_.Takes(sizes)) continue;
    const TrialResult result = AgainstReference(call_, sizes, seed_, options_);
    if (result.outcome == TrialOutcome::kNoReference) {
      if (sizes != base_) continue;
      out_.untested.push_back(absl::StrCat("the reference: ", result.message));
      return {};
    }
    ++out_.trials;
    if (result.outcome == TrialOutcome::kHolds) continue;
    if (result.outcome == TrialOutcome::kLate || result.outcome == TrialOutcome::kCrashed) {
      sizes_.ReportHandler(sizes, result);
      return {};
    }
    std::set<int> constant = FindConstantSizes();
    if (!constant.empty()) return constant;
    AddFinding(
        "", sizes,
        absl::StrCat("the handler and the reference disagree on one device: ", result.message));
    return {};
  }
  return {};
}

}  // namespace internal
}  // namespace shardcall
