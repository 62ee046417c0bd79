// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/reshard/hosts.h"

#include <algorithm>

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

}  // namespace internal
}  // namespace shardcall
