// SPDX-License-Identifier: Apache-2.0
// How often a while loop runs, where that can be read off its text.
#ifndef SHARDCALL_PARTITIONER_IR_TRIP_COUNT_H_
#define SHARDCALL_PARTITIONER_IR_TRIP_COUNT_H_

#include <cstdint>

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {

// Trip count of a counted loop (counter from a constant, plus a constant,
// compared with a constant), or -1. Looks through tuples, calls are inlined by
// import already.
int64_t KnownTripCount(const Module& module, InstrId loop);
// That, or CostModel::trip_count.
double TripCountOr(const Module& module, InstrId loop, double otherwise);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TRIP_COUNT_H_
