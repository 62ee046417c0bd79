// SPDX-License-Identifier: Apache-2.0
// Keeps the program's control dependencies in the local module.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_CONTROL_EDGES_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_CONTROL_EDGES_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

class ControlEdges {
 public:
  ControlEdges(const Module& global, Module* local);
  // Whether the program has no control dependencies at all.
  bool empty() const { return ends_.empty(); }
  // The instructions of `computation` from `begin` on were emitted for `id`.
  void NoteEmitted(InstrId id, CompId computation, int begin);
  // Adds the control dependencies between the instructions emitted for a computation.
  void Keep(CompId comp);

 private:
  // The local instructions that stand for a global one.
  struct Ends {
    InstrId waits;                    // where an edge ends; invalid if nothing was emitted
    std::vector<InstrId> waited_for;  // where an edge begins
  };

  // Where the edges to a global instruction begin, in increasing order.
  std::vector<InstrId> WaitedFor(InstrId id) const;

  const Module& global_;
  Module& local_;
  absl::flat_hash_map<InstrId, Ends> ends_;  // of both sides of each edge
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_CONTROL_EDGES_H_
