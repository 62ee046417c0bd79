// SPDX-License-Identifier: Apache-2.0
// Sums over devices that wait in an accumulator of a loop, until the loop ends.
#include <algorithm>
#include <limits>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/analysis/trip_count.h"
#include "shardcall/partitioner/spmd/plan/waiting_sums.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {

int64_t WaitingSums::Room() {
  if (room_ < 0) room_ = table_.RoomForLoops();
  return room_;
}

bool WaitingSums::TakeRoom(InstrId sum, int64_t bytes) {
  int64_t& taken = taken_[sum];
  if (bytes <= taken) return true;
  if (bytes - taken > Room()) return false;
  room_ -= bytes - taken;
  taken = bytes;
  return true;
}

void WaitingSums::FindMakers(InstrId addend, InstrId sum) {
  std::vector<InstrId> todo = {addend};
  while (!todo.empty()) {
    const InstrId id = todo.back();
    todo.pop_back();
    if (!module_.instr(id).shape->IsArray() || table_.num_uses(id) != 1) continue;
    // What adds up elements makes a sum, too, whatever it passes on.
    const auto operands = module_.operands(id);
    const bool passes = !HasTrait(module_.instr(id).opcode, kTakesFlops | kCombinesElements);
    bool passed = false;
    for (int k = 0; passes && k < static_cast<int>(operands.size()); ++k) {
      if (!Passes(id, k)) continue;
      todo.push_back(operands[k]);
      passed = true;
    }
    if (passed) continue;
    if (HasTrait(module_.instr(id).opcode, kAddsOperands)) {
      todo.insert(todo.end(), operands.begin(), operands.end());
    } else {
      made_for_[id] = sum;
    }
  }
}

AccumulatedResult WaitingSums::AccumulatedFrom(InstrId id) {
  AccumulatedResult out;
  const auto found = made_for_.find(id);
  if (found == made_for_.end()) {
    out.share = ShareOfLess(id);
    out.more_bytes = std::numeric_limits<int64_t>::max();
    return out;
  }
  const Accumulator& a = accumulators_.at(found->second);
  const Sharding* const wanted = table_.Wanted(a.loop, a.leaf);
  out.share = 1 / std::max(1.0, RunsOfComputations(module_, a.loop, cost_.trip_count));
  out.held_bytes = LocalBytes(module_.instr(found->second).shape, *wanted);
  const auto taken = taken_.find(found->second);
  out.more_bytes = Room() + (taken == taken_.end() ? 0 : taken->second);
  return out;
}

std::vector<InstrId> WaitingSums::AddendsOf(const Accumulator& accumulator) const {
  std::vector<InstrId> out;
  for (const Accumulator::Step& s : accumulator.steps) {
    if (HasTrait(module_.instr(s.op).opcode, kAddsOperands)) {
      out.push_back(module_.operand(s.op, 1 - s.operand));
    }
  }
  return out;
}

bool WaitingSums::PlanAccumulated(InstrId id, const ShardingRule& rule,
                                  const Accumulator& accumulator) {
  const InstrId loop = accumulator.loop;
  const Sharding* state = nullptr;
  double seconds = 0;
  std::vector<InstrId> waiting;
  for (InstrId addend : AddendsOf(accumulator)) {
    const auto found = waiting_.find(addend.value);
    if (found == waiting_.end()) continue;
    const Sharding* const sum = found->second.later->produced[0];
    if (state != nullptr && sum != state) return false;
    state = sum;
    seconds += found->second.seconds;
    waiting.push_back(addend);
  }
  if (state == nullptr) return false;
  const Sharding* const wanted = table_.Wanted(loop, accumulator.leaf);
  const double runs = RunsOfComputations(module_, loop, cost_.trip_count);
  if (ReshardCost(id, state, wanted).seconds >= runs * seconds) return false;
  std::vector<const Decision*> steps;
  for (const Accumulator::Step& s : accumulator.steps) {
    const Decision* const planned = table_.plan().ops[s.op.value].decision;
    const ShardingRule* const its = s.op == id           ? &rule
                                    : planned == nullptr ? nullptr
                                                         : planned->rule;
    if (its == nullptr) return false;
    const bool adds = HasTrait(module_.instr(s.op).opcode, kAddsOperands);
    const bool both = adds && absl::c_linear_search(waiting, module_.operand(s.op, 1 - s.operand));
    steps.push_back(OnPartial(s.op, *its, both ? -1 : s.operand, state, nullptr));
    if (steps.back() == nullptr || steps.back()->produced[0] != state) return false;
  }
  const Shape* const shape = module_.instr(id).shape;
  if (!TakeRoom(id, LocalBytes(shape, *state) - LocalBytes(shape, *wanted))) return false;
  for (InstrId addend : waiting) Wait(addend);
  for (size_t k = 0; k < steps.size(); ++k) Set(accumulator.steps[k].op, steps[k]);
  // What the body reads is a sum that waits, too.
  const CompId body = module_.instr(loop).as<WhileAttrs>().body;
  ReadIn(body, accumulator.leaf, state);
  carried_[loop].push_back({accumulator.leaf, state});
  return true;
}

void WaitingSums::ReadIn(CompId comp, int leaf, const Sharding* state) {
  const InstrId parameter = module_.comp(comp).parameters[0];
  Decision read = *table_.plan().ops[parameter.value].decision;
  States states(read.produced.begin(), read.produced.end());
  states[leaf] = state;
  read.produced = read.final = states;
  table_.SetDecision(parameter, PlanKind::kParameter, table_.Keep(read));
}

void WaitingSums::SetCarried(InstrId loop, States* states) {
  const auto found = carried_.find(loop);
  if (found == carried_.end()) return;
  const CompId condition = module_.instr(loop).as<WhileAttrs>().condition;
  for (const auto& [leaf, state] : found->second) {
    (*states)[leaf] = state;
    ReadIn(condition, leaf, state);
  }
}

}  // namespace internal
}  // namespace shardcall
