// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IMPORT_BOUNDARY_STATES_H_
#define SHARDCALL_PARTITIONER_IMPORT_BOUNDARY_STATES_H_

#include "shardcall/partitioner/import/program.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall {
inline namespace internal {

// The state on the other side of a manual boundary of a value that operand number k has in `state`,
// if the devices hold the same elements there: on entry, without the manual axes, each of which
// must be major in its dimension. `from` and `to`: one such pair of states, which says which axes
// are manual on either side. `local`: the shape inside. Null if there is none.
const Sharding* AcrossBoundary(Context& context, const ManualBoundary& boundary, size_t k,
                               const Shape* local, const Sharding* from, const Sharding* to,
                               const Sharding* state);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IMPORT_BOUNDARY_STATES_H_
