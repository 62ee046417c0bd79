// SPDX-License-Identifier: Apache-2.0
// What a module keeps of the message that it was read from: ids, order, and fields that Module does
// not represent. Indexed by the module's own ids; instructions and computations added later have no
// entry.
#ifndef SHARDCALL_PARTITIONER_IR_PROTO_SOURCE_H_
#define SHARDCALL_PARTITIONER_IR_PROTO_SOURCE_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/ir/ids.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/proto/wire.h"

namespace shardcall {
inline namespace internal {

struct ProtoSource {
  ProtoForm form = ProtoForm::kModule;
  std::vector<int64_t> computation_ids, instruction_ids;
  std::vector<CompId> computation_order;  // as in the message
  // In the order of the message, if it differs from the computation's own order.
  absl::flat_hash_map<uint32_t, std::vector<InstrId>> instruction_order;
  std::vector<std::string> payloads;
  hlo_proto::Residue module;
  absl::flat_hash_map<uint32_t, hlo_proto::Residue> computations, instructions;
  std::string hlo_rest, snapshot_rest;  // other fields of the enclosing messages
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_PROTO_SOURCE_H_
