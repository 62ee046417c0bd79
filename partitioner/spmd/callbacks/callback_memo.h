// SPDX-License-Identifier: Apache-2.0
// Remembers what partition callbacks have built, so that an equal call in the same computation is
// built again without asking. This relies on callbacks depending on their arguments only.
#ifndef SHARDCALL_PARTITIONER_SPMD_CALLBACKS_CALLBACK_MEMO_H_
#define SHARDCALL_PARTITIONER_SPMD_CALLBACKS_CALLBACK_MEMO_H_

#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "shardcall/partitioner/spmd/localize/emitter.h"

namespace shardcall {
inline namespace internal {

// One callback's work: operands it asked for and instructions it made, in order.
struct CallbackRecord {
  struct Step {
    int operand = -1;                    // flat index; -1 if this step is an instruction
    const Sharding* sharding = nullptr;  // the sharding of the operand that was asked for
    InstrId value;
  };
  InstrId call;  // in the global program
  // Two operands were the same value, so an instruction's operand cannot be matched to either of
  // them: such a record is not replayed.
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

// Copies the record's instructions, for call `id` of the global program, to the end of the
// emitter's computation; `operand(i, sharding)` gives the operands. Returns the results.
std::vector<InstrId> Replay(
    const CallbackRecord& record, const Module& global, InstrId id, Emitter& emitter,
    absl::FunctionRef<InstrId(int operand, const Sharding* sharding)> operand);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_CALLBACKS_CALLBACK_MEMO_H_
