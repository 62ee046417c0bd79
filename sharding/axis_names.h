// SPDX-License-Identifier: Apache-2.0
// Base axis parts by the names that users gave: base axes 2,2 named as one
// axis "data" of 4 turn {axis 0, axis 1} into "data", and {axis 0} into
// "data":(1)2. Parts without a name are called x0, x1, .. after their base axis.
#ifndef SHARDCALL_SHARDING_AXIS_NAMES_H_
#define SHARDCALL_SHARDING_AXIS_NAMES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/mesh.h"

namespace shardcall SHARDCALL_PUBLIC {

// A named axis or a part of it; size 0 means the whole axis.
struct NamedAxisRef {
  std::string name;
  int64_t pre_size = 1;
  int64_t size = 0;
  friend bool operator==(const NamedAxisRef&, const NamedAxisRef&) = default;
};

std::vector<NamedAxisRef> NameAxes(const BaseMesh& mesh, absl::Span<const AxisRef> axes);

// `"data"`, `"data":(1)2`; joined with ", ". V3 text quotes with '.
std::string AxisRefText(const NamedAxisRef& ref, char quote = '"');
std::string AxisRefsText(absl::Span<const NamedAxisRef> refs, char quote = '"');

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_AXIS_NAMES_H_
