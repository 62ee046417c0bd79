// SPDX-License-Identifier: Apache-2.0
// Ops that may be done on reversed operands, mirrored.
#ifndef SHARDCALL_PARTITIONER_IR_SIMPLIFY_MIRRORED_OPS_H_
#define SHARDCALL_PARTITIONER_IR_SIMPLIFY_MIRRORED_OPS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// A bit per dimension that is reversed.
using ReversedDims = uint64_t;
inline constexpr int kMostReversedRank = 64;  // a rank has to be below it

inline bool IsReversed(ReversedDims dims, int64_t d) { return (dims >> d & 1) != 0; }
std::vector<int64_t> DimensionsOf(ReversedDims dims);

// What is known of such an op. All operands that are reversed are so in the dimensions `of`.
struct MirroredOp {
  Opcode opcode;
  // The dimensions in which the result is reversed then; none: it cannot be told.
  std::optional<ReversedDims> (*result)(const Module& m, const Instruction& i, ReversedDims of);
  // Makes `copy`, the op in `m`, that of the operands as they were before they were reversed. Null:
  // it is the same.
  void (*mirror)(const Module& m, ReversedDims of, Instruction* copy,
                 absl::InlinedVector<InstrId, 8>* operands);
};
// Null: the op is none of them.
const MirroredOp* MirroredOpOf(Opcode opcode);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_SIMPLIFY_MIRRORED_OPS_H_
