// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/attribute_condition.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "shardcall/kernels/ffi/attributes.h"
#include "shardcall/kernels/ffi/config_attributes.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using Value = AttributeCondition::Value;

// A scalar as a condition has it; monostate for other attributes, and for integers of 2^63 or more.
Value ValueOf(const Attribute& attribute) {
  if (const auto* text = absl::get_if<std::string>(&attribute.value)) return *text;
  const auto* scalar = absl::get_if<AttributeScalar>(&attribute.value);
  if (scalar == nullptr) return {};
  if (scalar->type == ElementType::kPred) return scalar->i != 0;
  if (IsFloat(scalar->type)) return scalar->f;
  if (scalar->type == ElementType::kU64 && scalar->i < 0) return {};
  return scalar->i;
}

// Whether a float attribute that reads `real` is `want`. The text of an f32 has as many digits as
// tell it from other f32, not those of a double, so what is wanted is rounded as it was. Integers
// are compared exactly.
bool IsNumber(double real, bool narrow, const Value& want) {
  if (const auto* whole = std::get_if<int64_t>(&want)) {
    const double exact = narrow ? static_cast<double>(static_cast<float>(real)) : real;
    constexpr double kLimit = 0x1p63;
    return exact >= -kLimit && exact < kLimit && static_cast<int64_t>(exact) == *whole &&
           static_cast<double>(static_cast<int64_t>(exact)) == exact;
  }
  const auto* number = std::get_if<double>(&want);
  if (number == nullptr) return false;
  return narrow ? static_cast<float>(real) == static_cast<float>(*number) : real == *number;
}

bool Equals(const Attribute* have, const Value& want) {
  if (have == nullptr || std::holds_alternative<std::monostate>(want)) {
    return have == nullptr && std::holds_alternative<std::monostate>(want);
  }
  const Value value = ValueOf(*have);
  const auto* real = std::get_if<double>(&value);
  if (real == nullptr) return value == want;
  return IsNumber(*real, absl::get<AttributeScalar>(have->value).type != ElementType::kF64, want);
}

// Whether some attribute is both: 1 : f32 is 1 and 1.0, though 1 : i32 is 1 alone.
bool Meet(const Value& v, const Value& w) {
  if (v == w) return true;
  const auto *x = std::get_if<double>(&v), *y = std::get_if<double>(&w);
  if (x != nullptr) return IsNumber(*x, false, w) || IsNumber(*x, true, w);
  return y != nullptr && (IsNumber(*y, false, v) || IsNumber(*y, true, v));
}

// Whether each attribute that is `v` is `w`.
bool Entails(const Value& v, const Value& w) {
  if (v == w) return true;
  const auto* x = std::get_if<double>(&v);
  return x != nullptr && std::holds_alternative<int64_t>(w) && IsNumber(*x, false, w) &&
         IsNumber(*x, true, w);
}

// As many digits as tell it from other doubles, and a point: 1.0 is not 1.
std::string Text(double number) {
  std::string text = absl::StrCat(number);
  if (double read; !absl::SimpleAtod(text, &read) || read != number) {
    text = absl::StrFormat("%.17g", number);
  }
  if (text.find_first_not_of("-0123456789") == text.npos) text += ".0";
  return text;
}

std::string Text(const Value& value) {
  if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (const auto* i = std::get_if<int64_t>(&value)) return absl::StrCat(*i);
  if (const auto* f = std::get_if<double>(&value)) return Text(*f);
  if (const auto* s = std::get_if<std::string>(&value)) return absl::StrCat("\"", *s, "\"");
  return "none";
}

const AttributeCondition* Find(absl::Span<const AttributeCondition> conditions,
                               absl::string_view name) {
  const auto it = std::find_if(conditions.begin(), conditions.end(),
                               [&](const AttributeCondition& c) { return c.name == name; });
  return it == conditions.end() ? nullptr : &*it;
}

}  // namespace

absl::StatusOr<AttributeConditions> AttributeConditionsOf(absl::string_view dictionary) {
  SHARDCALL_ASSIGN_OR_RETURN(const AttributeMapView attributes,
                             AttributeMapView::Parse(dictionary));
  AttributeConditions out;
  for (const auto& [name, attribute] : attributes.entries()) {
    Value value = ValueOf(attribute);
    if (std::holds_alternative<std::monostate>(value)) {
      return ToStatus({.code = "E110",
                       .message = absl::StrCat("attribute ", name, " cannot tell rules apart"),
                       .expected = "a number (an integer below 2^63), a bool or a string",
                       .found = DescribeAttribute(attribute),
                       .fix = "Name another attribute"});
    }
    out.push_back({name, {std::move(value)}});
  }
  return out;
}

bool Satisfies(absl::string_view backend_config, absl::Span<const AttributeCondition> conditions) {
  if (conditions.empty()) return true;
  const absl::StatusOr<AttributeMapView> parsed = AttributesOfConfig(backend_config);
  const AttributeMapView attributes = parsed.ok() ? *parsed : AttributeMapView();
  return std::all_of(conditions.begin(), conditions.end(), [&](const AttributeCondition& c) {
    const Attribute* const have = attributes.Find(c.name);
    return std::any_of(c.any_of.begin(), c.any_of.end(),
                       [&](const Value& want) { return Equals(have, want); });
  });
}

bool Compatible(absl::Span<const AttributeCondition> a, absl::Span<const AttributeCondition> b) {
  return std::all_of(a.begin(), a.end(), [&](const AttributeCondition& c) {
    const AttributeCondition* const other = Find(b, c.name);
    return other == nullptr || absl::c_any_of(c.any_of, [&](const Value& v) {
             return absl::c_any_of(other->any_of, [&](const Value& w) { return Meet(v, w); });
           });
  });
}

bool Implies(absl::Span<const AttributeCondition> a, absl::Span<const AttributeCondition> b) {
  return std::all_of(b.begin(), b.end(), [&](const AttributeCondition& c) {
    const AttributeCondition* const own = Find(a, c.name);
    return own != nullptr && absl::c_all_of(own->any_of, [&](const Value& v) {
             return absl::c_any_of(c.any_of, [&](const Value& w) { return Entails(v, w); });
           });
  });
}

std::string AttributeConditionsText(absl::Span<const AttributeCondition> conditions) {
  return absl::StrCat(
      "{",
      absl::StrJoin(conditions, ", ",
                    [](std::string* out, const AttributeCondition& c) {
                      const auto one = [](std::string* s, const Value& v) { *s += Text(v); };
                      absl::StrAppend(out, c.name, " = ", absl::StrJoin(c.any_of, " or ", one));
                    }),
      "}");
}

}  // namespace shardcall
