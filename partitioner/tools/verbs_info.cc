// SPDX-License-Identifier: Apache-2.0
// The verbs that only print information: reshard and targets.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/targets.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/tools/command.h"
#include "shardcall/sharding/base/human_bytes.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/terminal_text.h"
#include "shardcall/sharding/convert/convert.h"
#include "shardcall/sharding/convert/mesh_set.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::StatusOr<const Shape*> ParseShapeText(const std::string& text,
                                            std::shared_ptr<Context> context) {
  // HLO text cannot be a shape alone, so read it as a parameter's.
  auto program = std::make_shared<const std::string>(
      absl::StrCat("HloModule shape\n\nENTRY %main {\n  ROOT %x = ", text, " parameter(0)\n}\n"));
  SHARDCALL_ASSIGN_OR_RETURN(Module m, ParseModule(program, context, "--shape"));
  const Shape* shape = m.instr(m.comp(m.entry()).root).shape;
  if (shape->IsArray()) return shape;
  Diagnostic d;
  d.code = "E063";
  d.message = "--shape is no array";
  d.expected = "a shape such as f32[64,32]";
  d.found = text;
  d.fix = "give the global shape of one array";
  return ToStatus(d);
}

absl::Status NoReshard(absl::string_view found) {
  Diagnostic d;
  d.code = "E065";
  d.message = "there is no reshard between these shardings";
  d.expected = "two tilings, replicated or unreduced, with the same manual axes";
  d.found = std::string(found);
  d.fix = "give what all devices have of the array";
  return ToStatus(d);
}

absl::Status Reshard(const Flags& flags) {
  auto context = std::make_shared<Context>();
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, ParseShapeText(flags.Get("shape"), context));
  SHARDCALL_ASSIGN_OR_RETURN(const int64_t devices, flags.Int("num-partitions", 0));
  MeshCollector collector;
  std::vector<HloSharding> ends;
  for (const char* name : {"from", "to"}) {
    SHARDCALL_ASSIGN_OR_RETURN(HloSharding s, ParseHloSharding(flags.Get(name)));
    SHARDCALL_RETURN_IF_ERROR(collector.AddTiling(s));
    ends.push_back(std::move(s));
  }
  SHARDCALL_ASSIGN_OR_RETURN(MeshSet meshes, collector.Finish(*context, devices));
  std::vector<const Sharding*> states;
  for (const HloSharding& s : ends) {
    SHARDCALL_ASSIGN_OR_RETURN(ShardingConstraint c, meshes.FromHlo(s, shape->rank()));
    if (c.unknown || c.maximal_device >= 0) return NoReshard(s.Print());
    states.push_back(ToSharding(*context, c));
  }
  // What is manual is not to be moved.
  if (states[0]->manual() != states[1]->manual()) {
    return NoReshard(absl::StrCat(ends[0].Print(), " and ", ends[1].Print()));
  }
  const ReshardPlan& plan = PlanReshard(*context, shape, states[0], states[1]);
  std::printf("%s\n", states[0]->ToString().c_str());
  for (const Move& m : plan.moves) {
    std::string axes;
    for (AxisRef a : m.axes) {
      absl::StrAppend(&axes, axes.empty() ? "" : ",", m.before->mesh()->AxisName(a));
    }
    std::printf("  %-18s {%s} %12.0f bytes  -> %s%s\n", std::string(MoveKindName(m.kind)).c_str(),
                axes.c_str(), m.bytes, m.after->ToString().c_str(),
                m.exchanges > 0 ? " (with a halo exchange)" : "");
  }
  if (plan.greedy) {
    std::fprintf(stderr, "W208 %s\n", GreedyPlanText(plan).c_str());
  }
  std::printf("sent per device: %s (lower bound %s), peak memory: %s\n",
              HumanBytes(plan.bytes).c_str(), HumanBytes(plan.lower_bound).c_str(),
              HumanBytes(static_cast<double>(plan.peak_bytes)).c_str());
  return absl::OkStatus();
}

}  // namespace

int RunReshard(const Flags& flags) {
  for (const char* name : {"shape", "from", "to"}) {
    if (!flags.Has(name)) {
      return FailUsage(absl::InvalidArgumentError(absl::StrCat("--", name, " is missing")));
    }
  }
  const absl::Status status = Reshard(flags);
  return status.ok() ? kExitOk : Fail(status);
}

int RunTargets(const Flags& flags) {
  absl::StatusOr<std::unique_ptr<Session>> session = MakeSession(flags);
  if (!session.ok()) return Fail(session.status());
  const std::string text =
      DescribeTargets((*session)->targets, (*session)->handlers, &(*session)->lowerings);
  std::fputs(WithoutControls(text).c_str(), stdout);
  return kExitOk;
}

}  // namespace internal
}  // namespace shardcall
