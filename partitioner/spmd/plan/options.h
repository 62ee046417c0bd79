// SPDX-License-Identifier: Apache-2.0
// Options and cost model of the partitioner.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_OPTIONS_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_OPTIONS_H_

#include <cstdint>

namespace shardcall {

// Time of a choice = bytes sent / bandwidth + flops / flop_rate + bytes touched
// / memory_rate, per device. Only ratios matter. By bytes sent alone,
// "compute everything everywhere" would be free.
struct CostModel {
  double bandwidth = 50e9;     // bytes per second between devices
  double flop_rate = 200e12;   // dot, convolution
  double memory_rate = 2e12;   // everything else, bytes touched
  double latency = 2e-6;       // seconds a collective
};

struct SpmdOptions {
  CostModel cost = {};
  int64_t max_reshard_bytes = INT64_MAX;  // of one reshard or broadcast, per device: E210
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_OPTIONS_H_
