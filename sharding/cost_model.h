// SPDX-License-Identifier: Apache-2.0
// The performance model of the machine, used wherever costs are compared or times predicted: by
// the plan, by the scheduling of asynchronous collectives, and in estimates of a step's time. These
// formulas are the only ones; ir/shapes/instruction_cost.h applies them to instructions.
#ifndef SHARDCALL_SHARDING_COST_MODEL_H_
#define SHARDCALL_SHARDING_COST_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/sharding/backend.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// What one device sends in some collectives.
struct Traffic {
  double bytes = 0;
  double more_seconds = 0;  // over the links that they cross, beyond what CostModel::Seconds says
  int collectives = 0;
  Traffic& operator+=(const Traffic& t) {
    bytes += t.bytes;
    more_seconds += t.more_seconds;
    collectives += t.collectives;
    return *this;
  }
};

// Cost of a choice = bytes sent / bandwidth + collectives x latency + flops / flop_rate + bytes
// touched / memory_rate, all per device. Only ratios matter. By bytes sent alone, computing
// everything on every device would be free. The defaults are those of an accelerator.
struct CostModel {
  double bandwidth = 50e9;    // bytes per second between devices
  double flop_rate = 200e12;  // per second: dot, convolution
  double memory_rate = 2e12;  // bytes per second: everything else, bytes touched
  double latency = 2e-6;      // seconds per collective
  double trip_count = 16;     // assumed for a loop whose trip count is unknown
  // Devices with successive ids that share a host, the bytes per second that each of them sends to
  // other hosts, and the seconds of a collective of several hosts. 0: one host has all devices; the
  // latency is the same.
  double host_devices = 0;
  double network = 0;
  double network_latency = 0;
  // In place of these: the axes of the mesh that have a bandwidth or a latency of their own. 0:
  // that of the machine.
  struct AxisRate {
    std::string axis;
    double bandwidth = 0, latency = 0;
  };
  std::vector<AxisRate> axes = {};
  // What the machine's collectives can do. The plan stays within it.
  BackendLimits backend = {};

  // The time of `collectives` collectives in which a device sends `bytes` in all.
  double Seconds(double bytes, int collectives = 1) const {
    return bytes / bandwidth + collectives * latency;
  }
  double Seconds(const Traffic& t) const {
    return Seconds(t.bytes, t.collectives) + t.more_seconds;
  }
  // The time of sums of `products` products in all, each a multiplication and an addition: for a
  // dot of [m,k] and [k,n], m x k x n of them.
  double ProductSeconds(double products) const { return 2 * products / flop_rate; }
  // The time of all else, which reads and writes `bytes` in all.
  double MemorySeconds(double bytes) const { return bytes / memory_rate; }
};

// One core and shared memory, which is what the host evaluator has: "host".
inline CostModel HostCosts() {
  return {.bandwidth = 2e9, .flop_rate = 30e9, .memory_rate = 5e9, .latency = 20e-6};
}

// "bandwidth=50e9, flops=200e12, memory=2e12, latency=2e-6, trips=16"; fields that are not named
// keep their value in `base`. A machine's name sets all fields but the trips: "h100, latency=5e-6";
// it comes first. "host_devices=8, network=25e9" go together, and "network_latency=1e-5" with them.
// "bandwidth.data=25e9, bandwidth.model=400e9, latency.data=1e-5" are those of axes of the mesh; an
// axis without one has that of the machine. "collectives=all-gather+all-reduce, groups=grid" is
// what the backend has; without them, all (backend.h). E211 for an unknown name, a value
// that is not a positive number or that the field does not know, a part of a device, one of
// host_devices and network alone, these beside rates of axes, or two of one axis.
absl::StatusOr<CostModel> ParseCostModel(absl::string_view text, const CostModel& base = {});

}  // namespace shardcall

namespace shardcall {
inline namespace internal {

// E211 for costs that no machine has, such as a bandwidth of 0, and for an incomplete description
// of hosts or axes. Costs that ParseCostModel reads are right.
absl::Status CheckCostModel(const CostModel& cost);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_COST_MODEL_H_
