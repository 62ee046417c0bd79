// SPDX-License-Identifier: Apache-2.0
// What the proposals of a round do to a leaf.
#include <algorithm>
#include <utility>

#include "shardcall/partitioner/propagation/engine.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

void PropagationEngine::Note(LeafId leaf, const Pending& p, int64_t brought) {
  Provenance& noted = provenance_.at(leaf, p.offer->dim);
  if (brought <= noted.brought || noted.constraint) return;
  noted = {.from = p.from,
           .via = graph_.node(p.node).instr,
           .from_dim = static_cast<int16_t>(p.offer->from_dim),
           .brought = static_cast<int32_t>(brought)};
}

// The sharding of the leaf that all offers come from, if they make a leaf without axes equal to it;
// else null.
const Sharding* PropagationEngine::AsSource(absl::Span<const Pending> group) const {
  const Sharding& before = *sharding_[group[0].leaf.value];
  const Sharding& source = *sharding_[group[0].from.value];
  const Limits& limits = *limits_[group[0].leaf.value];
  if (!before.used().empty() || !limits.reserved.empty() || source.mesh() != group[0].mesh ||
      source.rank() != before.rank() || !source.partial().empty() || !source.manual().empty() ||
      source.is_maximal() || before.is_maximal()) {
    return nullptr;
  }
  int sharded = 0;
  for (int d = 0; d < source.rank(); ++d) sharded += source.IsDimSharded(d);
  if (sharded != static_cast<int>(group.size())) return nullptr;
  for (const Pending& p : group) {
    if (limits.IsClosed(p.offer->dim) || source.dim(p.offer->dim) != p.offer->axes) return nullptr;
  }
  return &source;
}

// The leaf's sharding with all offers of one step for it; null if one of them is cut or refused.
// Their order does not matter then, since no two of them have an axis in common.
const Sharding* PropagationEngine::AfterAll(absl::Span<const Pending> group) const {
  const Sharding& before = *sharding_[group[0].leaf.value];
  const Limits& limits = *limits_[group[0].leaf.value];
  if (const Sharding* source = AsSource(group)) return source;
  ShardingBuilder b(before);
  AxisList used(before.used().begin(), before.used().end());
  if (group[0].mesh != b.mesh) {
    if (!used.empty() || !limits.reserved.empty()) return nullptr;
    b.mesh = group[0].mesh;
  }
  for (const Pending& p : group) {
    AxisList& dim = b.dims[p.offer->dim];
    if (limits.IsClosed(p.offer->dim) || AxesSize(p.offer->axes) <= AxesSize(dim)) return nullptr;
    const AxisList axes = ExtendFree(*b.mesh, dim, p.offer->axes, used, limits.reserved);
    if (absl::MakeConstSpan(axes) != p.offer->axes) return nullptr;
    const AxisList add = RemovePrefix(*b.mesh, dim, axes);
    used.insert(used.end(), add.begin(), add.end());
    dim = axes;
  }
  return b.Intern(context_);
}

bool PropagationEngine::ApplyChange(absl::Span<const Pending> group) {
  Change* const change = group[0].offer->change;
  if (change == nullptr || static_cast<size_t>(change->offers) != group.size() ||
      std::any_of(group.begin(), group.end(),
                  [&](const Pending& p) { return p.offer->change != change; })) {
    return false;
  }
  if (!change->known) {
    change->after = AfterAll(group);
    change->known = true;
  }
  if (change->after == nullptr) return false;
  const LeafId leaf = group[0].leaf;
  const Sharding& before = *sharding_[leaf.value];
  // What the callbacks of the op that makes the leaf say is asked below.
  const int callbacks = graph_.callbacks_of(leaf);
  if (callbacks >= 0 && static_cast<uint32_t>(callbacks) != group[0].node) return false;
  for (const Pending& p : group) {
    Note(leaf, p, AxesSize(p.offer->axes) / before.num_shards(p.offer->dim));
  }
  sharding_[leaf.value] = change->after;
  QueueLeaf(leaf);
  return true;
}

// Without offers that an earlier one has made: the users of a value often propose the same. `kept`
// holds what is left if there are any.
absl::Span<const PropagationEngine::Pending> PropagationEngine::WithoutRepeats(
    absl::Span<const Pending> group, absl::InlinedVector<Pending, 4>* kept) {
  const auto repeats = [&](size_t k) {
    const Pending& p = group[k];
    return std::any_of(group.begin(), group.begin() + k, [&](const Pending& q) {
      return q.offer->dim == p.offer->dim && q.offer->axes == p.offer->axes && q.mesh == p.mesh;
    });
  };
  size_t first = 1;
  while (first < group.size() && !repeats(first)) ++first;
  if (first >= group.size()) return group;
  kept->assign(group.begin(), group.begin() + first);
  for (size_t k = first + 1; k < group.size(); ++k) {
    if (!repeats(k)) kept->push_back(group[k]);
  }
  return *kept;
}

absl::Status PropagationEngine::Apply(absl::Span<const Pending> all) {
  absl::InlinedVector<Pending, 4> kept;
  const absl::Span<const Pending> group = WithoutRepeats(all, &kept);
  const LeafId leaf = group[0].leaf;
  const Sharding* before = sharding_[leaf.value];
  const Limits& limits = *limits_[leaf.value];
  if (limits.fixed) return absl::OkStatus();
  if (ApplyChange(group)) return absl::OkStatus();
  ShardingBuilder b(*before);
  AxisList used(before->used().begin(), before->used().end());
  absl::InlinedVector<std::pair<const Pending*, int64_t>, 4> added;  // with what they bring
  for (const Pending& p : group) {
    if (p.mesh != b.mesh) {
      if (!used.empty() || !limits.reserved.empty()) continue;
      b.mesh = p.mesh;
    }
    const int d = p.offer->dim;
    if (limits.IsClosed(d)) continue;
    AxisList axes = ExtendFree(*b.mesh, b.dims[d], p.offer->axes, used, limits.reserved);
    const int64_t brought = AxesSize(axes) / AxesSize(b.dims[d]);
    if (brought <= 1) continue;
    const AxisList add = RemovePrefix(*b.mesh, b.dims[d], axes);
    used.insert(used.end(), add.begin(), add.end());
    b.dims[d] = std::move(axes);
    added.push_back({&p, brought});
  }
  if (added.empty()) return absl::OkStatus();
  const Pending& most =
      *std::max_element(added.begin(), added.end(), [](const auto& x, const auto& y) {
         return x.second < y.second;
       })->first;
  const Sharding* after = b.Intern(context_);
  const int callbacks = graph_.callbacks_of(leaf);
  if (callbacks >= 0 && static_cast<uint32_t>(callbacks) != most.node) {
    SHARDCALL_ASSIGN_OR_RETURN(after, AskUserCallback(graph_.node(callbacks), leaf, after));
    if (after == before) return absl::OkStatus();
  }
  sharding_[leaf.value] = after;
  for (const auto& [p, brought] : added) Note(leaf, *p, brought);
  QueueLeaf(leaf);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
