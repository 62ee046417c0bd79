// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/pass/overlap_schedule.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <utility>

#include "shardcall/partitioner/ir/shapes/instruction_cost.h"

namespace shardcall {
inline namespace internal {
namespace {

class Scheduler {
 public:
  Scheduler(const Module& module, CompId comp, const std::vector<bool>& effects,
            const std::vector<int>& position, const OverlapCosts& costs,
            const OverlapOptions& options)
      : m_(module),
        order_(module.comp(comp).instructions),
        costs_(costs),
        options_(options),
        position_(position) {
    FindDependencies(effects);
  }

  std::vector<ScheduledEvent> Run(InstrId root) {
    for (int k = 0; k < size(); ++k) {
      if (waits_for_[k] == 0 && instr(k).opcode != Opcode::kParameter) Ready(k);
    }
    // Parameters come first, in order.
    for (int k = 0; k < size(); ++k) {
      if (instr(k).opcode != Opcode::kParameter) continue;
      Record(ScheduledEvent::kRun, k);
      MakeAvailable(k);
    }
    while (true) {
      while (!in_flight_.empty() && in_flight_.front().over <= clock_) Arrive();
      StartReady();
      if (ready_.empty() || WouldRunTooFarAhead()) {
        if (in_flight_.empty()) break;
        clock_ = std::max(clock_, in_flight_.front().over);
        continue;
      }
      Execute();
    }
    Need(Position(root));
    for (int k = 0; k < size(); ++k) Need(k);  // instructions that the root does not need
    return std::move(events_);
  }

 private:
  struct Flight {
    int position = 0;
    double over = 0;  // the time at which its data have arrived
    int64_t bytes = 0;
  };
  using Heap = std::priority_queue<int, std::vector<int>, std::greater<int>>;

  int size() const { return static_cast<int>(order_.size()); }
  const Instruction& instr(int position) const { return m_.instr(order_[position]); }

  void FindDependencies(const std::vector<bool>& effects) {
    waits_for_.assign(order_.size(), 0);
    begin_.assign(order_.size() + 1, 0);
    std::vector<std::pair<int, int>> edges;
    int last_effect = -1;
    for (int k = 0; k < size(); ++k) {
      for (InstrId operand : m_.operands(instr(k))) edges.emplace_back(Position(operand), k);
      if (const RareAttributes* rare = m_.rare(instr(k))) {
        for (InstrId p : rare->control_predecessors) edges.emplace_back(Position(p), k);
      }
      if (!effects[order_[k].value]) continue;
      if (last_effect >= 0) edges.emplace_back(last_effect, k);
      last_effect = k;
    }
    for (const auto& [from, to] : edges) {
      ++begin_[from + 1];
      ++waits_for_[to];
    }
    for (int k = 0; k < size(); ++k) begin_[k + 1] += begin_[k];
    users_.resize(edges.size());
    std::vector<int> next(begin_.begin(), begin_.end() - 1);
    for (const auto& [from, to] : edges) users_[next[from]++] = to;
    recorded_.assign(order_.size(), false);
    available_.assign(order_.size(), false);
    started_.assign(order_.size(), false);
  }
  int Position(InstrId id) const { return position_[id.value]; }

  void Ready(int k) { (CanOverlap(m_, instr(k)) ? ready_collectives_ : ready_).push(k); }

  // Users of its result are no longer blocked by it.
  void MakeAvailable(int k) {
    available_[k] = true;
    for (int e = begin_[k]; e < begin_[k + 1]; ++e) {
      if (--waits_for_[users_[e]] == 0 && instr(users_[e]).opcode != Opcode::kParameter) {
        Ready(users_[e]);
      }
    }
  }

  void Record(ScheduledEvent::Kind kind, int k) {
    events_.push_back({kind, order_[k]});
    if (kind != ScheduledEvent::kStart) recorded_[k] = true;
  }

  // Records instructions that are available but were deferred until needed: dones of collectives,
  // and instructions that cost nothing.
  void Need(int k) {
    std::vector<int> stack = {k};
    while (!stack.empty()) {
      const int at = stack.back();
      if (recorded_[at]) {
        stack.pop_back();
        continue;
      }
      const size_t before = stack.size();
      if (!CanOverlap(m_, instr(at))) {  // a start has recorded its operands
        for (InstrId operand : m_.operands(instr(at))) {
          if (!recorded_[Position(operand)]) stack.push_back(Position(operand));
        }
        if (const RareAttributes* rare = m_.rare(instr(at))) {
          for (InstrId p : rare->control_predecessors) {
            if (!recorded_[Position(p)]) stack.push_back(Position(p));
          }
        }
      }
      if (stack.size() > before) continue;
      stack.pop_back();
      Record(CanOverlap(m_, instr(at)) ? ScheduledEvent::kDone : ScheduledEvent::kRun, at);
    }
  }
  void NeedOperands(int k) {
    for (InstrId operand : m_.operands(instr(k))) Need(Position(operand));
    if (const RareAttributes* rare = m_.rare(instr(k))) {
      for (InstrId p : rare->control_predecessors) Need(Position(p));
    }
  }

  void StartReady() {
    while (!ready_collectives_.empty()) {
      const int k = ready_collectives_.top();
      const int64_t bytes = TouchedBytes(m_, instr(k));
      const bool turn = k <= FirstOpen();
      // If nothing else can run, the collective starts whatever its size.
      const bool early =
          in_flight_.empty() &&
          (ready_.empty() || bytes <= options_.max_early_bytes - early_started_bytes_);
      if (!turn && !early) return;
      if (!turn) {
        early_started_.push({k, bytes});
        early_started_bytes_ += bytes;
      }
      ready_collectives_.pop();
      NeedOperands(k);
      Record(ScheduledEvent::kStart, k);
      started_[k] = true;
      link_ = std::max(link_, clock_) + costs_.Transfer(order_[k]);
      in_flight_.push_back({k, link_, bytes});
    }
  }

  void Arrive() {
    const int k = in_flight_.front().position;
    in_flight_.pop_front();
    MakeAvailable(k);
  }

  // The first instruction that has neither run nor started.
  int FirstOpen() {
    while (first_ < size() && (available_[first_] || started_[first_])) ++first_;
    while (!early_started_.empty() && early_started_.top().first < first_) {
      early_started_bytes_ -= early_started_.top().second;
      early_started_.pop();
    }
    return first_;
  }

  // Whether the next instruction would run ahead of a waiting one although the early results
  // already hold as much memory as allowed.
  bool WouldRunTooFarAhead() {
    if (ready_.top() <= FirstOpen()) {
      early_bytes_ = 0;
      return false;
    }
    if (in_flight_.empty()) return false;
    const Instruction& next = instr(ready_.top());
    const int64_t bytes = IsFree(next) ? 0 : next.shape->byte_size();
    return early_bytes_ > options_.max_early_bytes - std::min(bytes, options_.max_early_bytes);
  }

  void Execute() {
    const int k = ready_.top();
    ready_.pop();
    const Instruction& i = instr(k);
    if (!IsFree(i)) {
      NeedOperands(k);
      Record(ScheduledEvent::kRun, k);
      if (k > first_) early_bytes_ += std::min(i.shape->byte_size(), options_.max_early_bytes);
      clock_ += costs_.Work(order_[k]);
    }
    MakeAvailable(k);
  }

  const Module& m_;
  const std::vector<InstrId>& order_;
  const OverlapCosts& costs_;
  const OverlapOptions& options_;
  const std::vector<int>& position_;                  // by instruction of the module
  std::vector<int> begin_, users_, waits_for_;        // by position
  std::vector<bool> recorded_, available_, started_;  // by position
  Heap ready_, ready_collectives_;
  std::deque<Flight> in_flight_;  // in order of arrival
  double clock_ = 0, link_ = 0;   // in microseconds; link_ is when the link is free
  int first_ = 0;                 // all before it have run or started
  int64_t early_bytes_ = 0;       // of results computed while an earlier instruction waits
  // Collectives that started ahead of program order: position, bytes.
  using EarlyStart = std::pair<int, int64_t>;
  std::priority_queue<EarlyStart, std::vector<EarlyStart>, std::greater<EarlyStart>> early_started_;
  int64_t early_started_bytes_ = 0;
  std::vector<ScheduledEvent> events_;
};

}  // namespace

std::vector<ScheduledEvent> ScheduleOverlap(const Module& module, CompId comp,
                                            const std::vector<bool>& effects,
                                            const std::vector<int>& position,
                                            const OverlapCosts& costs,
                                            const OverlapOptions& options) {
  return Scheduler(module, comp, effects, position, costs, options).Run(module.comp(comp).root);
}

}  // namespace internal
}  // namespace shardcall
