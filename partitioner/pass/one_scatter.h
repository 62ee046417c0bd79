// SPDX-License-Identifier: Apache-2.0
// Scatters of one window.
#ifndef SHARDCALL_PARTITIONER_PASS_ONE_SCATTER_H_
#define SHARDCALL_PARTITIONER_PASS_ONE_SCATTER_H_

#include "shardcall/partitioner/ir/build/builder.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// Emits the scatter `id` of one window as an update in range (explicit_starts.cc), and names that
// as its copy. A scatter of several operands, whose computation no op on arrays stands for, is
// copied as it is, between barriers that keep other slices away from it.
void MakeScatterExplicit(const Module& m, InstrId id, GraphBuilder& b, ModuleCloner* cloner);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PASS_ONE_SCATTER_H_
