// SPDX-License-Identifier: Apache-2.0
// What a machine is taken to be, wherever a choice is weighed: by the plan, by the schedule of
// asynchronous collectives, and where a step's time is told.
#ifndef SHARDCALL_SHARDING_COST_MODEL_H_
#define SHARDCALL_SHARDING_COST_MODEL_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Time of a choice = bytes sent / bandwidth + collectives x latency + flops / flop_rate + bytes
// touched / memory_rate, per device. Only ratios matter. By bytes sent alone, "compute
// everything everywhere" would be free. By default an accelerator's.
struct CostModel {
  double bandwidth = 50e9;    // bytes per second between devices
  double flop_rate = 200e12;  // per second: dot, convolution
  double memory_rate = 2e12;  // bytes per second: everything else, bytes touched
  double latency = 2e-6;      // seconds a collective
  double trip_count = 16;     // of a loop that does not say how often it runs
};

// One core and shared memory, as the host's evaluator has them.
constexpr CostModel HostCosts() {
  return {.bandwidth = 2e9, .flop_rate = 30e9, .memory_rate = 5e9, .latency = 20e-6};
}

// "bandwidth=50e9, flops=200e12, memory=2e12, latency=2e-6, trips=16": what is left out stays as
// in `base`. E211: another name, or what is no positive number.
absl::StatusOr<CostModel> ParseCostModel(absl::string_view text, const CostModel& base = {});

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_COST_MODEL_H_
