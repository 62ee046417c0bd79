// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/collective_reasons.h"

namespace shardcall {
inline namespace internal {

LeafId CollectiveReasons::MovedLeaf(const CollectiveRecord& r) {
  if (!r.cause.consumer.valid()) return LeafId();
  if (r.cause.kind == CollectiveCause::Kind::kResult) {
    return program_.leaves.leaf(r.cause.consumer, r.cause.index);
  }
  if (r.cause.kind != CollectiveCause::Kind::kOperand) return LeafId();
  if (consumer_ != r.cause.consumer) {
    consumer_ = r.cause.consumer;
    operands_.clear();
    for (InstrId o : program_.module.operands(consumer_)) {
      const int n = program_.module.instr(o).shape->num_leaves();
      for (int k = 0; k < n; ++k) operands_.push_back(program_.leaves.leaf(o, k));
    }
  }
  const size_t index = static_cast<size_t>(r.cause.index);
  return index < operands_.size() ? operands_[index] : LeafId();
}

std::string CollectiveReasons::WhySharded(const CollectiveRecord& r) {
  const LeafId leaf = MovedLeaf(r);
  return leaf.valid() ? reasons_.Of(leaf) : "";
}

}  // namespace internal
}  // namespace shardcall
