// SPDX-License-Identifier: Apache-2.0
// Keeps the program's control dependencies in the local module.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_CONTROL_EDGES_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_CONTROL_EDGES_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall::inline internal {

class ControlEdges {
 public:
  ControlEdges(const Module& global, Module* local);
  // Whether the program has no control dependencies at all.
  bool empty() const { return emitted_.empty(); }
  // The instructions of `computation` from `begin` on were emitted for `id`.
  void NoteEmitted(InstrId id, CompId computation, int begin);
  // Adds the control dependencies between the instructions emitted for a computation.
  void Keep(CompId comp);

 private:
  void Track(InstrId id);

  const Module& global_;
  Module& local_;
  // Local instructions that stand for a global one: for both ends of each edge, and for what these
  // merely hand on.
  absl::flat_hash_map<InstrId, std::vector<InstrId>> emitted_;
};

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_CONTROL_EDGES_H_
