// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/reshard/links.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/convert/convert.h"

namespace shardcall {
inline namespace internal {

Pattern PatternOf(Collective c) {
  switch (c) {
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllReduce:
    case Collective::kBroadcast: return Pattern::kRing;
    case Collective::kAllToAll:
    case Collective::kRaggedAllToAll: return Pattern::kPairwise;
    case Collective::kPermute: break;
  }
  return Pattern::kShift;
}

Collective CollectiveOf(MoveKind kind) {
  switch (kind) {
    case MoveKind::kAllGather: return Collective::kAllGather;
    case MoveKind::kReduceScatter: return Collective::kReduceScatter;
    case MoveKind::kAllReduce: return Collective::kAllReduce;
    case MoveKind::kAllToAll: return Collective::kAllToAll;
    case MoveKind::kPermute:
    case MoveKind::kSlice:
    case MoveKind::kDropPartial:
    case MoveKind::kPadPartial: break;
  }
  return Collective::kPermute;
}

double ShareOfOthers(int64_t size, int64_t here, Pattern pattern) {
  if (here >= size) return 0;
  const double n = static_cast<double>(size), m = static_cast<double>(here);
  switch (pattern) {
    case Pattern::kRing: return (n / m - 1) / (n - 1);
    case Pattern::kPairwise: return (n - m) / (n - 1);
    case Pattern::kShift: break;
  }
  return 1;
}

template <typename ShareOf>
Crossing Links::Sum(ShareOf share_of) const {
  Crossing out;
  if (alike()) return out;
  const auto weight = [&](size_t l) { return cost_.bandwidth / levels_[l].bandwidth; };
  double latency = levels_[0].latency;
  out.weight = weight(0);
  for (size_t l = 1; l < levels_.size(); ++l) {
    const double share = share_of(l);
    if (l == 1) out.between_hosts = share;
    out.weight += share * (weight(l) - weight(l - 1));
    if (share > 0) latency = std::max(latency, levels_[l].latency);
  }
  out.latency = latency - cost_.latency;
  return out;
}

Crossing Links::OfCounts(const Counts& counts, Pattern pattern) const {
  return Sum([&](size_t l) { return ShareOfOthers(counts[0], counts[l], pattern); });
}

Crossing Links::OfCounts(const Counts& counts, Collective c) const {
  if (cost_.backend.Has(c)) return OfCounts(counts, PatternOf(c));
  const int64_t n = counts[0];
  const CollectiveParts parts = AllParts(cost_.backend, c, n);
  if (n == 1 || parts.empty()) return {};
  Crossing out{.weight = 0, .sent = 0, .runs = 0};
  for (const CollectivePart& part : parts) {
    const Crossing one = OfCounts(counts, PatternOf(part.by));
    const double sent = CollectiveSends(part.by, part.runs * part.operand, static_cast<double>(n)) /
                        CollectiveSends(c, 1, static_cast<double>(n));
    out.weight += sent * one.weight;
    out.between_hosts += sent * one.between_hosts;
    out.latency += part.runs * one.latency;
    out.sent += sent;
    out.runs += static_cast<int>(part.runs);
  }
  out.between_hosts /= out.sent;
  return out;
}

Links::Counts Links::CountsOf(absl::Span<const int64_t> group) const {
  Counts counts{static_cast<int64_t>(group.size())};
  for (size_t l = 1; l < levels_.size(); ++l) {
    const Level& level = levels_[l];
    counts.push_back(absl::c_count_if(
        group, [&](int64_t d) { return level.DomainOf(d) == level.DomainOf(group[0]); }));
  }
  return counts;
}

Crossing Links::OfGroup(absl::Span<const int64_t> group, Collective c) const {
  return alike() || group.empty() ? Crossing() : OfCounts(CountsOf(group), c);
}

Crossing Links::OfPairs(absl::Span<const int64_t> from, absl::Span<const int64_t> to) const {
  return Sum([&](size_t l) {
    for (size_t k = 0; k < from.size(); ++k) {
      if (levels_[l].DomainOf(from[k]) != levels_[l].DomainOf(to[k])) return 1;
    }
    return 0;
  });
}

Crossing Links::Of(const BaseMesh& mesh, absl::Span<const AxisRef> axes, Collective c) {
  if (alike() || axes.empty()) return {};
  const auto [at, fresh] = groups_.try_emplace({&mesh, AxisList(axes.begin(), axes.end())});
  if (fresh) {
    // The group of position 0. In a mesh whose axes do not fit the hosts others may differ.
    absl::InlinedVector<int64_t, 16> group{0};
    for (const AxisRef& a : axes) {
      const size_t so_far = group.size();
      for (int64_t to = 1; to < a.size; ++to) {
        for (size_t k = 0; k < so_far; ++k) group.push_back(group[k] + to * mesh.Stride(a));
      }
    }
    for (int64_t& position : group) position = mesh.order().DeviceAt(position);
    at->second = CountsOf(group);
  }
  return OfCounts(at->second, c);
}

Crossing Links::OfPermute(const BaseMesh& mesh, absl::Span<const AxisRef> axes) {
  if (backend().Has(Collective::kPermute)) return Of(mesh, axes, Collective::kPermute);
  std::vector<int64_t> all(mesh.num_devices());
  std::iota(all.begin(), all.end(), 0);
  return OfGroup(all, Collective::kPermute);
}

Crossing Links::Of(const Move& move) {
  if (alike() || move.bytes == 0) return {};
  const Collective c = CollectiveOf(move.kind);
  if (c != Collective::kPermute) return Of(*move.before->mesh(), move.axes, c);
  std::optional<Crossing> slowest;
  for (const Sharding* s : {move.before, move.after}) {
    for (int d = 0; d < s->rank(); ++d) {
      if (s->dim(d).empty()) continue;
      const Crossing over = move.kind == MoveKind::kPermute ? OfPermute(*s->mesh(), s->dim(d))
                                                            : Of(*s->mesh(), s->dim(d), c);
      if (!slowest.has_value() || over.weight > slowest->weight) slowest = over;
    }
  }
  return slowest.value_or(Crossing());
}

absl::StatusOr<std::vector<Links::Level>> Links::LevelsOf(const CostModel& cost,
                                                          const BaseMesh* mesh) {
  std::vector<Level> out = {{.bandwidth = cost.bandwidth, .latency = cost.latency}};
  if (cost.host_devices > 0) {
    const double latency = cost.network_latency > 0 ? cost.network_latency : cost.latency;
    out.push_back({cost.network, latency, static_cast<int64_t>(cost.host_devices), {}});
    return out;
  }
  if (mesh == nullptr || cost.axes.empty()) return out;
  const std::vector<BaseMesh::NamedAxis> axes = AxesByName(*mesh);
  std::vector<Level> of_axes(axes.size(), out[0]);
  for (const CostModel::AxisRate& rate : cost.axes) {
    const auto axis = absl::c_find_if(axes, [&](const auto& a) { return a.name == rate.axis; });
    if (axis == axes.end()) {
      return ToStatus(
          {.code = "E211",
           .message = "a rate is that of an axis that the mesh does not have",
           .expected = absl::StrCat(
               "rates of ", absl::StrJoin(axes, ", ",
                                          [](std::string* text, const BaseMesh::NamedAxis& a) {
                                            absl::StrAppend(text, a.name);
                                          })),
           .found = rate.axis,
           .fix = "Name the axes of the program's mesh, as explain shows them"});
    }
    Level& level = of_axes[axis - axes.begin()];
    if (rate.bandwidth > 0) level.bandwidth = rate.bandwidth;
    if (rate.latency > 0) level.latency = rate.latency;
  }
  out.clear();  // no axis may have the machine's own rates
  for (const Level& level : of_axes) {
    if (!absl::c_linear_search(out, level)) out.push_back(level);
  }
  const auto before = [](const Level& a, const Level& b) {
    return std::tie(b.bandwidth, a.latency) < std::tie(a.bandwidth, b.latency);
  };
  std::sort(out.begin(), out.end(), before);
  // A domain of a level has the devices that differ along axes of faster links only.
  for (size_t l = 1; l < out.size(); ++l) {
    AxisList slower;
    for (size_t a = 0; a < axes.size(); ++a) {
      if (before(of_axes[a], out[l])) continue;
      slower.insert(slower.end(), axes[a].refs.begin(), axes[a].refs.end());
    }
    out[l].domain.resize(mesh->num_devices());
    for (int64_t p = 0; p < mesh->num_devices(); ++p) {
      out[l].domain[mesh->order().DeviceAt(p)] = mesh->Coordinate(slower, p);
    }
  }
  return out;
}

}  // namespace internal
}  // namespace shardcall
