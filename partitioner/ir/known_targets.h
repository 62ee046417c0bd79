// SPDX-License-Identifier: Apache-2.0
// The custom-call targets whose meaning the compiler itself knows: annotations of shardings,
// boundaries of manual regions, hints and orders, which have no handler, callbacks of JAX, kernels
// that are compiled for the arrays of one call, and ops that XLA writes as calls.
#ifndef SHARDCALL_PARTITIONER_IR_KNOWN_TARGETS_H_
#define SHARDCALL_PARTITIONER_IR_KNOWN_TARGETS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

enum class KnownTarget : uint8_t {
  kNone,  // any other target
#define SHARDCALL_KNOWN_TARGET(name, text, traits) name,
#include "shardcall/partitioner/ir/known_targets.inc"
#undef SHARDCALL_KNOWN_TARGET
};

// Bits of the traits column.
inline constexpr uint32_t kIsIdentity = 1;      // the result, if any, is the operand
inline constexpr uint32_t kSaysSharding = 2;    // the call annotates the value's sharding
inline constexpr uint32_t kEntersManual = 4;    // whole arrays in, shards out
inline constexpr uint32_t kLeavesManual = 8;    // shards in, whole arrays out
inline constexpr uint32_t kOfShardy = 16;       // its attributes have Shardy's form
inline constexpr uint32_t kKeepsSharding = 32;  // a hint: operand and result are sharded alike
inline constexpr uint32_t kOnShards = 64;       // each device calls it with what it holds
inline constexpr uint32_t kOrders = 128;  // the second operand is to be computed after the first
// The call carries a kernel with the grid that it runs on, which is that of the whole arrays.
inline constexpr uint32_t kStatesGrid = 256;
// Barriers of propagation: the operand's sharding does not reach the result, or the other way
// round.
inline constexpr uint32_t kBlocksForward = 512;
inline constexpr uint32_t kBlocksBackward = 1024;
inline constexpr uint32_t kIsOp = 2048;  // HLO ops under another name (build/expanded_calls.h)
// A call that some devices have a kernel for, and HLO ops elsewhere. It has a rule.
inline constexpr uint32_t kRunsAsOps = 4096;
inline constexpr uint32_t kManualBoundaryTarget = kEntersManual | kLeavesManual;

KnownTarget FindKnownTarget(absl::string_view text);
// kNone for other instructions.
KnownTarget KnownTargetOf(const Instruction& instr);
absl::string_view KnownTargetText(KnownTarget target);
uint32_t TraitsOf(KnownTarget target);
inline bool HasTrait(KnownTarget target, uint32_t trait) { return TraitsOf(target) & trait; }

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_KNOWN_TARGETS_H_
