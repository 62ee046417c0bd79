// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/call_limits.h"

#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "shardcall/partitioner/custom_call/limits_fit.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

absl::Status Wrong(std::string what, std::string expected, std::string found) {
  return ToStatus({.code = "E105",
                   .message = std::move(what),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = "Say of a factor what its size follows from, and of an operand from "
                          "where to where its elements are"});
}

absl::Status Twice(std::string what, std::string found) {
  return ToStatus({.code = "E105",
                   .message = std::move(what),
                   .expected = "each factor, operand and result once",
                   .found = std::move(found),
                   .fix = "Leave one of the two out"});
}

constexpr int64_t kMost = int64_t{1} << 32;

bool IsName(absl::string_view text) {
  if (text.empty() || !(absl::ascii_isalpha(text[0]) || text[0] == '_')) return false;
  for (char c : text) {
    if (!absl::ascii_isalnum(c) && c != '_') return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<SizeFormula> ParseSizeFormula(absl::string_view text) {
  std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  const auto wrong = [&] {
    return Wrong("a size cannot be read", "\"4 h\", \"h + 1\" or \"7\"",
                 absl::StrCat("\"", text, "\""));
  };
  const auto number = [](absl::string_view word, int64_t* value) {
    return absl::SimpleAtoi(word, value) && *value >= -kMost && *value <= kMost;
  };
  SizeFormula f;
  if (words.size() == 1 && number(words[0], &f.plus)) return f;
  size_t next = 0;
  if (next < words.size() && number(words[next], &f.times)) {
    ++next;
  } else {
    f.times = 1;
  }
  if (f.times < 1 || next >= words.size() || !IsName(words[next])) return wrong();
  f.factor = words[next++];
  if (next == words.size()) return f;
  if (next + 2 != words.size() || (words[next] != "+" && words[next] != "-") ||
      !number(words[next + 1], &f.plus)) {
    return wrong();
  }
  if (words[next] == "-") f.plus = -f.plus;
  return f;
}

bool operator==(const CallLimits& a, const CallLimits& b) {
  if (a.sizes != b.sizes || a.ranges.size() != b.ranges.size() || a.scratch != b.scratch) {
    return false;
  }
  for (size_t k = 0; k < a.ranges.size(); ++k) {
    const OperandRange &x = a.ranges[k], &y = b.ranges[k];
    if (x.operand != y.operand || x.low != y.low || x.high != y.high) return false;
  }
  return true;
}

absl::Status TargetRegistry::RegisterCallLimits(std::string target, CallLimits limits) {
  SHARDCALL_RETURN_IF_ERROR(CheckCallLimits(limits));
  const auto state = state_.Lock();
  SHARDCALL_RETURN_IF_ERROR(CheckLimitsFit(limits, target, SignaturesOf(target, *this)));
  const TargetFacts* const known = Facts(target);
  if (target.empty() || (known != nullptr && known->limits.has_value())) {
    if (!target.empty() && *known->limits == limits) return absl::OkStatus();
    return ToStatus(
        {.code = "E105",
         .message =
             absl::StrCat("sizes and ranges of target \"", target, "\" cannot be registered"),
         .expected = "a name, and one registration",
         .found = target.empty() ? "no name" : "others",
         .fix = "Say all sizes and ranges of a target at once"},
        target.empty() ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kAlreadyExists);
  }
  TargetFacts facts = FactsOf(target);
  facts.limits = std::move(limits);
  state->PutFacts(target, std::move(facts));
  return absl::OkStatus();
}

absl::Status CheckCallLimits(const CallLimits& limits) {
  std::set<std::string> sized;
  std::set<int> bounded, unused;
  for (const auto& [factor, text] : limits.sizes) {
    if (!sized.insert(factor).second) {
      return Twice(absl::StrCat("factor ", factor, " has two sizes"), text);
    }
    SHARDCALL_ASSIGN_OR_RETURN(const SizeFormula formula, ParseSizeFormula(text));
    for (const auto& [other, unused] : limits.sizes) {
      if (other != formula.factor) continue;
      return Wrong(absl::StrCat("the size of factor ", factor, " follows from one that follows"),
                   "a factor without a formula", formula.factor);
    }
  }
  for (int result : limits.scratch) {
    if (result < 0) return Wrong("a scratch result is none", "its number", absl::StrCat(result));
    if (unused.insert(result).second) continue;
    return Twice("a scratch result is named twice", absl::StrCat(result));
  }
  for (const OperandRange& range : limits.ranges) {
    SHARDCALL_ASSIGN_OR_RETURN(const SizeFormula low, ParseSizeFormula(range.low));
    SHARDCALL_ASSIGN_OR_RETURN(const SizeFormula high, ParseSizeFormula(range.high));
    const bool empty = low.factor.empty() && high.factor.empty() && low.plus >= high.plus;
    if (range.operand < 0 || empty) {
      return Wrong(absl::StrCat("a range of operand ", range.operand, " holds nothing"),
                   "an operand, and a first number below the second",
                   absl::StrCat("[", range.low, ", ", range.high, "]"));
    }
    if (!bounded.insert(range.operand).second) {
      return Twice(absl::StrCat("operand ", range.operand, " has two ranges"),
                   absl::StrCat("[", range.low, ", ", range.high, "]"));
    }
  }
  return absl::OkStatus();
}

}  // namespace shardcall
