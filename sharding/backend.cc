// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/backend.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace shardcall {
inline namespace internal {
namespace {

// By Collective and by GroupForm.
constexpr absl::string_view kNames[] = {
    "all-gather",         "all-reduce",           "reduce-scatter",   "all-to-all",
    "collective-permute", "collective-broadcast", "ragged-all-to-all"};
static_assert(std::size(kNames) == kNumCollectives);
constexpr absl::string_view kForms[] = {"any", "even", "grid"};

constexpr uint32_t Bit(Collective c) { return uint32_t{1} << static_cast<int>(c); }

// Any of these can stand for all the others but ragged-all-to-all.
constexpr uint32_t kReachAll = Bit(Collective::kAllGather) | Bit(Collective::kAllReduce) |
                               Bit(Collective::kAllToAll) | Bit(Collective::kPermute);

// Of a value of `values`; -1 if there is none such.
template <size_t kCount>
int IndexOf(const absl::string_view (&values)[kCount], absl::string_view value) {
  for (size_t k = 0; k < kCount; ++k) {
    if (values[k] == value) return static_cast<int>(k);
  }
  return -1;
}

// The table of ways. What each of them emits stands in spmd/localize/emit_collectives.cc.
std::vector<CollectiveParts> WaysTo(Collective c, int64_t n) {
  using enum Collective;
  const double size = static_cast<double>(n);
  const double rounds = std::max(1.0, std::ceil(std::log2(size)));
  switch (c) {
    case kAllGather:
      return {{{kAllToAll, 1, size}},                     // of a copy for each device
              {{kPermute, rounds, (size - 1) / rounds}},  // all that is there so far
              {{kAllReduce, 1, size}}};                   // zeros around the part
    case kAllToAll:
      return {{{kPermute, size - 1, 1 / size}},  // by distance
              {{kAllGather, 1, 1}}};
    case kReduceScatter: return {{{kAllToAll, 1, 1}}, {{kAllReduce, 1, 1}}, {{kAllGather, 1, 1}}};
    case kAllReduce:
      return {{{kReduceScatter, 1, 1}, {kAllGather, 1, 1 / size}}, {{kAllGather, 1, 1}}};
    case kBroadcast: return {{{kAllReduce, 1, 1}}, {{kAllGather, 1, 1}}};
    case kPermute: return {{{kAllGather, 1, 1}}};
    case kRaggedAllToAll: break;  // nothing says how much each device sends
  }
  return {};
}

struct Found {
  CollectiveParts way, parts;
  double sent = 0, runs = 0;
};

// `excluded`: those whose way this is a part of.
bool Resolve(const BackendLimits& backend, Collective c, int64_t n, uint32_t excluded, Found* out) {
  if (backend.Has(c)) {
    *out = {{{c}}, {{c}}, CollectiveSends(c, 1, static_cast<double>(n)), 1};
    return true;
  }
  excluded |= Bit(c);
  bool found = false;
  for (const CollectiveParts& way : WaysTo(c, n)) {
    Found all{way};
    bool reached = true;
    for (const CollectivePart& part : way) {
      Found inner;
      reached = (excluded & Bit(part.by)) == 0 && Resolve(backend, part.by, n, excluded, &inner);
      if (!reached) break;
      for (const CollectivePart& p : inner.parts) {
        all.parts.push_back({p.by, part.runs * p.runs, part.operand * p.operand});
      }
      all.sent += part.runs * part.operand * inner.sent;
      all.runs += part.runs * inner.runs;
    }
    if (!reached) continue;
    if (!found || std::pair(all.sent, all.runs) < std::pair(out->sent, out->runs)) {
      *out = std::move(all);
    }
    found = true;
  }
  return found;
}

}  // namespace

absl::string_view CollectiveName(Collective c) { return kNames[static_cast<int>(c)]; }
absl::string_view GroupFormName(GroupForm form) { return kForms[static_cast<int>(form)]; }

bool ReadBackendField(absl::string_view field, absl::string_view value, BackendLimits* out) {
  if (field == "groups") {
    const int form = IndexOf(kForms, value);
    if (form >= 0) out->groups = static_cast<GroupForm>(form);
    return form >= 0;
  }
  if (field != "collectives") return false;
  uint32_t has = 0;
  for (absl::string_view name : absl::StrSplit(value, '+')) {
    const int c = IndexOf(kNames, absl::StripAsciiWhitespace(name));
    if (c < 0) return false;
    has |= Bit(static_cast<Collective>(c));
  }
  out->lacks = (uint32_t{1} << kNumCollectives) - 1 & ~has;
  return (has & kReachAll) != 0;
}

std::string CollectivesText(const BackendLimits& backend) {
  std::vector<absl::string_view> has;
  for (int c = 0; c < kNumCollectives; ++c) {
    if (backend.Has(static_cast<Collective>(c))) has.push_back(kNames[c]);
  }
  return absl::StrJoin(has, "+");
}

double CollectiveSends(Collective c, double local, double g) {
  switch (c) {
    case Collective::kAllGather: return local * (g - 1);
    case Collective::kAllReduce: return 2 * local * (g - 1) / g;
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
    case Collective::kRaggedAllToAll:
    case Collective::kBroadcast: return local * (g - 1) / g;
    case Collective::kPermute: break;
  }
  return local;
}

CollectiveParts WayOf(const BackendLimits& backend, Collective c, int64_t n) {
  Found found;
  Resolve(backend, c, n, 0, &found);
  return std::move(found.way);
}

CollectiveParts AllParts(const BackendLimits& backend, Collective c, int64_t n) {
  Found found;
  Resolve(backend, c, n, 0, &found);
  return std::move(found.parts);
}

}  // namespace internal
}  // namespace shardcall
