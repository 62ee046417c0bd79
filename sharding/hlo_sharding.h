// SPDX-License-Identifier: Apache-2.0
// A sharding as HLO text writes it, in any of its forms:
//   V1  {devices=[2,4]3,1,2,0,7,6,4,5}
//   V2  {devices=[4,1,2]<=[8] last_tile_dim_replicate}
//   V3  {mesh['data'=4,'model'=2], [{'data'}, {?}]}
// and {replicated}, {manual}, {unreduced}, {unknown}, {maximal device=0}, and
// tuples of them, one entry per flat leaf. Print() gives what XLA prints for
// the same text: subgroups in canonical order, iota expressions merged, lists
// kept as lists. Nothing here grows with the devices of an iota form.
#ifndef SHARDCALL_SHARDING_HLO_SHARDING_H_
#define SHARDCALL_SHARDING_HLO_SHARDING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/mesh.h"
#include "shardcall/sharding/named_sharding.h"

namespace shardcall SHARDCALL_PUBLIC {

struct HloSharding {
  enum class Kind : uint8_t {
    kReplicated,
    kManual,
    kUnreduced,
    kUnknown,
    kMaximal,
    kTiled,
    kNamed,
    kTuple,
  };
  enum class Subgroup : uint8_t { kManual, kUnreduced, kReplicated };
  enum class GroupKind : uint8_t { kNone, kShardAs, kShardLike };

  Kind kind = Kind::kReplicated;
  int64_t device = -1;        // kMaximal
  bool maximal_mesh = false;  // kMaximal written as maximal_mesh[device_id=N]

  // kTiled. Tile dims: the data dims, then one per subgroup.
  std::vector<int64_t> tile;
  std::vector<Subgroup> subgroups;
  // Devices in row-major order of the tiles: a list as written, or else the canonical iota
  // expression. A list may name any ids; one that is not a permutation of 0..n-1 is refused when
  // it is converted.
  std::vector<int64_t> list;
  std::vector<int64_t> reshape, perm;
  bool is_list() const { return !list.empty(); }
  int num_data_dims() const { return static_cast<int>(tile.size() - subgroups.size()); }
  int64_t num_devices() const;  // the product of `tile`

  // kNamed; the mesh is inline. `list` above holds its device ids where the
  // text spells them out.
  NamedSharding named;

  GroupKind group = GroupKind::kNone;
  int64_t group_id = -1;
  std::vector<std::string> metadata;  // each with its braces, as written

  std::vector<HloSharding> tuple;  // kTuple; flat

  std::string Print() const;

  friend bool operator==(const HloSharding& a, const HloSharding& b) = default;
};

// `text` runs from '{' to the matching '}'. Errors E161 show the place with a
// caret; E160 and E162 are bad meshes and axes.
absl::StatusOr<HloSharding> ParseHloSharding(absl::string_view text);

// Canonicalises a tiled sharding as XLA does: subgroups of size 1 dropped,
// equal ones merged, in the order manual, unreduced, replicated; replicated
// devices in ascending order; a single subgroup over all devices becomes
// {manual}, {unreduced} or {replicated}.
void CanonicalizeTiles(HloSharding* sharding);

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_HLO_SHARDING_H_
