// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/limits_fit.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// Whether the signature has the factor; "" stands for none.
bool HasFactor(const RuleAlternative& a, const std::string& factor) {
  if (factor.empty()) return true;
  for (const RuleAlternative::Value& value : a.values) {
    for (const std::vector<std::string>& dim : value.dims) {
      if (std::find(dim.begin(), dim.end(), factor) != dim.end()) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<const RuleAlternative*> SignaturesOf(absl::string_view target,
                                                 const TargetRegistry& targets) {
  std::vector<const RuleAlternative*> signatures;
  for (const TargetRule* rule : targets.List()) {
    if (rule->target != target) continue;
    for (const RuleAlternative& a : rule->alternatives) signatures.push_back(&a);
  }
  return signatures;
}

absl::Status FitsNoCall(absl::string_view target, std::string what) {
  return ToStatus({.code = "E105",
                   .message = absl::StrCat("a size, range or scratch result of target \"", target,
                                           "\" fits none of its calls"),
                   .expected = "factors, operands and results of its rule",
                   .found = std::move(what),
                   .fix = "Name factors as the rule does, and count operands and results from 0"});
}

absl::Status CheckLimitsFit(const CallLimits& limits, absl::string_view target,
                            absl::Span<const RuleAlternative* const> signatures) {
  if (signatures.empty()) return absl::OkStatus();
  const auto check = [&](std::string what, const auto& fits) {
    if (std::any_of(signatures.begin(), signatures.end(),
                    [&](const RuleAlternative* a) { return fits(*a); })) {
      return absl::OkStatus();
    }
    return FitsNoCall(target, std::move(what));
  };
  for (const auto& [factor, text] : limits.sizes) {
    SHARDCALL_ASSIGN_OR_RETURN(const SizeFormula formula, ParseSizeFormula(text));
    SHARDCALL_RETURN_IF_ERROR(
        check(absl::StrCat(factor, " = ", text), [&, &name = factor](const RuleAlternative& a) {
          return HasFactor(a, name) && HasFactor(a, formula.factor);
        }));
  }
  for (const OperandRange& range : limits.ranges) {
    SHARDCALL_ASSIGN_OR_RETURN(const SizeFormula low, ParseSizeFormula(range.low));
    SHARDCALL_ASSIGN_OR_RETURN(const SizeFormula high, ParseSizeFormula(range.high));
    SHARDCALL_RETURN_IF_ERROR(
        check(absl::StrCat("operand ", range.operand, " in [", range.low, ", ", range.high, ")"),
              [&](const RuleAlternative& a) {
                return range.operand < a.num_operands && HasFactor(a, low.factor) &&
                       HasFactor(a, high.factor);
              }));
  }
  const auto results = [](const RuleAlternative& a) {
    return static_cast<int>(a.values.size()) - a.num_operands;
  };
  for (int r : limits.scratch) {
    SHARDCALL_RETURN_IF_ERROR(check(absl::StrCat("scratch result ", r),
                                    [&](const RuleAlternative& a) { return r < results(a); }));
  }
  const int count = static_cast<int>(limits.scratch.size());
  return check("scratch results alone",
               [&](const RuleAlternative& a) { return count == 0 || count < results(a); });
}

}  // namespace internal
}  // namespace shardcall
