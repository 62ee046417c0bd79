// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/callbacks/callback_memo.h"

#include "shardcall/partitioner/ir/build/splice.h"

namespace shardcall {
inline namespace internal {

std::vector<InstrId> Replay(
    const CallbackRecord& record, const Module& global, InstrId id, Emitter& emitter,
    absl::FunctionRef<InstrId(int operand, const Sharding* sharding)> operand) {
  Module& local = emitter.builder().module();
  const Instruction& before = global.instr(record.call);
  const Instruction& now = global.instr(id);
  absl::flat_hash_map<InstrId, InstrId> copies;
  // Values from before the callback are not copied.
  auto copy_of = [&](InstrId x) {
    auto it = copies.find(x);
    return it == copies.end() ? x : it->second;
  };
  absl::flat_hash_map<int64_t, int64_t> channels;
  absl::InlinedVector<InstrId, 8> operands;
  for (const CallbackRecord::Step& step : record.steps) {
    if (step.operand >= 0) {
      copies[step.value] = operand(step.operand, step.sharding);
      continue;
    }
    Instruction copy = local.instr(step.value);
    operands.clear();
    for (InstrId o : local.operands(copy)) operands.push_back(copy_of(o));
    std::vector<InstrId> control;
    if (const RareAttributes* rare = local.rare(copy)) control = rare->control_predecessors;
    copy.extra = -1;
    copy.name = copy.name == before.name ? now.name : absl::string_view();
    copy.metadata = now.metadata;
    copy.attrs =
        WithNewChannel(local.context(), copy.attrs, &channels, &emitter.shared().next_channel);
    const InstrId made = local.Add(emitter.builder().computation(), copy, operands);
    copies[step.value] = made;
    for (InstrId p : control) local.mutable_rare(made).control_predecessors.push_back(copy_of(p));
  }
  for (CollectiveRecord c : record.collectives) {
    c.local = copy_of(c.local);
    c.cause.consumer = id;
    emitter.shared().records.push_back(c);
  }
  std::vector<InstrId> results;
  for (InstrId r : record.results) results.push_back(copy_of(r));
  return results;
}

}  // namespace internal
}  // namespace shardcall
