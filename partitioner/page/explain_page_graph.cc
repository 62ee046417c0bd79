// SPDX-License-Identifier: Apache-2.0
// The timeline of a step, and the ops around the collectives.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/analysis/trip_count.h"
#include "shardcall/partitioner/ir/shapes/instruction_cost.h"
#include "shardcall/partitioner/page/explain_page_internal.h"
#include "shardcall/partitioner/pass/overlap_cost.h"

namespace shardcall {
inline namespace internal {
namespace page {
namespace {

constexpr int kMostNodes = 30000;  // beyond, the page says that it leaves something out
constexpr int kHops = 2;           // from a collective

}  // namespace

Json Steps(const LocalProgram& local, const CostModel& cost, const std::vector<int>& record_of,
           Texts* texts) {
  const Module& m = local.module;
  Json out = Json::object();
  const OverlapCosts costs(m, cost);
  std::vector<double> seconds(m.num_computations(), 0);
  for (CompId c : ComputationPostOrder(m)) {
    Json events = Json::array();
    double ops = 0, longest = 0;
    int count = 0;
    std::string name;
    const auto flush = [&] {
      if (count > 0 && ops > 0) events.push_back({0, ops, count, texts->Of(std::move(name))});
      ops = longest = 0;
      count = 0;
      name.clear();
    };
    for (InstrId id : m.comp(c).instructions) {
      const Instruction& i = m.instr(id);
      if (const int k = record_of[id.value]; k >= 0) {
        flush();
        const CollectiveRecord& r = local.collectives[k];
        const double s = cost.Seconds(r.traffic());
        events.push_back({1, s, k});
        seconds[c.value] += s;
        continue;
      }
      if (!HasTrait(i.opcode, kControlFlow)) {
        const double s = costs.Work(id) * 1e-6;
        ops += s;
        count += s > 0;
        if (s > longest) {
          longest = s;
          name = absl::StrCat(i.name.empty() ? OpcodeText(i.opcode) : i.name);
        }
        seconds[c.value] += s;
        continue;
      }
      flush();
      const double s =
          CostOfRuns(m, id, cost.trip_count, [&](CompId callee) { return seconds[callee.value]; });
      Json callees = Json::array();
      for (CompId callee : CalledComputations(m, i)) callees.push_back(callee.value);
      const double runs = RunsOfComputations(m, id, cost.trip_count);
      events.push_back(
          {2, s,
           texts->Of(absl::StrCat(OpcodeText(i.opcode),
                                  runs == 1 ? "" : absl::StrCat(", ", runs, " times"))),
           std::move(callees)});
      seconds[c.value] += s;
    }
    flush();
    if (!events.empty()) out[absl::StrCat(c.value)] = std::move(events);
  }
  return out;
}

Json Nodes(const LocalProgram& local, Texts* texts, bool* left_out) {
  const Module& m = local.module;
  std::vector<std::vector<InstrId>> users(m.num_instructions());
  for (int id = 0; id < m.num_instructions(); ++id) {
    for (InstrId o : m.operands(InstrId(id))) users[o.value].push_back(InstrId(id));
  }
  // Distance of each instruction from the nearest collective.
  std::vector<int> hops(m.num_instructions(), kHops + 1);
  int count = 0;
  *left_out = false;
  for (const CollectiveRecord& r : local.collectives) {
    std::vector<InstrId> edge = {r.local};
    for (int hop = 0; hop <= kHops; ++hop) {
      std::vector<InstrId> next;
      for (InstrId id : edge) {
        if (hops[id.value] <= hop) continue;
        count += hops[id.value] > kHops;
        hops[id.value] = hop;
        // A value with many users does not make its users neighbours.
        const auto operands = m.operands(id);
        for (absl::Span<const InstrId> near : {absl::MakeConstSpan(users[id.value]), operands}) {
          if (near.size() <= 12) next.insert(next.end(), near.begin(), near.end());
        }
      }
      edge = std::move(next);
    }
    if (count > kMostNodes) {
      *left_out = true;
      break;
    }
  }
  Json out = Json::object();
  for (int id = 0; id < m.num_instructions(); ++id) {
    if (hops[id] > kHops) continue;
    const Instruction& i = m.instr(InstrId(id));
    Json operands = Json::array();
    for (InstrId o : m.operands(i)) operands.push_back(o.value);
    std::string shape = i.shape->ToString(/*with_layout=*/false);
    if (shape.size() > 60) shape = absl::StrCat(shape.substr(0, 57), "..");
    out[absl::StrCat(id)] = {std::string(i.name), texts->Of(std::string(OpcodeText(i.opcode))),
                             texts->Of(std::move(shape)), std::move(operands)};
  }
  return out;
}

}  // namespace page
}  // namespace internal
}  // namespace shardcall
