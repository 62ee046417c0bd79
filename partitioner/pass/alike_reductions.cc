// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/pass/alike_reductions.h"

#include <algorithm>

namespace shardcall {
inline namespace internal {

bool IsJoinable(const Instruction& i, int64_t most_bytes) {
  return i.opcode == Opcode::kAllReduce && i.operand_count == 1 && i.shape->IsArray() &&
         !i.shape->IsDynamic() && i.sharding == nullptr && i.extra < 0 &&
         i.shape->num_elements() > 0 && i.shape->byte_size() <= most_bytes;
}

namespace {

// All but the channel; one address for equal ones.
const Attributes* WithoutChannel(const Module& m, const Instruction& i) {
  CollectiveAttrs attrs = i.as<CollectiveAttrs>();
  attrs.channel_id = -1;
  return InternAttributes(m.context(), attrs);
}
bool AreAlike(const Module& m, const Instruction& a, const Instruction& b) {
  return a.shape->element_type() == b.shape->element_type() &&
         WithoutChannel(m, a) == WithoutChannel(m, b);
}

}  // namespace

// A group is open until one of its results is read.
ReductionGroups FindAlikeReductions(const Module& m, int64_t most_bytes) {
  ReductionGroups out;
  for (int c = 0; c < m.num_computations(); ++c) {
    std::vector<ReductionGroup> open;
    absl::flat_hash_map<InstrId, ReductionGroup> of;  // by member of an open group
    const auto close = [&](const ReductionGroup& group) {
      for (InstrId id : *group) {
        of.erase(id);
        if (group->size() > 1) out[id] = group;
      }
      std::erase(open, group);
    };
    for (InstrId id : m.comp(CompId(c)).instructions) {
      for (InstrId operand : m.operands(id)) {
        const auto read = of.find(operand);
        if (read != of.end()) close(ReductionGroup(read->second));
      }
      const Instruction& i = m.instr(id);
      if (!IsJoinable(i, most_bytes)) continue;
      const auto at = std::find_if(open.begin(), open.end(), [&](const ReductionGroup& group) {
        return AreAlike(m, m.instr(group->front()), i);
      });
      if (at == open.end()) {
        open.push_back(std::make_shared<std::vector<InstrId>>(1, id));
        of[id] = open.back();
      } else {
        (*at)->push_back(id);
        of[id] = *at;
      }
    }
    while (!open.empty()) close(ReductionGroup(open.back()));
  }
  return out;
}

}  // namespace internal
}  // namespace shardcall
