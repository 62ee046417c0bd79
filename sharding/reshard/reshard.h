// SPDX-License-Identifier: Apache-2.0
// Plans a reshard, from one sharding of a value to another: the chain of moves with the fewest
// bytes sent per device, found by uniform-cost search over the states that the axes of both
// shardings can form, within a budget of states; a greedy planner takes over beyond it. All states
// have canonical tiles T = ceil(D/n). Where ceil tilings do not nest (D = 10 over {a,b} against
// {a}) a halo exchange re-tiles the dimension before it is cut, or after it was gathered.
//
// Example, mesh a=2, b=2, f32[8,8]: [{a},{b}] -> [{b},{a}] is one
// collective-permute; [{a},{}] -> [{},{a}] one all-to-all; partial{a} ->
// [{a},{}] one reduce-scatter.
#ifndef SHARDCALL_SHARDING_RESHARD_RESHARD_H_
#define SHARDCALL_SHARDING_RESHARD_RESHARD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/cost_model.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall SHARDCALL_PUBLIC {

enum class MoveKind : uint8_t {
  kSlice,          // cut dim by axes, every device keeps its part: no bytes
  kAllGather,      // over `axes`, the minor ones of `dim`
  kAllToAll,       // `axes`, the minor ones of `dim`, become minor ones of `dim2`
  kReduceScatter,  // partial over `axes`, cut into `dim`
  kAllReduce,      // partial over `axes`
  kPermute,        // same shard counts, other placement of shards on devices
  kDropPartial,    // to partial over `axes`: value on coordinate 0, identity elsewhere: no bytes
  kPadPartial,     // the same from `axes`, the minor ones of `dim`: every device keeps its shard at
                   // its place, with the identity around it
};
absl::string_view MoveKindName(MoveKind kind);

struct Move {
  MoveKind kind;
  AxisList axes;  // major to minor
  int dim = -1, dim2 = -1;
  const Sharding* before = nullptr;
  const Sharding* after = nullptr;
  double bytes = 0;  // sent per device, as bytes_moved in partitioner/api/README.md
  // Where the tiles of `before` and `after` do not nest, these permutes re-tile a dimension before
  // it is cut, or after it was gathered.
  int exchanges = 0;
  // Those permutes, and the one of `kind`.
  int collectives() const {
    const bool local =
        kind == MoveKind::kSlice || kind == MoveKind::kDropPartial || kind == MoveKind::kPadPartial;
    return exchanges + (!local && bytes > 0);
  }
};

struct ReshardPlan {
  std::vector<Move> moves;
  double bytes = 0;          // sum over the moves
  double between_hosts = 0;  // of these, those over other links than the fastest ones
  double weighted = 0;       // the bytes, each counted by how much longer its links take
  double more_seconds = 0;   // as in Traffic
  int collectives = 0;
  Traffic traffic() const { return {bytes, more_seconds, collectives}; }
  // Largest number of bytes that a device needs and does not hold.
  double lower_bound = 0;
  int64_t peak_bytes = 0;  // largest sum of a move's input and output
  // The search for the cheapest chain took too many states; this is the chain of a greedy planner
  // (W208).
  bool greedy = false;
};

// The same sharding of a value that is reduced.
const Sharding* WithoutPartial(Context& context, const Sharding* s);

// What one device holds of an array: the bytes of its tile.
int64_t LocalBytes(const Shape* global, const Sharding& s);

// Whether the collectives of every engine have this reduction: XLA's backends and NCCL have sum,
// product, maximum and minimum, and `and` and `or` for pred. For any other reduction the parts are
// all-gathered or exchanged, and each device reduces them.
bool EngineReduces(PartialOp op, ElementType type);

// Bytes that one device of a group of `g` sends in a collective in which it holds `local` bytes,
// in a ring or pairwise algorithm. Over 4 devices an all-gather costs 3 times `local`, an
// all-to-all 0.75 times, an all-reduce 1.5 times. Zero for moves that send nothing.
double CollectiveBytes(MoveKind kind, double local, double g);

// The same for reducing `local` bytes on all devices: a sum is an all-reduce; the parts of xor,
// which no engine reduces, are all-gathered.
double AllReduceBytes(PartialOp op, ElementType type, double local, double g);

// Memoised in the Context; the plan lives as long as it does. `global` is an array. `to` has the
// same rank; partial axes of `to` must be partial in `from`, or unused or sharded there (then
// kDropPartial or kPadPartial makes them partial). A reshard between different base meshes, or
// between cuts that do not nest, goes through full replication or one permute.
const ReshardPlan& PlanReshard(Context& context, const Shape* global, const Sharding* from,
                               const Sharding* to);

// The reshard to `to` with the fewest (weighted) bytes, then the fewest collectives, from `stored`
// or from another sharding in `copies` that the value is available in. A copy in `to` wins, then
// among equal ones `stored`, then the first copy. A partial copy is used only where it equals `to`.
struct ReshardChoice {
  const Sharding* from;
  const ReshardPlan* plan;
};
ReshardChoice CheapestReshard(Context& context, const Shape* global, const Sharding* stored,
                              absl::Span<const Sharding* const> copies, const Sharding* to);

// Whether an intermediate state is larger than both ends: a dimension is all-gathered whole and
// sliced again (GSPMD's "full rematerialization").
bool GathersAndCuts(const Shape* global, const ReshardPlan& plan);

// What W208 says of a greedy plan, after its code.
std::string GreedyPlanText(const ReshardPlan& plan);

// One line per move: `all-gather dim 0 over {"data"}: 1572864 bytes`.
std::string DescribePlan(const ReshardPlan& plan);

}  // namespace shardcall

namespace shardcall {
inline namespace internal {

// LocalBytes before it is rounded up to whole bytes.
int64_t LocalBits(const Shape* global, const Sharding& s);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_RESHARD_RESHARD_H_
