// SPDX-License-Identifier: Apache-2.0
// Orders computations and instructions so that uses come after definitions.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/proto/reader.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

// Callees before callers; the order of the message if that is valid already.
bool Reader::OrderComputations(std::vector<int>* order) {
  const int n = static_cast<int>(computations_.size());
  std::vector<std::vector<int>> calls(n);
  for (int k = 0; k < n; ++k) {
    const auto& instructions = computations_[k]->instructions;
    for (size_t j = 0; j < instructions.size(); ++j) {
      for (int64_t id : instructions[j].called) {
        const auto found = computation_positions_.find(id);
        if (found == computation_positions_.end()) {
          faults_.computation = k;
          faults_.instruction = static_cast<int>(j);
          return faults_.Fail("E031", "Unknown computation", "called_computation_ids",
                              "the id of a computation", absl::StrCat(id));
        }
        calls[k].push_back(found->second);
      }
    }
  }
  enum : char { kNew, kOpen, kDone };
  std::vector<char> state(n, kNew);
  std::vector<std::pair<int, size_t>> stack;
  for (int k = 0; k < n; ++k) {
    if (state[k] != kNew) continue;
    state[k] = kOpen;
    stack.push_back({k, 0});
    while (!stack.empty()) {
      auto& [at, next] = stack.back();
      if (next == calls[at].size()) {
        state[at] = kDone;
        order->push_back(at);
        stack.pop_back();
        continue;
      }
      const int callee = calls[at][next++];
      if (state[callee] == kOpen) {
        faults_.computation = at;
        return faults_.Fail("E032", "Computations call each other in a cycle", "",
                            "computations that do not lead back to themselves",
                            absl::StrCat("a call of computations[", callee, "]"));
      }
      if (state[callee] == kNew) {
        state[callee] = kOpen;
        stack.push_back({callee, 0});
      }
    }
  }
  return true;
}

bool Reader::OrderBySchedule(ComputationBytes* c, Ints ids) {
  std::vector<bool> seen(c->instructions.size(), false);
  for (int64_t id : ids) {
    const auto found = c->positions.find(id);
    if (found == c->positions.end() || seen[found->second]) {
      return faults_.Fail("E031",
                          "The schedule of a computation is not an order of its instructions",
                          "schedule", "each instruction once", absl::StrCat(id));
    }
    seen[found->second] = true;
    c->order.push_back(found->second);
  }
  return c->order.size() == c->instructions.size() ||
         faults_.Fail("E031", "The schedule of a computation is not an order of its instructions",
                      "schedule", absl::StrCat(c->instructions.size(), " ids"),
                      absl::StrCat(ids.size()));
}

// Operands and control predecessors first, otherwise the order of the message.
bool Reader::OrderInstructions(ComputationBytes* c) {
  const int n = static_cast<int>(c->instructions.size());
  if (header_.has_schedule()) {
    for (const hlo_pb::SequenceEntry& e : header_.schedule().sequences()) {
      if (e.key() != c->header.id()) continue;
      c->order.clear();
      if (!OrderBySchedule(c, IntsOf(e.value().instruction_ids()))) return false;
    }
  }
  const bool scheduled = !c->order.empty();
  if (!scheduled) {
    for (int k = 0; k < n; ++k) c->order.push_back(k);
  }
  std::vector<int> place(n);
  for (int k = 0; k < n; ++k) place[c->order[k]] = k;
  bool in_order = true;
  const auto each_before = [&](int k, auto&& visit) {
    const InstructionBytes& i = c->instructions[k];
    for (const auto* list : {&i.operands, &i.controls}) {
      for (int64_t id : *list) {
        const auto found = c->positions.find(id);
        if (found != c->positions.end() && !visit(found->second)) return false;
      }
    }
    return true;
  };
  for (int k = 0; k < n && in_order; ++k) {
    in_order = each_before(k, [&](int before) { return place[before] < place[k]; });
  }
  if (in_order) return true;
  // Depth first, with a stack of (instruction, its unvisited predecessors).
  const std::vector<int> wanted = std::move(c->order);
  c->order.clear();
  enum : char { kNew, kOpen, kDone };
  std::vector<char> state(n, kNew);
  std::vector<int> stack;
  for (int start : wanted) {
    stack.push_back(start);
    while (!stack.empty()) {
      const int k = stack.back();
      if (state[k] != kNew) {
        stack.pop_back();
        if (state[k] == kOpen) c->order.push_back(k);
        state[k] = kDone;
        continue;
      }
      state[k] = kOpen;
      const size_t size = stack.size();
      const bool acyclic = each_before(k, [&](int before) {
        if (state[before] == kOpen) return false;
        if (state[before] == kNew) stack.push_back(before);
        return true;
      });
      if (!acyclic) {
        faults_.instruction = k;
        return faults_.Fail("E032", "Operands or control predecessors form a cycle", "operand_ids",
                            "instructions that do not depend on themselves");
      }
      std::reverse(stack.begin() + size, stack.end());
    }
  }
  if (!scheduled) return true;
  return faults_.Fail("E031", "The schedule puts an instruction before its operand", "schedule",
                      "operands and control predecessors first");
}

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall
