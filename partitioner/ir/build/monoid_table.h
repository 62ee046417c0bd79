// SPDX-License-Identifier: Apache-2.0
// Computations of monoids, as reductions apply them.
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_MONOID_TABLE_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_MONOID_TABLE_H_

#include <array>

#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// The reduction computations of a module under construction, named as "add.f32": one per (op,
// type), made on first use. Builders of the same module share one table.
class MonoidTable {
 public:
  explicit MonoidTable(Module* module) : module_(module) {}
  Module& module() const { return *module_; }
  // Requires IsMonoid(op) and an array type.
  CompId Get(Opcode op, ElementType type);

 private:
  Module* module_;
  std::array<std::array<CompId, kNumElementTypes>, kNumMonoids> made_;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_MONOID_TABLE_H_
