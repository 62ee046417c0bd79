// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IMPORT_BOUNDARY_STATES_H_
#define SHARDCALL_PARTITIONER_IMPORT_BOUNDARY_STATES_H_

#include "shardcall/partitioner/import/program.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall {
inline namespace internal {

// The state in which the devices hold result number k of `id`, a manual boundary with a result for
// each operand, if they hold the same elements as of its operand in `state`: on entry, without the
// manual axes, each of which must be major in its dimension. `from` and `to`: one such pair of
// states, which says which axes are manual on either side. Null if there is none.
const Sharding* AcrossBoundary(const Program& program, InstrId id, int k, const Sharding* from,
                               const Sharding* to, const Sharding* state);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IMPORT_BOUNDARY_STATES_H_
