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
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// What one device sends in some collectives.
struct Traffic {
  double bytes = 0;
  double between_hosts = 0;  // of these, those to other hosts
  int collectives = 0;
  Traffic& operator+=(const Traffic& t) {
    bytes += t.bytes;
    between_hosts += t.between_hosts;
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
  // Devices with successive ids that share a host, and the bytes per second that each of them
  // sends to other hosts. 0: one host has all devices.
  double host_devices = 0;
  double network = 0;
  // In place of host_devices: the axes of the mesh along which devices reach each other at
  // `network`, those along which they do at `bandwidth`, and what is so of all other axes.
  struct AxisRates {
    std::vector<std::string> network, bandwidth;
    enum class Others : uint8_t { kBandwidth, kNetwork, kUnknown } others = Others::kBandwidth;
    bool empty() const { return network.empty() && bandwidth.empty(); }
  } axes = {};

  // The time of `collectives` collectives in which a device sends `bytes` in all.
  double Seconds(double bytes, int collectives = 1) const {
    return bytes / bandwidth + collectives * latency;
  }
  double Seconds(const Traffic& t) const {
    const double within = Seconds(t.bytes - t.between_hosts, t.collectives);
    return t.between_hosts > 0 ? within + t.between_hosts / network : within;
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
// it comes first. "host_devices=8, network=25e9" go together. "bandwidth.data=25e9,
// bandwidth.model=400e9" are those of axes of the mesh, of two rates in all; axes that are not
// named have that of `bandwidth`. E211 for an unknown name, a value that is not a positive number,
// a part of a device, one of host_devices and network alone, or these beside rates of axes.
absl::StatusOr<CostModel> ParseCostModel(absl::string_view text, const CostModel& base = {});

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_COST_MODEL_H_
