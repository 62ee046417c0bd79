// SPDX-License-Identifier: Apache-2.0
// The order of one computation's instructions that leaves time between the start
// of a collective and the first need of its result.
#ifndef SHARDCALL_PARTITIONER_PASS_OVERLAP_SCHEDULE_H_
#define SHARDCALL_PARTITIONER_PASS_OVERLAP_SCHEDULE_H_

#include <vector>

#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/pass/overlap.h"
#include "shardcall/partitioner/pass/overlap_cost.h"

namespace shardcall {

struct ScheduledEvent {
  enum Kind : uint8_t {
    kRun,    // the instruction as it is
    kStart,  // of a collective
    kDone,   // of one that has been started
  };
  Kind kind = kRun;
  InstrId id;
};

// A list schedule: of what is ready, the first of the computation's own order goes
// next, on a clock that knows when transfers, one after another, are over. A
// collective starts when it is ready and either its turn has come or the link is
// idle. So the order changes only while something waits for a transfer, and the
// program runs ahead by no more than the transfer takes. Linear but for the heap.
//
// By instruction of the module: `effects`, whether its order among others of that
// kind must stay; `position`, where it stands in its computation.
std::vector<ScheduledEvent> ScheduleOverlap(const Module& module, CompId comp,
                                            const std::vector<bool>& effects,
                                            const std::vector<int>& position,
                                            const OverlapCosts& costs,
                                            const OverlapOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PASS_OVERLAP_SCHEDULE_H_
