// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/fuse/fuse.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "shardcall/partitioner/runtime/fuse/fusible.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// Steps that run as one: a group, or a single step.
struct Unit {
  std::vector<int> steps;  // ascending
  bool fused = false;
};

// Fusing a single step is worthwhile only if it reads an operand through a view.
bool WorthFusing(const ProgramComputation& comp, const StepSurvey& survey, int step) {
  const auto& data = static_cast<const ElementwiseData&>(*comp.steps[step].data);
  for (int k = 0; k < data.kernel.arity; ++k) {
    if (data.spread[k] || !survey.Resolve(comp.steps[step].operands[k].slot).whole) return true;
  }
  return false;
}

std::vector<Unit> MakeUnits(const ProgramComputation& comp, const StepSurvey& survey) {
  const std::vector<int> group = GroupSteps(comp, survey);
  std::vector<Unit> units;
  std::vector<int> unit_of_group(comp.steps.size(), -1);
  for (int s = 0; s < static_cast<int>(comp.steps.size()); ++s) {
    int* unit = group[s] < 0 ? nullptr : &unit_of_group[group[s]];
    if (unit != nullptr && *unit >= 0) {
      units[*unit].steps.push_back(s);
      continue;
    }
    if (unit != nullptr) *unit = static_cast<int>(units.size());
    units.push_back({{s}, unit != nullptr});
  }
  for (Unit& u : units) {
    if (u.fused && u.steps.size() == 1) u.fused = WorthFusing(comp, survey, u.steps[0]);
  }
  return units;
}

// The units in topological order: in the order of their last steps, except where operands must come
// first.
std::vector<int> OrderUnits(const ProgramComputation& comp, const StepSurvey& survey,
                            const std::vector<Unit>& units) {
  std::vector<int> unit_of_step(comp.steps.size());
  for (size_t u = 0; u < units.size(); ++u) {
    for (int s : units[u].steps) unit_of_step[s] = static_cast<int>(u);
  }
  std::vector<std::vector<int>> readers(units.size());
  std::vector<int> waits_for(units.size(), 0);
  auto add = [&](int from, int to) {
    if (from == to) return;
    readers[from].push_back(to);
    ++waits_for[to];
  };
  int last_ordered = -1;
  for (size_t s = 0; s < comp.steps.size(); ++s) {
    const int u = unit_of_step[s];
    for (const OperandRef& ref : comp.steps[s].operands) {
      const int p = survey.producer(units[u].fused ? survey.Resolve(ref.slot).slot : ref.slot);
      if (p >= 0) add(unit_of_step[p], u);
    }
    if (!survey.IsOrdered(static_cast<int>(s))) continue;
    if (last_ordered >= 0) add(last_ordered, u);
    last_ordered = u;
  }
  using Entry = std::pair<int, int>;  // last step, unit
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
  for (size_t u = 0; u < units.size(); ++u) {
    if (waits_for[u] == 0) ready.emplace(units[u].steps.back(), static_cast<int>(u));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int u = ready.top().second;
    ready.pop();
    order.push_back(u);
    for (int reader : readers[u]) {
      if (--waits_for[reader] == 0) ready.emplace(units[reader].steps.back(), reader);
    }
  }
  SHARDCALL_CHECK(order.size() == units.size());
  return order;
}

}  // namespace

void FuseSteps(ProgramComputation* comp) {
  const StepSurvey survey(comp);
  const std::vector<Unit> units = MakeUnits(*comp, survey);
  const std::vector<int> order = OrderUnits(*comp, survey, units);
  // From the end, so that the slots that others read are known when a unit is made.
  std::vector<bool> needed(comp->num_slots);
  for (const OperandRef& ref : comp->root) needed[ref.slot] = true;
  struct Kept {
    Step fused;
    int plain = -1;  // if valid: the step that stays as it is
  };
  std::vector<Kept> kept;
  for (size_t k = order.size(); k-- > 0;) {
    const Unit& unit = units[order[k]];
    const int first = unit.steps[0];
    Kept next;
    if (unit.fused) {
      next.fused = MakeFusedStep(comp, survey, unit.steps, needed);
      if (next.fused.results.empty()) continue;
    } else if (!survey.IsFree(first) || needed[comp->steps[first].results[0]]) {
      next.plain = first;
    } else {
      continue;
    }
    const Step& step = unit.fused ? next.fused : comp->steps[first];
    for (const OperandRef& ref : step.operands) needed[ref.slot] = true;
    kept.push_back(std::move(next));
  }
  // Steps are moved only now, since the survey refers to them.
  std::vector<Step> steps;
  for (auto it = kept.rbegin(); it != kept.rend(); ++it) {
    steps.push_back(it->plain < 0 ? std::move(it->fused) : std::move(comp->steps[it->plain]));
  }
  comp->steps = std::move(steps);
}

}  // namespace internal
}  // namespace shardcall
