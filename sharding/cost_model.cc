// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/cost_model.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/mesh.h"

namespace shardcall {
namespace {

struct Row {
  absl::string_view name;
  double CostModel::* field;
  bool may_be_zero = false;  // nothing is divided by it
};
constexpr Row kRows[] = {
    {"bandwidth", &CostModel::bandwidth},   {"flops", &CostModel::flop_rate},
    {"memory", &CostModel::memory_rate},    {"latency", &CostModel::latency, true},
    {"trips", &CostModel::trip_count},      {"host_devices", &CostModel::host_devices, true},
    {"network", &CostModel::network, true}, {"network_latency", &CostModel::network_latency, true}};

// Machines by name. The latency of the accelerators is the default one: their makers state none.
struct Machine {
  absl::string_view name;
  CostModel cost;
};
const Machine kMachines[] = {
    {"host", HostCosts()},
    // H100 SXM within a host: 989 TFLOPS of bf16 without sparsity, 3.35 TB/s of HBM3, and NVLink
    // with 900 GB/s in both directions together (NVIDIA's data sheet of the H100).
    {"h100", {.bandwidth = 450e9, .flop_rate = 989e12, .memory_rate = 3.35e12}},
    // TPU v5p: 459 TFLOPS of bf16, 2,765 GB/s of memory, 1,200 GB/s in both directions of all six
    // links of a 3D torus, of which a ring over one axis has two (Google's page of Cloud TPU v5p).
    {"tpu_v5p", {.bandwidth = 200e9, .flop_rate = 459e12, .memory_rate = 2.765e12}},
};

// Null if there is none of the name.
const Machine* MachineOf(absl::string_view name) {
  for (const Machine& machine : kMachines) {
    if (machine.name == name) return &machine;
  }
  return nullptr;
}

absl::Status WrongCost(const Row& row, double value) {
  return ToStatus({.code = "E211",
                   .message = absl::StrCat("a machine has no ", row.name, " of ", value),
                   .expected = row.may_be_zero ? "0 or a positive number" : "a positive number",
                   .found = absl::StrCat(row.name, "=", value),
                   .fix = "write for example --cost=bandwidth=50e9,latency=2e-6"});
}

absl::Status WrongRates(absl::string_view expected, absl::string_view found) {
  return ToStatus({.code = "E211",
                   .message = "the rates of the mesh's axes are not those of a machine",
                   .expected = std::string(expected),
                   .found = std::string(found),
                   .fix = "write for example --cost=bandwidth.data=25e9,bandwidth.model=400e9"});
}

absl::Status WrongBackend(absl::string_view field, absl::string_view found) {
  return ToStatus(
      {.code = "E211",
       .message = absl::StrCat("what the backend has cannot be read: ", field),
       .expected = field == "groups"
                       ? "any, even or grid"
                       : absl::StrCat("names joined by +, of ", CollectivesText({}),
                                      ", one of all-gather, all-reduce, all-to-all and "
                                      "collective-permute among them"),
       .found = std::string(found),
       .fix = "write for example --cost=h100,collectives=all-gather+all-reduce,groups=grid"});
}

// Sets a rate of an axis; false if it has one. `field` names it: "bandwidth" or "latency".
bool SetAxisRate(absl::string_view field, absl::string_view axis, double value, CostModel* out) {
  auto at = absl::c_find_if(out->axes, [&](const auto& rate) { return rate.axis == axis; });
  if (at == out->axes.end()) at = out->axes.insert(at, {std::string(axis)});
  double& rate = field == "latency" ? at->latency : at->bandwidth;
  if (rate > 0) return false;
  rate = value;
  return true;
}

}  // namespace

absl::StatusOr<CostModel> ParseCostModel(absl::string_view text, const CostModel& base) {
  CostModel out = base;
  bool first = true, of_axes = false;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const Machine* const machine = first ? MachineOf(absl::StripAsciiWhitespace(part)) : nullptr;
    first = false;
    if (machine != nullptr) {
      out = machine->cost;
      out.trip_count = base.trip_count;
      continue;
    }
    const std::pair<absl::string_view, absl::string_view> term =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const absl::string_view name = absl::StripAsciiWhitespace(term.first);
    double value = 0;
    // Written so that NaN is refused, too.
    const bool positive = absl::SimpleAtod(absl::StripAsciiWhitespace(term.second), &value) &&
                          value > 0 && std::isfinite(value);
    if (name == "collectives" || name == "groups") {
      const absl::string_view has = absl::StripAsciiWhitespace(term.second);
      if (!ReadBackendField(name, has, &out.backend)) return WrongBackend(name, has);
      continue;
    }
    bool known = false;
    for (const Row& row : kRows) {
      if (row.name != name) continue;
      known = positive;
      out.*row.field = value;
    }
    for (const absl::string_view field : {"bandwidth", "latency"}) {
      absl::string_view axis = name;
      if (!absl::ConsumePrefix(&axis, field) || !absl::ConsumePrefix(&axis, ".")) continue;
      if (!positive || axis.empty()) continue;
      known = true;
      if (!of_axes) out.axes.clear();  // those of `base`
      of_axes = true;
      if (!SetAxisRate(field, axis, value, &out)) {
        return WrongRates("one of each for an axis", axis);
      }
    }
    if (known) continue;
    return ToStatus(
        {.code = "E211",
         .message =
             absl::StrCat("a cost cannot be read: \"", absl::StripAsciiWhitespace(part), "\""),
         .expected = absl::StrCat(
             "bandwidth, flops, memory, network (per second), latency, network_latency (seconds), "
             "bandwidth.AXIS, latency.AXIS, trips or host_devices, = and a positive number; "
             "collectives= or groups= and what the backend has; before these, ",
             absl::StrJoin(kMachines, ", ",
                           [](std::string* out, const Machine& machine) {
                             absl::StrAppend(out, machine.name);
                           }),
             " or no machine"),
         .found = std::string(absl::StripAsciiWhitespace(part)),
         .fix = "write for example --cost=bandwidth=50e9,latency=2e-6"});
  }
  SHARDCALL_RETURN_IF_ERROR(CheckCostModel(out));
  return out;
}

absl::Status internal::CheckCostModel(const CostModel& cost) {
  for (const Row& row : kRows) {
    const double value = cost.*row.field;
    if (std::isfinite(value) && (row.may_be_zero ? value >= 0 : value > 0)) continue;
    return WrongCost(row, value);
  }
  for (const CostModel::AxisRate& rate : cost.axes) {
    const bool right = std::isfinite(rate.bandwidth) && rate.bandwidth >= 0 &&
                       std::isfinite(rate.latency) && rate.latency >= 0;
    if (right && rate.bandwidth + rate.latency > 0) continue;
    return WrongRates("a positive bandwidth or latency for each axis that is named", rate.axis);
  }
  if (!cost.axes.empty() && (cost.host_devices > 0 || cost.network > 0)) {
    return WrongRates("rates of axes, or host_devices and network", "both");
  }
  if ((cost.host_devices > 0) != (cost.network > 0) ||
      (cost.network_latency > 0 && cost.network == 0) ||
      cost.host_devices != std::floor(cost.host_devices) ||
      cost.host_devices > static_cast<double>(kMaxDevices)) {
    return ToStatus(
        {.code = "E211",
         .message = "the hosts of a machine are not described",
         .expected = "a whole number of host_devices, and the network between hosts",
         .found = absl::StrCat("host_devices=", cost.host_devices, ", network=", cost.network),
         .fix = "write for example --cost=h100,host_devices=8,network=50e9"});
  }
  return absl::OkStatus();
}

}  // namespace shardcall
