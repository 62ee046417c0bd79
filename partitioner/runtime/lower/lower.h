// SPDX-License-Identifier: Apache-2.0
// Module -> DeviceProgram: resolves op functions, numbers slots, drops what
// nothing needs, and finds where each value is read last.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/program.h"

namespace shardcall {

class DynamicSource;

struct LowerOptions {
  // The unpartitioned module is to be run by all devices at once on global
  // arrays, as the reference for programs with manual regions: entering such a
  // region takes this device's slices, leaving it gathers them.
  bool global_mode = false;
  // Runs of elementwise ops become one step over blocks that stay in cache.
  // Results have the same bits either way.
  bool fuse = true;
  // Set by Lower itself, for modules with dynamic dimensions (dynamic_sizes.h).
  std::shared_ptr<DynamicSource> dynamic = nullptr;
};

// Errors: E310 an opcode (or a form of it) that is not executed, E311 a program
// that cannot be run as it stands (elided constants, too deep nesting, shapes
// too large), E312 replica_count above 1.
absl::StatusOr<std::shared_ptr<const DeviceProgram>> Lower(const Module& module,
                                                           const LowerOptions& options = {});

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_H_
