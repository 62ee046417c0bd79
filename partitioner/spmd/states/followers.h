// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_SPMD_STATES_FOLLOWERS_H_
#define SHARDCALL_PARTITIONER_SPMD_STATES_FOLLOWERS_H_

#include <vector>

#include "shardcall/partitioner/spmd/states/state_graph.h"

namespace shardcall {
inline namespace internal {

enum class Following { kNext, kOn, kThroughAll };

// Gives values that elementwise ops, ops that move data and loops make of value v, or it of them,
// the states that follow from that of v, as far as they are among theirs; unless kNext, also those
// that follow from theirs; for kThroughAll by any op that has a rule. False if there are none.
// `states` has the number of the state of each value.
bool Follow(StateGraph& graph, int v, Following how, std::vector<int>* states);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STATES_FOLLOWERS_H_
