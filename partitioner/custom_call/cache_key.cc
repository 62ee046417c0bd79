// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/cache_key.h"

#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/annotation_names.h"

namespace shardcall {
namespace {

// Fields are written with their length, so that different records have different texts.
class Fields {
 public:
  Fields& Add(absl::string_view field) {
    absl::StrAppend(&text_, field.size(), ":", field, ";");
    return *this;
  }
  Fields& Add(int64_t value) { return Add(absl::StrCat(value)); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void AddRule(const RuleText& r, Fields* f) {
  f->Add(r.rule).Add(absl::StrJoin(r.need_replication, ","));
  f->Add(absl::StrJoin(r.permutation, ",")).Add(absl::StrJoin(r.blocked, ","));
  for (const auto& [factor, op] : r.reduction) {
    f->Add("reduction").Add(factor).Add(PartialOpName(op));
  }
  for (const auto& [factor, pad] : r.pad)
    f->Add("pad").Add(factor).Add(absl::StrFormat("%.17g", pad));
  for (const auto& [factor, size] : r.sizes) f->Add("size").Add(factor).Add(size);
}

std::string Digest(absl::string_view text) {
  using Uint128 = unsigned __int128;
  constexpr Uint128 kPrime = (static_cast<Uint128>(0x0000000001000000u) << 64) | 0x13Bu;
  Uint128 hash = (static_cast<Uint128>(0x6c62272e07bb0142u) << 64) | 0x62b821756295c58du;
  for (unsigned char c : text) hash = (hash ^ c) * kPrime;
  return absl::StrCat(absl::Hex(static_cast<uint64_t>(hash >> 64), absl::kZeroPad16),
                      absl::Hex(static_cast<uint64_t>(hash), absl::kZeroPad16));
}

}  // namespace

std::string RuleCacheKey(const TargetRule& rule, absl::string_view backend_config,
                         const FrontendAttributes* frontend, const BaseMesh& mesh) {
  Fields f;
  f.Add("shardcall rule 2").Add(rule.target).Add(rule.backend_config);
  f.Add(RuleLevelName(rule.level)).Add(rule.batch_dims);
  if (rule.level == RuleLevel::kCallbacks) {
    f.Add(rule.callbacks.version).Add(rule.callbacks.can_side_effecting_have_replicated_sharding);
  }
  for (const RuleAlternative& a : rule.alternatives) {
    AddRule(a.text, &f);
    f.Add(a.types).Add(AttributeConditionsText(a.when));
    f.Add(a.AppliesTo(backend_config) ? "applies" : "does not");
    for (const auto& [name, formula] : a.attributes) f.Add("attribute").Add(name).Add(formula);
  }
  f.Add("attributes").Add(backend_config);
  if (frontend != nullptr) {
    for (const auto& [key, value] : frontend->entries) {
      if (!absl::StartsWith(key, kSdyPrefix) || key == kSdyShardingRule) {
        f.Add(key).Add(value);
      }
    }
  }
  f.Add("mesh").Add(mesh.num_devices());
  for (int a = 0; a < mesh.num_axes(); ++a) f.Add(mesh.axis_size(a));
  for (const BaseMesh::NamedAxis& a : mesh.names()) f.Add(a.name).Add(AxesSize(a.refs));
  const DeviceOrder& order = mesh.order();
  if (order.is_iota()) {
    f.Add(absl::StrJoin(order.reshape(), ",")).Add(absl::StrJoin(order.perm(), ","));
  } else {
    f.Add(absl::StrJoin(order.list(), ","));
  }
  return Digest(f.text());
}

}  // namespace shardcall
