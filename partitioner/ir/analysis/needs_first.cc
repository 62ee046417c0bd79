// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/needs_first.h"

#include "absl/algorithm/container.h"

namespace shardcall {
inline namespace internal {

void NeedsFirst::Add(InstrId id, std::vector<InstrId>* order) {
  const auto begin = [&](InstrId next) {
    if (added_[next.value]) return;
    added_[next.value] = true;
    open_.emplace_back(next, 0);
  };
  begin(id);
  while (!open_.empty()) {
    const InstrId last = open_.back().first;
    const size_t next = open_.back().second++;
    const absl::Span<const InstrId> operands = module_.operands(last);
    const RareAttributes* const rare = module_.rare(module_.instr(last));
    const absl::Span<const InstrId> before =
        rare == nullptr ? absl::Span<const InstrId>() : rare->control_predecessors;
    if (next < operands.size()) {
      begin(operands[next]);
    } else if (next < operands.size() + before.size()) {
      begin(before[next - operands.size()]);
    } else {
      order->push_back(last);
      open_.pop_back();
    }
  }
}

std::vector<InstrId> NeedsFirst::ByPlace(absl::Span<const InstrId> instructions,
                                         absl::Span<const int32_t> place) {
  std::vector<InstrId> sorted(instructions.begin(), instructions.end()), order;
  absl::c_stable_sort(sorted,
                      [&](InstrId a, InstrId b) { return place[a.value] < place[b.value]; });
  order.reserve(sorted.size());
  for (const InstrId id : sorted) Add(id, &order);
  return order;
}

}  // namespace internal
}  // namespace shardcall
