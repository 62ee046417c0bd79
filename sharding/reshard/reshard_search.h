// SPDX-License-Identifier: Apache-2.0
// The search behind PlanReshard, within one base mesh, and what needs none.
#ifndef SHARDCALL_SHARDING_RESHARD_RESHARD_SEARCH_H_
#define SHARDCALL_SHARDING_RESHARD_RESHARD_SEARCH_H_

#include <optional>
#include <vector>

#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {

// The chain that SearchReshard finds where that is one move and can be seen at once:
// `from` and `to`, of one mesh with equal manual axes, differ in one dimension, which
// is gathered or cut, or in that all that is partial is reduced. Anything else would
// send as much in more moves. Otherwise nothing.
std::optional<Move> OneMove(const Shape* global, const Sharding* from, const Sharding* to);

// Appends the cheapest chain of moves from `from` to `to`; both of one mesh,
// with equal manual axes.
void SearchReshard(Context& context, const Shape* global, const Sharding* from, const Sharding* to,
                   std::vector<Move>* moves);

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_RESHARD_RESHARD_SEARCH_H_
