// SPDX-License-Identifier: Apache-2.0
// Planning how a value gets from one sharding to another: the cheapest chain
// of moves by bytes sent per device, found by uniform-cost search over the
// states that the axes of both ends can form. All states have canonical tiles
// T = ceil(D/n). Where ceil tilings do not nest (D = 10 over {a,b} against {a})
// a dimension is gathered whole and cut again.
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
#include "shardcall/sharding/sharding.h"

namespace shardcall SHARDCALL_PUBLIC {

enum class MoveKind : uint8_t {
  kSlice,          // cut dim by axes, every device keeps its part: no bytes
  kAllGather,      // over `axes`, the minor ones of `dim`
  kAllToAll,       // `axes`, the minor ones of `dim`, become minor ones of `dim2`
  kReduceScatter,  // partial over `axes`, cut into `dim`
  kAllReduce,      // partial over `axes`
  kPermute,        // same shard counts, other placement of shards on devices
  kDropPartial,    // sum only: value on coordinate 0 of `axes`, identity elsewhere
};
absl::string_view MoveKindName(MoveKind kind);

struct Move {
  MoveKind kind;
  AxisList axes;  // major to minor
  int dim = -1, dim2 = -1;
  const Sharding* before = nullptr;
  const Sharding* after = nullptr;
  double bytes = 0;  // sent per device, the usual model (README of collectives)
};

struct ReshardPlan {
  std::vector<Move> moves;
  double bytes = 0;  // sum over the moves
  // Largest number of bytes that a device needs and does not hold.
  double lower_bound = 0;
  int64_t peak_bytes = 0;  // largest sum of a move's input and output
};

// What one device holds of an array: the bytes of its tile.
int64_t LocalBytes(const Shape* global, const Sharding& s);

// Whether the collectives of every engine reduce by it: XLA's backends and NCCL
// have sum, product, maximum and minimum, and of truth values `and` and `or`. By
// anything else the parts are gathered, or exchanged, and each device reduces them.
bool EngineReduces(PartialOp op, ElementType type);

// What one device of a group of `g` sends in that all-reduce of `local` bytes: by
// ints' xor 3 times `local` over 4 devices, where a sum is 1.5 times that.
double AllReduceBytes(PartialOp op, ElementType type, double local, double g);

// Memoised in the Context; the plan lives as long as it. `global` is an array.
// `to` has the same rank; partial axes of `to` must be partial in `from`, or
// free there (then kDropPartial makes them). Different base meshes are planned
// through full replication or one permute.
const ReshardPlan& PlanReshard(Context& context, const Shape* global, const Sharding* from,
                               const Sharding* to);

// The cheapest of the ways to `to` from `stored` and from the other states in which
// the value is at hand; that from `stored` among equals, then the first. A partial
// state serves for itself alone.
struct ReshardChoice {
  const Sharding* from;
  const ReshardPlan* plan;
};
ReshardChoice CheapestReshard(Context& context, const Shape* global, const Sharding* stored,
                              absl::Span<const Sharding* const> copies, const Sharding* to);

// Whether a state on the way is larger than both ends: a dimension is gathered whole, and
// cut again ("full rematerialization").
bool GathersAndCuts(const Shape* global, const ReshardPlan& plan);

// One line a move: "all-gather dim 0 over {"data"}: 1.5 MiB".
std::string DescribePlan(const ReshardPlan& plan);

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_RESHARD_RESHARD_H_
