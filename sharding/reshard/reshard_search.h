// SPDX-License-Identifier: Apache-2.0
// The search behind PlanReshard, within one base mesh, and the reshards of one move that need no
// search.
#ifndef SHARDCALL_SHARDING_RESHARD_RESHARD_SEARCH_H_
#define SHARDCALL_SHARDING_RESHARD_RESHARD_SEARCH_H_

#include <optional>
#include <vector>

#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall::inline internal {

// The single move that SearchReshard would find, for the cases that are cheap to recognise: `from`
// and `to`, of one mesh with equal manual axes, differ either in one dimension, which is
// all-gathered or sliced, or in that everything partial is all-reduced. Any other chain would send
// at least as many bytes in more moves. Nullopt in all other cases.
std::optional<Move> OneMove(const Shape* global, const Sharding* from, const Sharding* to);

// Appends the cheapest chain of moves from `from` to `to`; both of one mesh,
// with equal manual axes.
void SearchReshard(Context& context, const Shape* global, const Sharding* from, const Sharding* to,
                   std::vector<Move>* moves);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_SHARDING_RESHARD_RESHARD_SEARCH_H_
