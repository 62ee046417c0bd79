// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/propagation/provenance.h"

namespace shardcall {

ProvenanceTable::ProvenanceTable(const Program& program) {
  const LeafTable& leaves = program.leaves;
  first_.reserve(leaves.num_leaves());
  uint32_t next = 0;
  for (int l = 0; l < leaves.num_leaves(); ++l) {
    const LeafId leaf(l);
    first_.push_back(next);
    if (leaves.canonical(leaf) != leaf) continue;
    const Shape* shape = program.LeafShape(leaf);
    if (shape->IsArray()) next += shape->rank();
  }
  records_.resize(next);
}

}  // namespace shardcall
