// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_PASS_REWRITE_H_
#define SHARDCALL_PARTITIONER_PASS_REWRITE_H_

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/build/builder.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/partitioner/pass/pass.h"

namespace shardcall {
inline namespace internal {

// A copy of the module in which the instructions that `concerns` names are made by `make`, which
// gets the old instruction and must give the cloner its copy, with `Set` or `Add`, in the builder's
// computation. Without such instructions the result is not `changed`, and its module is empty.
//
// The computation of an async-start may hold one op and its parameters only. If that op is one of
// `concerns`, the pair becomes synchronous: the op, as made, stands where the pair began.
PassResult RewriteInstructions(
    const Module& m, absl::FunctionRef<bool(InstrId)> concerns,
    absl::FunctionRef<void(InstrId, GraphBuilder& b, ModuleCloner* cloner)> make);

// The same, with the instructions of each computation in the order that `order` gives.
PassResult RewriteInstructions(
    const Module& m, absl::FunctionRef<bool(InstrId)> concerns,
    absl::FunctionRef<void(InstrId, GraphBuilder& b, ModuleCloner* cloner)> make,
    absl::FunctionRef<absl::Span<const InstrId>(CompId)> order);

// Adds what a further pass has done to `all`, the result of those before it.
void Follow(PassResult next, PassResult* all);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PASS_REWRITE_H_
