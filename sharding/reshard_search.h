// SPDX-License-Identifier: Apache-2.0
// The search behind PlanReshard, within one base mesh.
#ifndef SHARDCALL_SHARDING_RESHARD_SEARCH_H_
#define SHARDCALL_SHARDING_RESHARD_SEARCH_H_

#include <vector>

#include "sharding/reshard.h"

namespace shardcall {

// Appends the cheapest chain of moves from `from` to `to`; both of one mesh,
// with equal manual axes.
void SearchReshard(Context& context, const Shape* global, const Sharding* from,
                   const Sharding* to, std::vector<Move>* moves);

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_RESHARD_SEARCH_H_
