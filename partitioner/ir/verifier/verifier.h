// SPDX-License-Identifier: Apache-2.0
// Checks that a module is a valid HLO program, which every later stage relies on. It refuses what
// the parser does not check, everything that XLA's HloVerifier refuses before layouts are
// assigned, and programs that XLA accepts but that have no meaning. The first fault found is the
// error; its `where` is the file, line and column (if the module was read from text) and the
// instruction; its codes are E021 to E028 of sharding/DIAGNOSTICS.md. If the header has no
// num_partitions, the number of devices is unknown and device ids have no upper limit.
#ifndef SHARDCALL_PARTITIONER_IR_VERIFIER_VERIFIER_H_
#define SHARDCALL_PARTITIONER_IR_VERIFIER_VERIFIER_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/shapes/target_shapes.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Linear in the size of the module; no recursion. With `targets`, the shapes of custom calls that
// are registered there are checked too.
absl::Status VerifyModule(const Module& module, absl::string_view file_name,
                          const TargetShapes* targets = nullptr);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_VERIFIER_VERIFIER_H_
