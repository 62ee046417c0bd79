// SPDX-License-Identifier: Apache-2.0
// Open edges of a framework's program. Frameworks name the shardings of their arrays by whole mesh
// axes, and their arrays have no uneven shards. Where propagation chooses otherwise for an entry
// parameter or result, each dimension keeps the longest leading part of its axes that is such
// (WholeAxesThatDivide): on a mesh of one axis "a" of size 8, a result of reshape(f32[32] over "a")
// is f32[4,8] over {"a":(1)4}, {"a":(2)2} within the program, and replicated as a result.
#ifndef SHARDCALL_PARTITIONER_PROPAGATION_EVEN_EDGES_H_
#define SHARDCALL_PARTITIONER_PROPAGATION_EVEN_EDGES_H_

#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/propagation/propagation.h"

namespace shardcall {
inline namespace internal {

// Constrains the open parameters that would be sharded otherwise, and closes them. True if there
// are any: then the program must be propagated again.
bool CloseUnevenParameters(const PropagationResult& found, Program* program);

// Changes the shardings of open results. Those of their values stay.
void EvenResults(const Program& program, PropagationResult* found);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PROPAGATION_EVEN_EDGES_H_
