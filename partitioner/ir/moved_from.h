// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_MOVED_FROM_H_
#define SHARDCALL_PARTITIONER_IR_MOVED_FROM_H_

#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

// E028 for a module that was moved from and is empty.
inline absl::Status CheckNotMovedFrom(const Module& module) {
  if (module.shared_context() != nullptr) return absl::OkStatus();
  return ToStatus({.code = "E028",
                   .message = "the module has been moved from",
                   .fix = "Read or build it anew, or use it before it is given away"});
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MOVED_FROM_H_
