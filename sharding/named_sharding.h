// SPDX-License-Identifier: Apache-2.0
// Shardings by the names of mesh axes, as both V3 HLO text and Shardy's
// attributes write them: `mesh['data'=4], [{'data'}, {?}]` and
// `#sdy.sharding<@mesh, [{"data"}, {?}]>`.
#ifndef SHARDCALL_SHARDING_NAMED_SHARDING_H_
#define SHARDCALL_SHARDING_NAMED_SHARDING_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "shardcall/sharding/axis_names.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/mesh.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall SHARDCALL_PUBLIC {

struct NamedSharding {
  struct Dim {
    std::vector<NamedAxisRef> axes;  // major to minor
    bool open = false;
    int priority = -1;  // `p1`; -1 where the text gives none, which means 0
    friend bool operator==(const Dim&, const Dim&) = default;
  };

  std::string mesh_name;             // of `@mesh`; empty with an inline mesh
  std::shared_ptr<const Mesh> mesh;  // inline; null with a mesh name
  std::vector<Dim> dims;
  std::vector<NamedAxisRef> replicated, unreduced, manual;
  PartialOp unreduced_op = PartialOp::kSum;

  friend bool operator==(const NamedSharding& a, const NamedSharding& b);
};

// Errors E162: an axis that `mesh` lacks, a part that does not fit its axis, an axis part that
// occurs twice. Merges neighbouring parts of one axis, drops the size of a part that is the whole
// axis, and resolves '0', '1', .., unless they are axis names, to the axis at that index.
// Replicated, unreduced and manual axes come out in mesh order.
absl::Status CheckAndNormalize(const Mesh& mesh, NamedSharding* sharding);

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_NAMED_SHARDING_H_
