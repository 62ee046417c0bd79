// SPDX-License-Identifier: Apache-2.0
// What a backend of XLA makes of a per-device module as far as its memory is concerned: a module
// that computes the same. Only to count what it needs (ir/memory/peak_memory.h); nothing runs it.
#ifndef SHARDCALL_PARTITIONER_PASS_BACKEND_AS_XLA_RUNS_H_
#define SHARDCALL_PARTITIONER_PASS_BACKEND_AS_XLA_RUNS_H_

#include <optional>

#include "shardcall/partitioner/ir/memory/memory_rules.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// Null if it is as `m` is.
std::optional<Module> AsXlaRuns(const Module& m, const MemoryRules& rules);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PASS_BACKEND_AS_XLA_RUNS_H_
