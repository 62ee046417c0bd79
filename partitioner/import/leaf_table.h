// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IMPORT_LEAF_TABLE_H_
#define SHARDCALL_PARTITIONER_IMPORT_LEAF_TABLE_H_

#include <cstdint>
#include <vector>

#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Leaves of all instructions, dense: leaf = first(instr) + flat index into the
// instruction's tuple shape. Several leaves may be one value: tuple,
// get-tuple-element and opt-barrier alias their operands' leaves; the result of
// a while and the parameters of its body and condition are one value each (its
// operand and the body's root are not: the plan may reshard there); parameters
// of a called, not inlined, computation stand for themselves. canonical() gives
// the representative.
class LeafTable {
 public:
  LeafId first(InstrId i) const { return LeafId(first_[i.value]); }
  LeafId leaf(InstrId i, int flat = 0) const { return LeafId(first_[i.value] + flat); }
  LeafId canonical(LeafId l) const { return LeafId(canonical_[l.value]); }
  LeafId canonical(InstrId i, int flat = 0) const { return canonical(leaf(i, flat)); }
  int num_leaves() const { return static_cast<int>(canonical_.size()); }
  InstrId instr(LeafId l) const { return owner_[l.value]; }
  int index(LeafId l) const { return static_cast<int>(l.value - first_[owner_[l.value].value]); }

 private:
  friend LeafTable BuildLeafTable(const Module& module);
  std::vector<uint32_t> first_, canonical_;
  std::vector<InstrId> owner_;
};
LeafTable BuildLeafTable(const Module& module);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IMPORT_LEAF_TABLE_H_
