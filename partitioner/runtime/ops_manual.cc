// SPDX-License-Identifier: Apache-2.0
#include "partitioner/runtime/lower_op.h"

namespace shardcall {

absl::Status LowerManualBoundary(const LowerContext& context, Step*) {
  return context.Unimplemented("a manual region outside the global mode");
}

}  // namespace shardcall
