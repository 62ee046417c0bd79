// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_SIMPLIFY_PLAIN_OPS_H_
#define SHARDCALL_PARTITIONER_IR_SIMPLIFY_PLAIN_OPS_H_

#include <optional>

#include "shardcall/partitioner/ir/build/rewritten.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// The module with ops that have a plainer name by it (placed_windows.h), and with ops that several
// plainer ones make up, whose rules and strategies serve then (batch_norms.h). None if there are
// none.
std::optional<Rewritten> InPlainOps(const Module& module);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_SIMPLIFY_PLAIN_OPS_H_
