// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/memory/run_steps.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "shardcall/partitioner/ir/memory/leaf_views.h"

namespace shardcall {
inline namespace internal {

RunSteps::RunSteps(const Module& m, CompId c, const FusedOps& fusion)
    : m_(m), instructions_(m.comp(c).instructions), steps_(instructions_.size()) {
  for (int place = 0; place < size(); ++place) {
    place_[instructions_[place]] = place;
    FindReads(place, fusion);
    if (!steps_[place].runs) continue;
    for (const int from : steps_[place].reads) steps_[from].users.push_back(place);
  }
}

void RunSteps::FindReads(int place, const FusedOps& fusion) {
  Step& step = steps_[place];
  const InstrId id = instructions_[place];
  step.has_memory = !IsView(m_, id) && !fusion.fused[id.value];
  for (const InstrId o : m_.operands(id)) {
    const int from = place_.at(o);
    if (steps_[from].runs) {
      step.reads.push_back(from);
    } else {
      step.reads.insert(step.reads.end(), steps_[from].reads.begin(), steps_[from].reads.end());
    }
  }
  std::sort(step.reads.begin(), step.reads.end());
  step.reads.erase(std::unique(step.reads.begin(), step.reads.end()), step.reads.end());
  step.runs = step.has_memory || step.reads.size() > kMostReads;
}

std::vector<InstrId> RunSteps::InOrder(absl::Span<const int> steps) const {
  std::vector<InstrId> out;
  std::vector<bool> seen(instructions_.size());
  absl::InlinedVector<std::pair<int, size_t>, 16> stack;  // and which operand is next
  const auto add = [&](int place) {
    if (seen[place]) return;
    seen[place] = true;
    stack.push_back({place, 0});
  };
  const auto add_with_operands = [&](int place) {
    for (add(place); !stack.empty();) {
      auto& [top, next] = stack.back();
      const absl::Span<const InstrId> operands = m_.operands(instructions_[top]);
      if (next < operands.size()) {
        add(place_.at(operands[next++]));
      } else {
        out.push_back(instructions_[top]);
        stack.pop_back();
      }
    }
  };
  for (const int place : steps) add_with_operands(place);
  for (int place = 0; place < size(); ++place) add_with_operands(place);  // what nobody reads
  return out;
}

}  // namespace internal
}  // namespace shardcall
