// SPDX-License-Identifier: Apache-2.0
// Module -> DeviceProgram: resolves op functions, numbers slots, drops dead steps, and determines
// the last use of each value.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/program.h"

namespace shardcall {
inline namespace internal {

class DynamicSource;

struct LowerOptions {
  // All devices run the unpartitioned module on global arrays, as the reference for programs with
  // manual regions: entering such a region slices out this device's shards, leaving it gathers
  // them.
  bool global_mode = false;
  // Combine elementwise ops into steps over blocks that stay in cache. Results have the same bits
  // either way.
  bool fuse = true;
  // Set by Lower itself, for modules with dynamic dimensions (dynamic_sizes.h).
  std::shared_ptr<DynamicSource> dynamic = nullptr;
};

// Errors: E310 for an opcode (or a form of it) that is not implemented, E311 for a program that
// cannot be run (elided constants, too deep nesting, too large shapes), E312 for replica_count
// above 1.
absl::StatusOr<std::shared_ptr<const DeviceProgram>> Lower(const Module& module,
                                                           const LowerOptions& options = {});

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_H_
