// SPDX-License-Identifier: Apache-2.0
// Translates parts of base axes into the axis names of the user: with base axes of sizes 2,2 that
// form one axis "data" of size 4, {axis 0, axis 1} is "data" and {axis 0} is "data":(1)2. A base
// axis k that has no name is called xk.
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

// `"data"`, `"data":(1)2`; a list is joined with ", ". V3 text has ' for its quotes.
std::string AxisRefText(const NamedAxisRef& ref, char quote = '"');
std::string AxisRefsText(absl::Span<const NamedAxisRef> refs, char quote = '"');

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_AXIS_NAMES_H_
