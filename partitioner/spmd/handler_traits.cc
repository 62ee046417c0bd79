// SPDX-License-Identifier: Apache-2.0
#include "partitioner/spmd/handler_traits.h"

namespace shardcall {

bool HandlesPermutation(const Module&, const Instruction&, const ShardingRule&, int) {
  return false;
}

bool IsFreeToGather(const Instruction& instr) {
  return HasTrait(instr.opcode, kCollectiveOp);
}

}  // namespace shardcall
