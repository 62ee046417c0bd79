// SPDX-License-Identifier: Apache-2.0
// What partition callbacks have built, so that a call alike, in the same
// computation, is built again without asking: callbacks are functions of what
// they are given.
#ifndef SHARDCALL_PARTITIONER_SPMD_CALLBACKS_CALLBACK_MEMO_H_
#define SHARDCALL_PARTITIONER_SPMD_CALLBACKS_CALLBACK_MEMO_H_

#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "shardcall/partitioner/spmd/localize/emitter.h"

namespace shardcall {

// One callback's work: operands it asked for and instructions it made, in order.
struct CallbackRecord {
  struct Step {
    int operand = -1;                    // flat, or -1: an instruction
    const Sharding* sharding = nullptr;  // what the operand was asked for as
    InstrId value;
  };
  InstrId call;  // in the global program
  // Two operands were one value, so that it is not known which of them an
  // instruction takes: not to be replayed.
  bool ambiguous = false;
  std::vector<Step> steps;
  std::vector<CollectiveRecord> collectives;
  std::vector<InstrId> results;
  std::vector<const Sharding*> states;
};

struct CallbackMemo {
  // Kind of call (RuleTable::kind), manual region, local computation, shardings
  // of operands and results.
  using Key = std::tuple<const void*, int, CompId, std::vector<const Sharding*>>;
  absl::flat_hash_map<Key, CallbackRecord> known;
};

// Copies of the record's instructions, for call `id` of the global program,
// behind what stands in the emitter's computation; `operand(i, sharding)` gives
// the operands. Returns the results.
std::vector<InstrId> Replay(
    const CallbackRecord& record, const Module& global, InstrId id, Emitter& emitter,
    absl::FunctionRef<InstrId(int operand, const Sharding* sharding)> operand);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_CALLBACKS_CALLBACK_MEMO_H_
