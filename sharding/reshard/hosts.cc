// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/reshard/hosts.h"

#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/convert/convert.h"

namespace shardcall {
inline namespace internal {

Pattern PatternOf(MoveKind kind) {
  switch (kind) {
    case MoveKind::kAllGather:
    case MoveKind::kReduceScatter:
    case MoveKind::kAllReduce: return Pattern::kRing;
    case MoveKind::kAllToAll: return Pattern::kPairwise;
    case MoveKind::kPermute:
    case MoveKind::kSlice:
    case MoveKind::kDropPartial:
    case MoveKind::kPadPartial: break;
  }
  return Pattern::kShift;
}

double Hosts::Share(int64_t size, int64_t here, Pattern pattern) {
  if (here >= size) return 0;
  const double n = static_cast<double>(size), m = static_cast<double>(here);
  switch (pattern) {
    case Pattern::kRing: return (n / m - 1) / (n - 1);
    case Pattern::kPairwise: return (n - m) / (n - 1);
    case Pattern::kShift: break;
  }
  return 1;
}

double Hosts::Share(const BaseMesh& mesh, absl::Span<const AxisRef> axes, Pattern pattern) {
  if (one() || axes.empty()) return 0;
  const auto [at, fresh] =
      groups_.try_emplace({&mesh, AxisList(axes.begin(), axes.end())}, Group{1, 1});
  if (fresh) {
    // The group of position 0. In a mesh whose axes do not fit the hosts others may differ.
    absl::InlinedVector<int64_t, 16> positions{0};
    for (const AxisRef& a : axes) {
      const size_t so_far = positions.size();
      for (int64_t c = 1; c < a.size; ++c) {
        for (size_t k = 0; k < so_far; ++k) positions.push_back(positions[k] + c * mesh.Stride(a));
      }
    }
    const int64_t first = host_of(mesh.order().DeviceAt(0));
    at->second = {static_cast<int64_t>(positions.size()),
                  std::count_if(positions.begin(), positions.end(), [&](int64_t p) {
                    return host_of(mesh.order().DeviceAt(p)) == first;
                  })};
  }
  return Share(at->second.first, at->second.second, pattern);
}

double Hosts::Share(const Move& move) {
  if (one() || move.bytes == 0) return 0;
  const Pattern pattern = PatternOf(move.kind);
  if (pattern != Pattern::kShift) return Share(*move.before->mesh(), move.axes, pattern);
  double share = 0;
  for (const Sharding* s : {move.before, move.after}) {
    for (int d = 0; d < s->rank(); ++d) {
      share = std::max(share, Share(*s->mesh(), s->dim(d), Pattern::kShift));
    }
  }
  return share;
}

absl::StatusOr<std::vector<int64_t>> HostsByAxes(const CostModel& cost, const BaseMesh* mesh) {
  std::vector<int64_t> out;
  if (cost.axes.empty() || mesh == nullptr) return out;
  const std::vector<BaseMesh::NamedAxis> axes = AxesByName(*mesh);
  const auto wrong = [&](absl::string_view message, absl::string_view found) {
    return ToStatus(
        {.code = "E211",
         .message = std::string(message),
         .expected = absl::StrCat(
             "rates of ", absl::StrJoin(axes, ", ",
                                        [](std::string* text, const BaseMesh::NamedAxis& axis) {
                                          absl::StrAppend(text, axis.name);
                                        })),
         .found = std::string(found),
         .fix = "Name the axes of the program's mesh, as explain shows them"});
  };
  for (const auto* named : {&cost.axes.network, &cost.axes.bandwidth}) {
    for (const std::string& name : *named) {
      if (absl::c_none_of(axes,
                          [&](const BaseMesh::NamedAxis& axis) { return axis.name == name; })) {
        return wrong("a rate is that of an axis that the mesh does not have", name);
      }
    }
  }
  using Others = CostModel::AxisRates::Others;
  AxisList slow;
  for (const BaseMesh::NamedAxis& axis : axes) {
    const Others rate = absl::c_linear_search(cost.axes.network, axis.name)     ? Others::kNetwork
                        : absl::c_linear_search(cost.axes.bandwidth, axis.name) ? Others::kBandwidth
                                                                                : cost.axes.others;
    if (rate == Others::kUnknown) {
      return wrong("an axis of the mesh has no rate",
                   absl::StrCat("none of ", axis.name, ", and a third one for other axes"));
    }
    if (rate == Others::kNetwork) slow.insert(slow.end(), axis.refs.begin(), axis.refs.end());
  }
  if (slow.empty()) return out;
  out.resize(mesh->num_devices());
  for (int64_t p = 0; p < mesh->num_devices(); ++p) {
    out[mesh->order().DeviceAt(p)] = mesh->Coordinate(slow, p);
  }
  return out;
}

}  // namespace internal
}  // namespace shardcall
