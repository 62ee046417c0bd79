// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/attribute_formulas.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/kernels/ffi/config_numbers.h"
#include "shardcall/partitioner/custom_call/size_expression.h"
#include "shardcall/sharding/base/near_names.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

std::string Of(absl::string_view attribute, absl::string_view target) {
  return absl::StrCat("attribute ", attribute, " of target \"", target, "\"");
}

absl::Status Wrong(std::string message, std::string expected, std::string found, std::string fix) {
  return ToStatus({.code = "E125",
                   .message = std::move(message),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = std::move(fix)});
}

// Whether an attribute of the integer type can be `value`.
bool Fits(ElementType type, int64_t value) {
  const int bits = ElementTypeBits(type);
  if (IsUnsignedInteger(type)) return value >= 0 && (bits >= 64 || value >> bits == 0);
  if (bits >= 64) return true;
  return value >= -(int64_t{1} << (bits - 1)) && value < int64_t{1} << (bits - 1);
}

absl::StatusOr<int64_t> Value(const std::string& formula, const ShardingRule& rule,
                              absl::Span<const int64_t> sizes) {
  SHARDCALL_ASSIGN_OR_RETURN(const SizeExpression e, SizeExpression::Parse(formula));
  std::vector<int64_t> values;
  for (const std::string& name : e.factors()) {
    int64_t value = 1;  // the call has nothing of a factor that it leaves out
    for (size_t f = 0; f < rule.factors.size(); ++f) {
      if (rule.factors[f].name == name) value = sizes[f];
    }
    values.push_back(value);
  }
  return e.Evaluate([&](size_t k) { return values[k]; });
}

// The number of an attribute, or E125.
absl::StatusOr<const NumberPlace*> FindNumber(const ConfigNumbers& numbers, absl::string_view name,
                                              absl::string_view target) {
  const NumberPlace* place = numbers.Find(name);
  if (place != nullptr && IsInteger(place->type)) return place;
  if (place != nullptr) {
    return Wrong(absl::StrCat(Of(name, target), " has a formula, and is no integer"), "an integer",
                 std::string(ElementTypeName(place->type)),
                 "Give formulas to attributes of integer types alone");
  }
  std::vector<absl::string_view> names;
  for (const NumberPlace& n : numbers.numbers()) {
    if (IsInteger(n.type)) names.push_back(n.name);
  }
  constexpr size_t kMost = 12;
  const std::string all = absl::StrJoin(absl::MakeSpan(names).subspan(0, kMost), ", ");
  return Wrong(absl::StrCat(Of(name, target), " has a formula, and the call does not state it"),
               names.empty() ? "a backend_config with integers" : absl::StrCat("one of ", all),
               std::string(name),
               "Name it as the call does: n, more.n within a dictionary, grid[0] within a list");
}

absl::StatusOr<std::string> Config(const AttributeFormulas& formulas, absl::string_view target,
                                   absl::string_view backend_config, const ShardingRule& rule,
                                   absl::Span<const int64_t> sizes, bool checked) {
  SHARDCALL_ASSIGN_OR_RETURN(const ConfigNumbers numbers, ConfigNumbers::Read(backend_config));
  std::vector<int64_t> whole;
  for (const Factor& f : rule.factors) whole.push_back(f.size);
  std::vector<std::pair<size_t, int64_t>> values;
  for (const auto& [name, formula] : formulas) {
    SHARDCALL_ASSIGN_OR_RETURN(const NumberPlace* place, FindNumber(numbers, name, target));
    if (checked) {
      SHARDCALL_ASSIGN_OR_RETURN(const int64_t stated, Value(formula, rule, whole));
      if (stated != place->value) {
        return Wrong(absl::StrCat(Of(name, target), " is not what its formula \"", formula,
                                  "\" gives for the whole call"),
                     absl::StrCat(stated), absl::StrCat(place->value),
                     "Correct the formula, so that it gives the call's own value for the whole "
                     "arrays");
      }
    }
    SHARDCALL_ASSIGN_OR_RETURN(const int64_t value, Value(formula, rule, sizes));
    if (!Fits(place->type, value)) {
      return Wrong(absl::StrCat(Of(name, target), " cannot be what its formula \"", formula,
                                "\" gives for a shard"),
                   absl::StrCat("a value of ", ElementTypeName(place->type)), absl::StrCat(value),
                   "Correct the formula, or give the attribute a wider type");
    }
    values.emplace_back(place - numbers.numbers().data(), value);
  }
  return numbers.With(values);
}

}  // namespace

absl::Status CheckAttributeFormulas(const AttributeFormulas& formulas, absl::string_view target,
                                    absl::Span<const std::string> factors) {
  std::set<std::string> seen;
  for (const auto& [name, formula] : formulas) {
    const std::string of = Of(name, target);
    if (name.empty() || !seen.insert(name).second) {
      return ToStatus({.code = "E124",
                       .message = absl::StrCat(of, " has two formulas, or no name"),
                       .expected = "each attribute once",
                       .fix = "Give one formula for it"});
    }
    const absl::StatusOr<SizeExpression> e = SizeExpression::Parse(formula);
    if (!e.ok()) return In(e.status(), of);
    for (const std::string& factor : e->factors()) {
      if (std::find(factors.begin(), factors.end(), factor) != factors.end()) continue;
      const std::vector<std::string> near =
          NearNames(factor, std::vector<absl::string_view>(factors.begin(), factors.end()), 1);
      return ToStatus(
          {.code = "E124",
           .message = absl::StrCat("a formula for ", of, " names a factor that its rule lacks"),
           .expected = absl::StrCat("one of ", absl::StrJoin(factors, ", ")),
           .found = factor,
           .fix = near.empty() ? "Name the factors as the rule does"
                               : absl::StrCat("Write ", near[0], ", as the rule does")});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ConfigOfShard(const AttributeFormulas& formulas,
                                          absl::string_view target,
                                          absl::string_view backend_config,
                                          const ShardingRule& rule,
                                          absl::Span<const int64_t> sizes) {
  return Config(formulas, target, backend_config, rule, sizes, /*checked=*/true);
}

absl::StatusOr<std::string> ConfigOfSizes(const AttributeFormulas& formulas,
                                          absl::string_view target,
                                          absl::string_view backend_config,
                                          const ShardingRule& rule,
                                          absl::Span<const int64_t> sizes) {
  return Config(formulas, target, backend_config, rule, sizes, /*checked=*/false);
}

}  // namespace internal
}  // namespace shardcall
