// SPDX-License-Identifier: Apache-2.0
// Collectives of a per-device program as asynchronous pairs, with computation
// between start and done.
//
// Before: collectives that stand where their result is made.
//   a = f32[N] all-reduce(x), ..        b = f32[N] dot(u, v)       c = add(a, w)
// After: the start as early as its operands are there, the done right before the
// first instruction that needs it, and what needs it behind what does not.
//   a = f32[N] all-reduce-start(x), ..  b = f32[N] dot(u, v)
//   a.1 = f32[N] all-reduce-done(a)     c = add(a.1, w)
//
// The program computes the same. The order of starts is part of the program, so
// it is the same on every device; data, control predecessors and the order of side
// effects stay. Nothing moves into or out of a loop, branch or call.
#ifndef SHARDCALL_PARTITIONER_PASS_OVERLAP_H_
#define SHARDCALL_PARTITIONER_PASS_OVERLAP_H_

#include <cstdint>
#include <memory>

#include "shardcall/partitioner/pass/pass.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/cost_model.h"

namespace shardcall SHARDCALL_PUBLIC {

struct OverlapOptions {
  CostModel cost = HostCosts();
  // A pair needs so much computation between its ends; a collective with less
  // stays what it is, as a thread that wakes costs about that.
  double min_overlap_us = 20;
  // Of operands and results of collectives that started ahead of their turn, and of
  // results that are made early while others wait; beyond it nothing is started or
  // made early.
  int64_t max_early_bytes = int64_t{64} << 20;
};

std::unique_ptr<Pass> MakeOverlap(const OverlapOptions& options = {});

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PASS_OVERLAP_H_
