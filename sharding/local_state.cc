// SPDX-License-Identifier: Apache-2.0
// Tiles of uneven shards, and the shapes and valid extents that follow.
#include <algorithm>

#include "shardcall/sharding/base/intern_table.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall {
namespace {

using DimStates = absl::InlinedVector<DimState, 6>;

struct LocalStates {
  InternTable<LocalState> table;
};

}  // namespace

const LocalState* InternLocalState(Context& context, const Sharding* sharding,
                                   absl::Span<const DimState> dims) {
  DimStates canonical(dims.begin(), dims.end());
  uint64_t hash = reinterpret_cast<uintptr_t>(sharding);
  for (DimState& d : canonical) {
    if (d.pad != PadKind::kConstant) d.pad_bits = 0;
    hash = MixHash(hash, d.tile * 4 + static_cast<int>(d.pad));
    if (d.pad_bits != 0) hash = MixHash(hash, d.pad_bits);
  }
  hash = FinishHash(hash);
  LocalStates& states = context.Get<LocalStates>();
  const LocalState* found = states.table.Find(hash, [&](const LocalState& s) {
    return s.sharding == sharding && s.dims == absl::MakeConstSpan(canonical);
  });
  if (found != nullptr) return found;
  LocalState* made = context.arena().New<LocalState>();
  made->sharding = sharding;
  made->dims = context.arena().Copy(absl::MakeConstSpan(canonical));
  states.table.Insert(hash, made);
  return made;
}

const LocalState* CanonicalState(Context& context, const Sharding* sharding, const Shape* global) {
  DimStates dims;
  if (global->IsArray()) {
    SHARDCALL_CHECK(global->rank() == sharding->rank());
    for (int i = 0; i < global->rank(); ++i) {
      const int64_t n = sharding->num_shards(i);
      const int64_t size = global->dim(i);
      DimState& d = dims.emplace_back();
      d.tile = n == 1 ? size : CeilDiv(size, n);
      d.pad = n == 1 || size % n == 0 ? PadKind::kNone : PadKind::kUnknown;
    }
  }
  return InternLocalState(context, sharding, dims);
}

const Shape* LocalShape(Context& context, const Shape* global, const Sharding* sharding) {
  if (global == nullptr || !global->IsArray()) return global;
  if (sharding == nullptr) return nullptr;
  if (!sharding->HasShardedDim()) return global;
  if (global->rank() != sharding->rank()) return nullptr;
  absl::InlinedVector<int64_t, 6> dims(global->dims().begin(), global->dims().end());
  for (int i = 0; i < global->rank(); ++i) {
    if (sharding->IsDimSharded(i)) dims[i] = CeilDiv(dims[i], sharding->num_shards(i));
  }
  return context.WithDims(global, dims);
}

const Shape* LocalShape(Context& context, const Shape* global, const LocalState& state) {
  if (!global->IsArray()) return global;
  SHARDCALL_CHECK(global->rank() == static_cast<int>(state.dims.size()));
  absl::InlinedVector<int64_t, 6> dims;
  for (const DimState& d : state.dims) dims.push_back(d.tile);
  return context.WithDims(global, dims);
}

int64_t ValidExtent(const LocalState& state, const Shape* global, int dim, int64_t position) {
  const Sharding& s = *state.sharding;
  const int64_t size = global->dim(dim);
  if (s.is_maximal()) {
    return s.mesh()->order().DeviceAt(position) == s.maximal_device() ? size : 0;
  }
  const int64_t tile = state.dims[dim].tile;
  const int64_t begin = s.mesh()->Coordinate(s.dim(dim), position) * tile;
  return std::clamp<int64_t>(size - begin, 0, tile);
}

}  // namespace shardcall
