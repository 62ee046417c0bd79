// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/report.h"

#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/conflicts.h"
#include "shardcall/partitioner/api/device_memory.h"
#include "shardcall/partitioner/api/warnings.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/sharding/base/human_bytes.h"
#include "shardcall/sharding/convert/convert.h"

namespace shardcall {

using Json = nlohmann::ordered_json;

std::map<std::string, CollectiveTotal> TotalsByOpcode(const LocalProgram& local) {
  std::map<std::string, CollectiveTotal> totals;
  for (const CollectiveRecord& r : local.collectives) {
    CollectiveTotal& t = totals[std::string(OpcodeText(r.opcode))];
    t.count += 1;
    t.count_weighted += r.trip_count;
    t.bytes += r.bytes_moved;
    t.bytes_weighted += r.bytes_moved * r.trip_count;
  }
  return totals;
}

double TotalBytesMoved(const LocalProgram& local) {
  double bytes = 0;
  for (const CollectiveRecord& r : local.collectives) bytes += r.bytes_moved * r.trip_count;
  return bytes;
}

std::string CauseText(const PartitionedProgram& p, const CollectiveRecord& r) {
  const Module& m = p.global->program.module;
  const std::string consumer =
      r.cause.consumer.valid() ? absl::StrCat("%", m.instr(r.cause.consumer).name) : "the program";
  std::string text;
  switch (r.cause.kind) {
    case CollectiveCause::Kind::kOperand:
      text = absl::StrCat("operand ", r.cause.index, " of ", consumer);
      break;
    case CollectiveCause::Kind::kResult:
      text = absl::StrCat("result ", r.cause.index, " of ", consumer);
      break;
    case CollectiveCause::Kind::kCarry:
      text = absl::StrCat("value ", r.cause.index, " carried by ", consumer);
      break;
    case CollectiveCause::Kind::kProgram: return absl::StrCat("the program's own ", consumer);
    case CollectiveCause::Kind::kCallback: return absl::StrCat("partition callback of ", consumer);
  }
  const bool reshard = r.from != nullptr && r.to != nullptr;
  if (reshard) {
    absl::StrAppend(&text, ": ", r.from->ToString(), " -> ", r.to->ToString(),
                    r.from->mesh() == r.to->mesh() ? "" : " in another order of the devices");
  }
  // What an op sends itself is its strategy's; of a reshard the states say all, unless the op
  // runs on other shards than its rule leads to.
  const Decision* decision =
      r.cause.consumer.valid() ? p.plan.ops[r.cause.consumer.value].decision : nullptr;
  const Strategy* strategy = decision == nullptr ? nullptr : decision->strategy;
  if (strategy != nullptr &&
      (reshard ? strategy->propose != nullptr : r.cause.kind == CollectiveCause::Kind::kOperand)) {
    absl::StrAppend(&text, ", by the strategy \"", strategy->name, "\"");
  }
  return text;
}

namespace {

// Null where that is not known.
Json Needed(const CollectiveRecord& r) {
  return r.bytes_needed < 0 ? Json() : Json(r.bytes_needed);
}

// The ops that run by another strategy than `local`, in the order of the program.
Json Strategies(const PartitionedProgram& p) {
  const Module& m = p.global->program.module;
  Json list = Json::array();
  for (size_t k = 0; k < p.plan.ops.size(); ++k) {
    const OpPlan& op = p.plan.ops[k];
    if (op.kind != PlanKind::kRule || op.decision->strategy == &kLocalStrategy) continue;
    const Instruction& i = m.instr(InstrId(static_cast<uint32_t>(k)));
    Json rejected = Json::array();
    for (const RejectedCandidate& c : op.decision->rejected) {
      rejected.push_back({{"strategy", std::string(c.strategy->name)},
                          {"bytes_moved", c.bytes},
                          {"seconds", c.seconds}});
    }
    list.push_back({{"name", std::string(i.name)},
                    {"opcode", std::string(OpcodeText(i.opcode))},
                    {"strategy", std::string(op.decision->strategy->name)},
                    {"bytes_moved", op.decision->bytes},
                    {"seconds", op.decision->seconds},
                    {"rejected", std::move(rejected)}});
  }
  return list;
}

// Flat entry parameters or results: the global shape and the sharding in XLA's text. Null for
// tokens and for shardings that XLA's text cannot express.
Json HeldAs(absl::Span<const Shape* const> shapes, absl::Span<const LocalState* const> states) {
  Json list = Json::array();
  for (size_t k = 0; k < shapes.size(); ++k) {
    Json sharding;
    if (states[k] != nullptr) {
      const absl::StatusOr<HloSharding> text = ToHloShardingOrV3(*states[k]->sharding);
      if (text.ok()) sharding = text->Print();
    }
    list.push_back({{"shape", shapes[k]->ToString(/*with_layout=*/false)}, {"sharding", sharding}});
  }
  return list;
}

Json CostModelJson(const CostModel& cost) {
  Json axes = Json::array();
  for (const CostModel::AxisRate& rate : cost.axes) {
    axes.push_back({{"name", rate.axis},
                    {"bandwidth_bytes_per_s", rate.bandwidth > 0 ? rate.bandwidth : cost.bandwidth},
                    {"latency_s", rate.latency > 0 ? rate.latency : cost.latency}});
  }
  return {{"bandwidth_bytes_per_s", cost.bandwidth},
          {"flops_per_s", cost.flop_rate},
          {"memory_bytes_per_s", cost.memory_rate},
          {"latency_s", cost.latency},
          {"host_devices", cost.host_devices},
          {"network_bytes_per_s", cost.network},
          {"network_latency_s", cost.network_latency},
          {"axes", std::move(axes)},
          {"collectives", internal::CollectivesText(cost.backend)},
          {"groups", internal::GroupFormName(cost.backend.groups)},
          {"trip_count", cost.trip_count}};
}

Json MemoryJson(const MemoryAtPeak& peak) {
  const DeviceMemory& memory = peak.memory;
  Json j = {{"arguments", memory.arguments},
            {"outputs", memory.outputs},
            {"temporaries", memory.temporaries},
            {"aliased", memory.aliased},
            {"peak_at", peak.at},
            {"held_at_peak", Json::array()}};
  for (const HeldAtPeak& held : peak.held) {
    j["held_at_peak"].push_back(
        {{"value", held.value}, {"source", held.source}, {"bytes", held.bytes}});
  }
  return j;
}

}  // namespace

std::string GatherText(const Gather& g) {
  absl::string_view what;
  switch (g.kind) {
    case Gather::Kind::kNoStrategy: what = " is gathered for want of a strategy: "; break;
    case Gather::Kind::kCost: what = " is gathered by cost: "; break;
    case Gather::Kind::kState: what = " is gathered where it is taken in: "; break;
    case Gather::Kind::kWhole: what = " is computed whole and cut: "; break;
  }
  std::string text = absl::StrCat(g.kind == Gather::Kind::kWhole ? "result " : "operand ", g.index,
                                  what, g.from->ToString(), " -> ", g.to->ToString());
  if (g.bytes > 0) absl::StrAppend(&text, ", ", HumanBytes(g.bytes), " sent per device");
  return text;
}

std::string ReportJson(const PartitionedProgram& p, const SpmdOptions& options) {
  Json j;
  j["format_version"] = kReportFormatVersion;
  j["num_partitions"] = p.global->program.num_partitions;
  j["instructions_in"] = p.instructions_in;
  j["instructions_out"] = p.local.module.num_instructions();
  j["parameters"] = HeldAs(p.local.parameter_shapes, p.local.parameters);
  j["results"] = HeldAs(p.local.output_shapes, p.local.outputs);
  j["time_us"] = {{"parse", p.times.parse},         {"import", p.times.import},
                  {"propagate", p.times.propagate}, {"partition", p.times.partition},
                  {"cleanup", p.times.cleanup},     {"print", p.times.print}};
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  j["peak_bytes"] = int64_t{usage.ru_maxrss} * 1024;
  const MemoryAtPeak peak = ListMemoryAtPeak(p.local.module, 20);
  j["peak_memory"] = peak.memory.Peak();
  j["memory"] = MemoryJson(peak);
  const DeviceMemory on_cpu = CountDeviceMemory(p.local.module, XlaBackend::kCpu);
  j["memory"]["xla_cpu"] = {{"temporaries", on_cpu.temporaries}, {"peak", on_cpu.Peak()}};
  j["collectives"] = Json::array();
  for (const CollectiveRecord& r : p.local.collectives) {
    j["collectives"].push_back({{"name", std::string(p.local.module.instr(r.local).name)},
                                {"opcode", std::string(OpcodeText(r.opcode))},
                                {"group_size", r.group_size},
                                {"groups", r.num_groups},
                                {"bytes_in", r.bytes_in},
                                {"bytes_moved", r.bytes_moved},
                                {"bytes_needed", Needed(r)},
                                {"bytes_between_hosts", r.between_hosts},
                                {"seconds", options.cost.Seconds(r.traffic())},
                                {"trip_count", r.trip_count},
                                {"cause", CauseText(p, r)}});
  }
  j["totals"] = Json::object();
  for (const auto& [opcode, t] : TotalsByOpcode(p.local)) {
    j["totals"][opcode] = {
        {"once", {{"count", t.count}, {"bytes_moved", t.bytes}}},
        {"weighted", {{"count", t.count_weighted}, {"bytes_moved", t.bytes_weighted}}}};
  }
  j["strategies"] = Strategies(p);
  j["fallbacks"] = Json::array();
  for (const Fallback& f : p.plan.fallbacks) {
    const Instruction& i = p.global->program.module.instr(f.instr);
    j["fallbacks"].push_back({{"name", std::string(i.name)},
                              {"opcode", std::string(OpcodeText(i.opcode))},
                              {"reason", f.reason}});
  }
  j["warnings"] = Json::array();
  for (const ProgramWarning& w : Warnings(p)) {
    j["warnings"].push_back({{"code", w.code},
                             {"text", w.ToString(p.global->program.module)},
                             {"fix", std::string(w.fix())}});
  }
  j["gathers"] = Json::array();
  for (const auto& [instr, g] : p.plan.gathers) {
    const Instruction& i = p.global->program.module.instr(instr);
    j["gathers"].push_back({{"name", std::string(i.name)},
                            {"opcode", std::string(OpcodeText(i.opcode))},
                            {"kind", std::string(GatherKindName(g.kind))},
                            {"index", g.index},
                            {"from", g.from->ToString()},
                            {"to", g.to->ToString()},
                            {"bytes_moved", g.bytes}});
  }
  if (Json conflicts = ConflictsJson(*p.global); !conflicts.is_null()) {
    j["conflicts"] = std::move(conflicts);
  }
  if (Json chosen = ChosenJson(*p.global); !chosen.is_null()) {
    j["chosen_shardings"] = std::move(chosen);
  }
  j["cost_model"] = CostModelJson(options.cost);
  return j.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace shardcall
