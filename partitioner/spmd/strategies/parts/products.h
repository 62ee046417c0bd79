// SPDX-License-Identifier: Apache-2.0
// Shared by the strategies of dot and convolution.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_PRODUCTS_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_PRODUCTS_H_

#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall {
inline namespace internal {

// Strategy::seconds of an op of which each device multiplies and adds the products of its shards.
double SecondsOfProducts(const CostModel& cost, const Module& module, const Instruction& instr,
                         const Decision& d);

// Sets padding in contracted dimensions of the two operands of a product to zero: of both, since
// it may hold inf or nan. Not along dimensions that were exchanged.
void MaskContracted(OpBuilder& ops, const LocalOp& op, LocalIds* operands);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_PRODUCTS_H_
