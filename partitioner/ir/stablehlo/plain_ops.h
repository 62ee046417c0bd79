// SPDX-License-Identifier: Apache-2.0
// Ops that the table of ops describes to the reader and to the writer completely.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_PLAIN_OPS_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_PLAIN_OPS_H_

#include "shardcall/partitioner/ir/opcode.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

// The name in StableHLO is all there is to know: no attribute but what the shape says, and no
// computation. Other ops need a row in read/ and one in write/, and are refused without them.
inline bool IsPlain(const OpcodeInfo& info) {
  return !info.stablehlo.empty() && (info.traits & kCallsComputation) == 0 &&
         (info.attrs == AttrKind::kNone || info.attrs == AttrKind::kResultAccuracy ||
          info.attrs == AttrKind::kReshape);
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_PLAIN_OPS_H_
