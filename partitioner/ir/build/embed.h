// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_EMBED_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_EMBED_H_

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// Copies all computations of `from`, which has the same Context, into `into`, and returns the copy
// of its entry. If `into` has a computation of the same name, a number is appended.
CompId EmbedComputations(const Module& from, Module* into);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_EMBED_H_
