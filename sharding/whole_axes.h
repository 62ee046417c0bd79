// SPDX-License-Identifier: Apache-2.0
// The part of a sharding that a framework such as JAX can name: whole mesh axes that divide a
// dimension.
#ifndef SHARDCALL_SHARDING_WHOLE_AXES_H_
#define SHARDCALL_SHARDING_WHOLE_AXES_H_

#include <cstdint>

#include "absl/types/span.h"
#include "shardcall/sharding/mesh.h"

namespace shardcall {
inline namespace internal {

// The longest leading part of `axes` that consists of whole named axes, and whose size divides
// `size`, that of the dimension. With names "a" of size 2 and "b" of size 4, {"a", "b":(1)2} has
// {"a"} for a size of 4, and nothing for one of 3. Where the names do not cover the mesh, base axes
// count as named.
AxisList WholeAxesThatDivide(const BaseMesh& mesh, absl::Span<const AxisRef> axes, int64_t size);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_WHOLE_AXES_H_
