// SPDX-License-Identifier: Apache-2.0
// Where shardings came from, dimension by dimension.
#ifndef SHARDCALL_PARTITIONER_PROPAGATION_PROVENANCE_H_
#define SHARDCALL_PARTITIONER_PROPAGATION_PROVENANCE_H_

#include <cstdint>
#include <vector>

#include "shardcall/partitioner/import/program.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Where the axes of one dimension of a canonical leaf came from: a constraint (`from` is invalid),
// or a dimension of another leaf through instruction `via`. Of several steps it is the one that
// brought the most shards; follow `from` and `from_dim` back to the origin.
struct Provenance {
  LeafId from;
  InstrId via;
  int16_t from_dim = -1;  // -1: not a single one (callbacks)
  bool constraint = false;
  bool like = false;    // no op passes it on: an open result of the shape of `from` has its axes
  int32_t brought = 1;  // the number of shards that the step added
};

// By canonical leaf and dimension.
class ProvenanceTable {
 public:
  ProvenanceTable() = default;
  explicit ProvenanceTable(const Program& program);

  Provenance& at(LeafId leaf, int dim) { return records_[slot(leaf, dim)]; }
  const Provenance& at(LeafId leaf, int dim) const { return records_[slot(leaf, dim)]; }
  // The dimensions of all leaves, numbered.
  uint32_t slot(LeafId leaf, int dim) const { return first_[leaf.value] + dim; }
  uint32_t num_slots() const { return static_cast<uint32_t>(records_.size()); }
  // Forgets all.
  void Clear() { records_.assign(records_.size(), Provenance()); }

 private:
  std::vector<uint32_t> first_;  // by leaf; only canonical ones have records
  std::vector<Provenance> records_;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PROPAGATION_PROVENANCE_H_
