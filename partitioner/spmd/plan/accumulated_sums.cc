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
  std::vector<std::pair<InstrId, double>> todo = {{addend, 1}};
  while (!todo.empty()) {
    const auto [id, parts] = todo.back();
    todo.pop_back();
    if (!module_.instr(id).shape->IsArray() || table_.num_uses(id) != 1) continue;
    if (const auto op = accumulators_.stack_ops.find(id); op != accumulators_.stack_ops.end()) {
      const double stacked = RunsOf(accumulators_.stacks.at(op->second).loop);
      todo.emplace_back(module_.operand(op->second, 1), parts * stacked);
      continue;
    }
    // What adds up elements makes a sum, too, whatever it passes on.
    const auto operands = module_.operands(id);
    const bool passes = !HasTrait(module_.instr(id).opcode, kMakesSums);
    bool passed = false;
    for (int k = 0; passes && k < static_cast<int>(operands.size()); ++k) {
      if (!Passes(id, k)) continue;
      todo.emplace_back(operands[k], parts);
      passed = true;
    }
    if (passed) continue;
    if (HasTrait(module_.instr(id).opcode, kAddsOperands)) {
      for (InstrId o : operands) todo.emplace_back(o, parts);
    } else {
      made_for_[id] = {sum, parts};
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
  const auto& [sum, parts] = found->second;
  const Accumulator& a = accumulators_.sums.at(sum);
  const Sharding* const wanted = table_.Wanted(a.loop, a.leaf);
  out.share = 1 / std::max(1.0, RunsOf(a.loop));
  const auto taken = taken_.find(sum);
  const int64_t room = Room() + (taken == taken_.end() ? 0 : taken->second);
  const auto of_part = [parts = parts](int64_t bytes) {
    return static_cast<int64_t>(static_cast<double>(bytes) / std::max(1.0, parts));
  };
  out.held_bytes = of_part(LocalBytes(module_.instr(sum).shape, *wanted));
  // The stack between takes as much again.
  out.more_bytes = of_part(parts > 1 ? room / 2 : room);
  return out;
}

double WaitingSums::RunsOf(InstrId loop) const {
  return RunsOfComputations(module_, loop, cost_.trip_count);
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
  const double runs = RunsOf(loop);
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

void WaitingSums::NoteStacked(InstrId id, const ShardingRule& rule) {
  const InstrId part = module_.operand(id, 1);
  const auto found = waiting_.find(part.value);
  const Stack& stack = accumulators_.stacks.at(id);
  if (found == waiting_.end() || !MayWait(stack.result)) return;
  const Sharding* const state = found->second.later->produced[0];
  const Decision* const later = OnPartial(id, rule, 1, state, nullptr);
  if (later == nullptr || later->produced[0] != state) return;
  const Decision& now = *table_.plan().ops[id.value].decision;
  WaitingStack noted{{{id, later}}, state, found->second.seconds + now.seconds - later->seconds};
  noted.seconds *= RunsOf(stack.loop);
  noted.placed = found->second.placed;
  const Shape* const shape = module_.instr(id).shape;
  noted.more_bytes =
      LocalBytes(shape, *state) - LocalBytes(shape, *table_.Wanted(stack.loop, stack.leaf));
  for (InstrId o = part; o.valid();) {
    if (const auto inner = stacks_.find(o); inner != stacks_.end()) return;
    const Waiting& w = waiting_.at(o.value);
    noted.ops.emplace_back(o, w.later);
    o = w.before;
  }
  stacks_[stack.result] = std::move(noted);
}

void WaitingSums::NoteStack(InstrId id) {
  const auto found = stacks_.find(id);
  if (found == stacks_.end()) return;
  if (found->second.more_bytes > Room() || !MayWait(id)) {
    stacks_.erase(found);
    return;
  }
  Decision read;
  const Sharding* const state = found->second.state;
  read.produced = read.final = absl::MakeConstSpan(&state, 1);
  waiting_[id.value] = {table_.Keep(read), InstrId(), found->second.seconds, found->second.placed};
}

void WaitingSums::WaitStacked(InstrId result, const WaitingStack& stack) {
  const Stack& of = accumulators_.stacks.at(accumulators_.stack_ops.at(result));
  const double runs = RunsOf(of.loop);
  for (const auto& [op, later] : stack.ops) {
    ChargeChange(op, later, runs);
    table_.SetDecision(op, PlanKind::kRule, later);
  }
  room_ = std::max<int64_t>(0, Room() - std::max<int64_t>(0, stack.more_bytes));
  const WhileAttrs& computations = module_.instr(of.loop).as<WhileAttrs>();
  ReadIn(computations.body, of.leaf, stack.state);
  ReadIn(computations.condition, of.leaf, stack.state);
  Decision loop = *table_.plan().ops[of.loop.value].decision;
  const auto in_state = [&](Decision::States states) {
    States out(states.begin(), states.end());
    out[of.leaf] = stack.state;
    return out;
  };
  const States operands = in_state(loop.operands), produced = in_state(loop.produced),
               final = in_state(loop.final);
  loop.operands = operands;
  loop.produced = produced;
  loop.final = final;
  table_.SetDecision(of.loop, PlanKind::kWhile, table_.Keep(loop));
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
