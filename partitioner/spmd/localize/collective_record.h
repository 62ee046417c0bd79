// SPDX-License-Identifier: Apache-2.0
// Records of the collectives that the partitioner put into a per-device program.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_COLLECTIVE_RECORD_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_COLLECTIVE_RECORD_H_

#include <cstdint>

#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/cost_model.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall SHARDCALL_PUBLIC {

// Why a collective is in the local program.
struct CollectiveCause {
  enum class Kind : uint8_t {
    kOperand,   // operand `index` of `consumer` is resharded
    kResult,    // result `index` of `consumer` is reduced or resharded
    kCarry,     // loop-carried, branch or program result `index`
    kProgram,   // it was in the program already (in a manual region)
    kCallback,  // a partition callback made it
  };
  Kind kind = Kind::kOperand;
  InstrId consumer;  // in the global program
  int index = 0;
};

struct CollectiveRecord {
  InstrId local;  // in the local module
  CompId computation;
  Opcode opcode;  // all-gather for an all-gather-start, and the like
  int64_t group_size = 1, num_groups = 1;
  double bytes_in = 0;     // operand bytes per device
  double bytes_moved = 0;  // what one device sends
  // Of these, what the devices need and do not hold: the information bound. A reduction needs all
  // that a ring sends. -1: not known.
  double bytes_needed = -1;
  double between_hosts = 0;  // of the bytes that are moved, those over slower links
  double more_seconds = 0;   // of one execution, as in Traffic
  double trip_count = 1;     // executions per run of the program
  CollectiveCause cause;
  const Sharding* from = nullptr;  // of the whole reshard; null for kProgram
  const Sharding* to = nullptr;

  Traffic traffic() const { return {bytes_moved, more_seconds, 1}; }  // of one execution
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_COLLECTIVE_RECORD_H_
