// SPDX-License-Identifier: Apache-2.0
// Control edges: what the program orders stays ordered.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_CONTROL_EDGES_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_CONTROL_EDGES_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {

class ControlEdges {
 public:
  ControlEdges(const Module& global, Module* local);
  // Whether there is no edge at all.
  bool empty() const { return emitted_.empty(); }
  // `id` became what `computation` has from instruction `begin` on.
  void NoteEmitted(InstrId id, CompId computation, int begin);
  // Orders what the instructions of a computation became.
  void Keep(CompId comp);

 private:
  const Module& global_;
  Module& local_;
  // Local instructions that stand for a global one at either end of an edge.
  absl::flat_hash_map<InstrId, std::vector<InstrId>> emitted_;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_CONTROL_EDGES_H_
