// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/attributes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/kernels/ffi/attribute_parser.h"
#include "shardcall/kernels/ffi/gpu_backend_config.h"
#include "shardcall/sharding/base/near_names.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

std::string WithArticle(absl::string_view noun) {
  // By pronunciation: "an f32", "an i64", "an s8", but "a u8", "a bf16", "a pred".
  const bool vowel = !noun.empty() && (noun[0] == 'f' || noun[0] == 's' || noun[0] == 'i');
  return absl::StrCat(vowel ? "an " : "a ", noun);
}

absl::Status WrongKind(absl::string_view name, absl::string_view expected, const Attribute& found) {
  return ToStatus({.code = "E131",
                   .message = absl::StrCat("attribute \"", name, "\" is of the wrong kind"),
                   .expected = std::string(expected),
                   .found = DescribeAttribute(found),
                   .fix = absl::StrCat("Write ", name, " as ", expected, " in backend_config")});
}

absl::Status TooLarge(absl::string_view name) {
  return ToStatus({.code = "E131",
                   .message = absl::StrCat("attribute \"", name, "\" is out of range"),
                   .expected = "at most 9223372036854775807",
                   .found = "a larger ui64",
                   .fix = absl::StrCat("Write a smaller ", name)});
}

}  // namespace

std::string DescribeAttribute(const Attribute& attribute) {
  if (const auto* s = absl::get_if<AttributeScalar>(&attribute.value)) {
    return WithArticle(ElementTypeName(s->type));
  }
  if (const auto* a = absl::get_if<AttributeArray>(&attribute.value)) {
    return absl::StrCat("an array of ", ElementTypeName(a->type));
  }
  return absl::holds_alternative<std::string>(attribute.value) ? "a string" : "a dictionary";
}

absl::StatusOr<AttributeMapView> AttributeMapView::Parse(absl::string_view text) {
  AttributeMapView map;
  std::string inner;
  if (IsGpuBackendConfig(text)) {
    SHARDCALL_ASSIGN_OR_RETURN(inner, AttributesOfGpuBackendConfig(text));
    text = inner;
  }
  SHARDCALL_ASSIGN_OR_RETURN(map.entries_, ParseAttributeDictionary(text));
  return map;
}

const Attribute* AttributeMapView::Find(absl::string_view name) const {
  auto it =
      std::lower_bound(entries_.begin(), entries_.end(), name,
                       [](const auto& entry, absl::string_view n) { return entry.first < n; });
  return it != entries_.end() && it->first == name ? &it->second : nullptr;
}

absl::StatusOr<int64_t> AttributeMapView::GetInt(absl::string_view name, int64_t fallback) const {
  const Attribute* attribute = Find(name);
  if (attribute == nullptr) return fallback;
  const auto* s = absl::get_if<AttributeScalar>(&attribute->value);
  if (s == nullptr || !IsInteger(s->type)) return WrongKind(name, "an integer", *attribute);
  if (s->type == ElementType::kU64 && s->i < 0) return TooLarge(name);
  return s->i;
}

absl::StatusOr<double> AttributeMapView::GetFloat(absl::string_view name, double fallback) const {
  const Attribute* attribute = Find(name);
  if (attribute == nullptr) return fallback;
  const auto* s = absl::get_if<AttributeScalar>(&attribute->value);
  if (s == nullptr || !IsFloat(s->type)) return WrongKind(name, "a float", *attribute);
  return s->f;
}

absl::StatusOr<bool> AttributeMapView::GetBool(absl::string_view name, bool fallback) const {
  const Attribute* attribute = Find(name);
  if (attribute == nullptr) return fallback;
  const auto* s = absl::get_if<AttributeScalar>(&attribute->value);
  if (s == nullptr || s->type != ElementType::kPred) {
    return WrongKind(name, "true or false", *attribute);
  }
  return s->i != 0;
}

absl::StatusOr<std::string> AttributeMapView::GetString(absl::string_view name,
                                                        absl::string_view fallback) const {
  const Attribute* attribute = Find(name);
  if (attribute == nullptr) return std::string(fallback);
  const auto* s = absl::get_if<std::string>(&attribute->value);
  if (s == nullptr) return WrongKind(name, "a string", *attribute);
  return *s;
}

absl::StatusOr<std::vector<int64_t>> AttributeMapView::GetInts(
    absl::string_view name, absl::Span<const int64_t> fallback) const {
  const Attribute* attribute = Find(name);
  if (attribute == nullptr) return std::vector<int64_t>(fallback.begin(), fallback.end());
  if (absl::holds_alternative<AttributeScalar>(attribute->value)) {
    SHARDCALL_ASSIGN_OR_RETURN(int64_t value, GetInt(name, 0));
    return std::vector<int64_t>{value};
  }
  const auto* a = absl::get_if<AttributeArray>(&attribute->value);
  if (a == nullptr || !IsInteger(a->type)) {
    return WrongKind(name, "an array of integers", *attribute);
  }
  if (a->type == ElementType::kU64 &&
      std::any_of(a->ints.begin(), a->ints.end(), [](int64_t v) { return v < 0; })) {
    return TooLarge(name);
  }
  return a->ints;
}

absl::Status AttributeMapView::OnlyKnown(absl::Span<const absl::string_view> known) const {
  for (const auto& [name, value] : entries_) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::vector<std::string> near = NearNames(name, known, 1);
    Diagnostic d{.code = "E131",
                 .message = absl::StrCat("attribute \"", name, "\" is not known"),
                 .expected = known.empty() ? "no attributes" : absl::StrJoin(known, ", "),
                 .found = absl::StrCat(name, ", ", DescribeAttribute(value))};
    d.fix = near.empty() ? "Leave it out" : absl::StrCat("Write ", near[0]);
    return ToStatus(d);
  }
  return absl::OkStatus();
}

}  // namespace shardcall
