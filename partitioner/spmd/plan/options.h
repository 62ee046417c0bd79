// SPDX-License-Identifier: Apache-2.0
// Options of the partitioner.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_OPTIONS_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_OPTIONS_H_

#include <cstdint>

#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/cost_model.h"

namespace shardcall SHARDCALL_PUBLIC {

// For which programs the shardings of values that nothing annotates are chosen by cost
// (spmd/states/cheaper_states.h): for none, those of few ops, or all.
enum class StateSearch : uint8_t { kNone, kSmall, kAll };

struct SpmdOptions {
  CostModel cost = {};
  int64_t max_reshard_bytes = INT64_MAX;  // of one reshard or broadcast, per device: E210
  int64_t max_memory = INT64_MAX;         // bytes of a device at its peak: E210
  StateSearch search = StateSearch::kSmall;
  // Sums over devices are reduced before they are multiplied, divided or used in a dot, so that no
  // part of one meets a number that is not finite, or overflows where the sum does not.
  bool strict_partial = false;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_OPTIONS_H_
