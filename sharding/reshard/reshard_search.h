// SPDX-License-Identifier: Apache-2.0
// What is behind PlanReshard, within one base mesh: the reshards of one move that need no search,
// the search, and the greedy planner for what would take the search too long.
#ifndef SHARDCALL_SHARDING_RESHARD_RESHARD_SEARCH_H_
#define SHARDCALL_SHARDING_RESHARD_RESHARD_SEARCH_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {

// The single move that SearchReshard would find, for the cases that are cheap to recognise: `from`
// and `to`, of one mesh with equal manual axes, differ either in one dimension, which is
// all-gathered or sliced, or in that everything partial is all-reduced. Any other chain would send
// at least as many bytes in more moves, but for a gather over several axes of a dimension that they
// do not divide: one axis after the other, it would send less of what is only padding. One
// collective is taken all the same. Nullopt in all other cases.
std::optional<Move> OneMove(const Shape* global, const Sharding* from, const Sharding* to);

// Appends the moves if they gather several dimensions, or slice several, that divide, and nothing
// else is to be done: of the chains that send what is lacking and no more, and of these the one
// whose shards are smallest on the way. False in all other cases. Where links differ, gathers in
// another order may take less time.
bool MovesOfOneKind(Context& context, const Shape* global, const Sharding* from, const Sharding* to,
                    std::vector<Move>* moves);

// Whether a dimension of `size` rows has so few that most of what a gather of its shards sends, of
// `bytes` in all, is padding, and another move is worth less. By way of another dimension, of which
// only rows that there are get shards, fewer bytes are sent.
inline bool GathersPadding(int64_t size, int64_t shards, double bytes) {
  constexpr double kWorthAMove = 1 << 16;
  return bytes >= kWorthAMove && CeilDiv(size, shards) * shards >= 2 * size;
}

// The states that a search may store before it is given up. Their number grows exponentially with
// the axes where dimensions are not divisible; reshards of real programs take below 100.
inline constexpr int64_t kReshardStates = 10'000;

// The states of a search with axes cut into their prime parts.
inline constexpr int64_t kFineStates = 1'000;

// The budget of a Context, for tests.
struct ReshardBudget {
  int64_t states = kReshardStates;
};

// Appends the cheapest chain of moves from `from` to `to`; both of one mesh, with equal manual axes
// and cuts that nest. False, and nothing is appended, if that would take more than `max_states`
// states. `fine`: of the moves of axes that are cut into parts of prime size. `cost`, where given:
// only chains that cost less are sought, and it becomes the cost of the chain; nothing is appended
// if there is none. `lacking`, where given: becomes the bytes that any chain sends at least, as far
// as the search can tell.
//
// States are taken by what a chain through them costs at least: what has been sent, and what a
// device still lacks (A*: Hart, Nilsson and Raphael, 1968). Chains that simple rules complete from
// the first states bound the search; they may have a permute that puts all axes in order.
bool SearchReshard(Context& context, const Shape* global, const Sharding* from, const Sharding* to,
                   std::vector<Move>* moves,
                   int64_t max_states = std::numeric_limits<int64_t>::max(), bool fine = false,
                   double* cost = nullptr, double* lacking = nullptr);

// A chain that need not be the cheapest one, in time polynomial in axes and rank. A beam search
// (Lowerre, "The Harpy speech recognition system", 1976): all moves are tried from the best states
// of one length, the best of what they lead to are kept, and each of these is completed by simple
// rules. Where the cheapest chain is known, this one sends at most three times as many bytes, and
// rarely more than 1.5 times.
void GreedyReshard(Context& context, const Shape* global, const Sharding* from, const Sharding* to,
                   std::vector<Move>* moves);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_RESHARD_RESHARD_SEARCH_H_
