// SPDX-License-Identifier: Apache-2.0
// An order of one computation's instructions that leaves time between the start of a collective
// and the first use of its result.
#ifndef SHARDCALL_PARTITIONER_PASS_OVERLAP_SCHEDULE_H_
#define SHARDCALL_PARTITIONER_PASS_OVERLAP_SCHEDULE_H_

#include <vector>

#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/pass/overlap.h"
#include "shardcall/partitioner/pass/overlap_cost.h"

namespace shardcall {
inline namespace internal {

struct ScheduledEvent {
  enum Kind : uint8_t {
    kRun,    // the instruction as it is
    kStart,  // start of a collective
    kDone,   // done of a collective that was started
  };
  Kind kind = kRun;
  InstrId id;
};

// A list schedule: of the ready instructions the first in program order goes next, on a clock that
// models transfers, which follow one another on one link. A collective starts when it is ready and
// either all before it have run or started, or the link is idle. So the order changes only while
// an instruction waits for a transfer, and the program runs ahead by no more than the transfer
// takes. Time is linear apart from the heap.
//
// By instruction of the module: `effects` tells whether its order among others with effects must
// stay; `position` is its place in its computation.
std::vector<ScheduledEvent> ScheduleOverlap(const Module& module, CompId comp,
                                            const std::vector<bool>& effects,
                                            const std::vector<int>& position,
                                            const OverlapCosts& costs,
                                            const OverlapOptions& options);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PASS_OVERLAP_SCHEDULE_H_
