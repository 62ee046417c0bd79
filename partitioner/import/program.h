// SPDX-License-Identifier: Apache-2.0
// The result of import: calls are inlined, annotations of every style are typed constraints on
// leaves, manual regions are found, and base meshes are built. Later stages read only this; its
// module is not edited again.
#ifndef SHARDCALL_PARTITIONER_IMPORT_PROGRAM_H_
#define SHARDCALL_PARTITIONER_IMPORT_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/import/leaf_table.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall SHARDCALL_PUBLIC {

// Entry to or exit from a manual region: one instruction with n operands and n
// results (flat), operand k to result k. Entry: operand is global, result local
// with respect to `manual_axes`; dimension d of the operand is sharded
// major-most by manual_dims[k][d], and the rest of its axes are the result's.
// Exit: the other way round. Nested regions name only their own axes.
struct ManualBoundary {
  bool entry = true;
  AxisList manual_axes;
  std::vector<std::vector<AxisList>> manual_dims;  // [operand][dimension]
  // [operand]: the manual axes over which the global side is the sum (or another
  // combination) of what the devices have inside.
  struct Partial {
    AxisList axes;
    PartialOp op = PartialOp::kSum;
  };
  std::vector<Partial> manual_partial;
};

enum class AnnotationKind : uint8_t {
  kNone,
  kIdentity,  // Sharding, FuncResultSharding, and the like: result = operand, constrained
  kGroup,     // ShardingGroup: no result, no code
  kManualBoundary,
};

struct Program {
  explicit Program(Module m) : module(std::move(m)) {}
  Module module;
  LeafTable leaves;
  const Shape* LeafShape(LeafId l) const {
    return module.instr(leaves.instr(l)).shape->leaf(leaves.index(l));
  }
  int64_t num_partitions = 1;
  // The mesh that unannotated values are replicated on; `meshes` has all base meshes.
  const BaseMesh* mesh = nullptr;
  std::vector<const BaseMesh*> meshes;

  // By leaf (not canonical); null where the program has no annotation.
  std::vector<const ShardingConstraint*> constraints;
  std::vector<std::unique_ptr<ShardingConstraint>> owned_constraints;

  // By instruction.
  std::vector<AnnotationKind> annotation;
  absl::flat_hash_map<InstrId, ManualBoundary> boundaries;
  // By outfeed: the constraints of the leaves that it writes.
  absl::flat_hash_map<InstrId, std::vector<const ShardingConstraint*>> outfeeds;
  // Manual axes in force at an instruction: regions[region_of[i]]; 0 is none.
  std::vector<uint16_t> region_of;
  std::vector<AxisList> regions;
  absl::Span<const AxisRef> manual_axes(InstrId i) const { return regions[region_of[i.value]]; }

  // Entry parameters (flat) and results (flat) that propagation may set.
  std::vector<bool> may_set_parameter, may_set_output;
  // Results (flat) that propagation may not set, and whose sharding the program does not state:
  // they are replicated.
  std::vector<bool> unstated_output;
  // By instruction: its place in the text, to compare with those of its computation. Empty where
  // the instructions stand in this order.
  std::vector<int32_t> place;
  bool uses_shardy = false;           // annotations were xla.sdy.*
  std::vector<std::string> warnings;  // W2xx, import's own
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IMPORT_PROGRAM_H_
