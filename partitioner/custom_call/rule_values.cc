// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/rule_values.h"

#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace shardcall {
inline namespace internal {
namespace {

using Value = RuleAlternative::Value;

// The dimensions of one value of a rule string; a parenthesised compound is one dimension.
Value ReadValue(absl::string_view text) {
  Value value;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    size_t end = i + 1;
    if (c == '(' || c == ')') {
      inside = c == '(';
      if (inside) value.dims.emplace_back();
    } else if (c == '.') {
      value.ellipsis = true;
      while (end < text.size() && text[end] == '.') ++end;
      const size_t digits = end;
      while (end < text.size() && absl::ascii_isdigit(text[end])) ++end;
      value.group = std::string(text.substr(digits, end - digits));
    } else if (absl::ascii_isalpha(c)) {
      while (end < text.size() && (absl::ascii_isalnum(text[end]) || text[end] == '_')) ++end;
      if (!inside) value.dims.emplace_back();
      value.dims.back().emplace_back(text.substr(i, end - i));
    }
    i = end;
  }
  return value;
}

std::string ValueText(const Value& value) {
  std::vector<std::string> dims;
  if (value.ellipsis) dims.push_back(absl::StrCat("...", value.group));
  for (const std::vector<std::string>& factors : value.dims) {
    dims.push_back(factors.size() == 1 ? factors[0]
                                       : absl::StrCat("(", absl::StrJoin(factors, " "), ")"));
  }
  return absl::StrJoin(dims, " ");
}

}  // namespace

void ReadValues(RuleAlternative* a) {
  const absl::string_view text = a->text.rule;
  const size_t arrow = text.find("->");
  a->values.clear();
  for (absl::string_view value : absl::StrSplit(text.substr(0, arrow), ',')) {
    a->values.push_back(ReadValue(value));
  }
  a->num_operands = static_cast<int>(a->values.size());
  for (absl::string_view value : absl::StrSplit(text.substr(arrow + 2), ',')) {
    a->values.push_back(ReadValue(value));
  }
}

std::string RuleString(absl::Span<const Value> values, int num_operands) {
  std::vector<std::string> sides[2];
  for (size_t k = 0; k < values.size(); ++k) {
    sides[static_cast<int>(k) >= num_operands].push_back(ValueText(values[k]));
  }
  return absl::StrCat(absl::StrJoin(sides[0], ", "), " -> ", absl::StrJoin(sides[1], ", "));
}

std::vector<std::string> FactorsOf(absl::Span<const Value> values) {
  std::vector<std::string> names;
  for (const Value& value : values) {
    for (const std::vector<std::string>& dim : value.dims) {
      for (const std::string& name : dim) {
        if (!absl::c_linear_search(names, name)) names.push_back(name);
      }
    }
  }
  return names;
}

bool IsWhole(const RuleText& text, const std::string& factor) {
  return absl::c_linear_search(text.need_replication, factor) ||
         absl::c_linear_search(text.permutation, factor);
}

bool SamePads(absl::Span<const std::pair<std::string, double>> a,
              absl::Span<const std::pair<std::string, double>> b) {
  return absl::c_equal(a, b, [](const auto& x, const auto& y) {
    const bool none = std::isnan(x.second) && std::isnan(y.second);
    return x.first == y.first && (none || x.second == y.second);
  });
}

std::string FreshFactor(absl::Span<const std::string> taken, const std::string& wish) {
  std::string name = wish;
  for (int k = 0; absl::c_linear_search(taken, name); ++k) name = absl::StrCat(wish, k);
  return name;
}

}  // namespace internal
}  // namespace shardcall
