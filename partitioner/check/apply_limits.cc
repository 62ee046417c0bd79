// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/apply_limits.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/custom_call/limits_fit.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// Resolves `formula` to factors of the call; false if it names none of them.
bool Resolve(const SizeFormula& formula, const ShardingRule& rule, CheckedCall::Related* out) {
  *out = {.times = formula.times, .of = -1, .plus = formula.plus};
  if (formula.factor.empty()) return true;
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    if (rule.factors[f].name == formula.factor) out->of = static_cast<int>(f);
  }
  return out->of >= 0;
}

absl::Status AllScratch(absl::string_view target, int results) {
  return ToStatus(
      {.code = "E105",
       .message = absl::StrCat("a call of target \"", target, "\" has scratch results alone"),
       .expected = "a result that means something",
       .found = absl::StrCat(results, " scratch results of ", results),
       .fix = "Name the results that are scratch memory"});
}

}  // namespace

absl::Status ApplyLimits(const TargetRegistry& targets, std::vector<CheckedCall>* calls) {
  if (calls->empty()) return absl::OkStatus();
  const std::string target = calls->front().target;
  const TargetFacts* const facts = targets.Facts(target);
  if (facts == nullptr || !facts->limits.has_value()) return absl::OkStatus();
  const std::vector<const RuleAlternative*> signatures = SignaturesOf(target, targets);
  SHARDCALL_RETURN_IF_ERROR(CheckLimitsFit(*facts->limits, target, signatures));
  // What fits some signature may be of another one than the calls have.
  const bool of_another =
      !signatures.empty() && std::none_of(calls->begin(), calls->end(),
                                          [](const CheckedCall& call) { return call.own_rule; });
  const auto unknown = [&](std::string what) {
    return of_another ? absl::OkStatus() : FitsNoCall(target, std::move(what));
  };
  for (const auto& [name, text] : facts->limits->sizes) {
    SHARDCALL_ASSIGN_OR_RETURN(const SizeFormula formula, ParseSizeFormula(text));
    bool known = false;
    for (CheckedCall& call : *calls) {
      CheckedCall::Related related, self;
      if (!Resolve({.times = 1, .factor = name}, call.rule, &self) ||
          !Resolve(formula, call.rule, &related)) {
        continue;
      }
      known = true;
      related.factor = self.of;
      if (related.of >= 0) {
        call.related.push_back(related);
      } else {
        call.rule.factors[self.of].size = related.plus;
      }
    }
    if (!known) SHARDCALL_RETURN_IF_ERROR(unknown(absl::StrCat(name, " = ", text)));
  }
  for (const int r : facts->limits->scratch) {
    bool known = false;
    for (CheckedCall& call : *calls) {
      if (r >= call.num_tensors() - call.num_operands) continue;
      known = true;
      call.scratch.push_back(r);
    }
    if (!known) SHARDCALL_RETURN_IF_ERROR(unknown(absl::StrCat("scratch result ", r)));
  }
  for (const CheckedCall& call : *calls) {
    const int results = call.num_tensors() - call.num_operands;
    if (results > 0 && static_cast<int>(call.scratch.size()) == results) {
      return AllScratch(target, results);
    }
  }
  for (const OperandRange& range : facts->limits->ranges) {
    SHARDCALL_ASSIGN_OR_RETURN(const SizeFormula low, ParseSizeFormula(range.low));
    SHARDCALL_ASSIGN_OR_RETURN(const SizeFormula high, ParseSizeFormula(range.high));
    bool known = false;
    for (CheckedCall& call : *calls) {
      CheckedCall::Range in{.operand = range.operand};
      if (range.operand >= call.num_operands || !Resolve(low, call.rule, &in.low) ||
          !Resolve(high, call.rule, &in.high)) {
        continue;
      }
      known = true;
      call.ranges.push_back(in);
    }
    if (!known) {
      SHARDCALL_RETURN_IF_ERROR(unknown(
          absl::StrCat("operand ", range.operand, " in [", range.low, ", ", range.high, ")")));
    }
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
