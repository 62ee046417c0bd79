// SPDX-License-Identifier: Apache-2.0
// Replaces collectives of a per-device program by asynchronous start and done pairs with
// computation between them.
//
// Before: collectives are where their result is produced.
//   a = f32[N] all-reduce(x), ..        b = f32[N] dot(u, v)       c = add(a, w)
// After: the start is right after its operands, the done right before the first instruction that
// needs the result, and instructions that need it come after those that do not.
//   a = f32[N] all-reduce-start(x), ..  b = f32[N] dot(u, v)
//   a.1 = f32[N] all-reduce-done(a)     c = add(a.1, w)
//
// The program computes the same. The order of starts is part of the program, so it is the same on
// every device. Data and control dependencies and the order of side effects are kept. Nothing
// moves into or out of a loop, branch or call.
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
  // A pair needs at least this much computation between start and done. With less the collective
  // stays synchronous, since waking a thread costs about as much.
  double min_overlap_us = 20;
  // Limit of memory held early, separately for the operands and results of collectives that start
  // ahead of program order, and for results that are computed ahead of an instruction that waits.
  int64_t max_early_bytes = int64_t{64} << 20;
};

std::unique_ptr<Pass> MakeOverlap(const OverlapOptions& options = {});

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PASS_OVERLAP_H_
