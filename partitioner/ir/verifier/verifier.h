// SPDX-License-Identifier: Apache-2.0
// Checks that a module is a valid HLO program: what the parser leaves open and
// what every later stage relies on: all that XLA's HloVerifier refuses before
// layouts are assigned, and what has no meaning though XLA takes it. The first
// fault found is the error; its `where` is the file, line and column (where the
// module was read from text) and the instruction, its codes are E021 to E028 of
// sharding/DIAGNOSTICS.md.
// Where the header has no num_partitions, the number of devices is open and
// device ids are not held against it.
#ifndef SHARDCALL_PARTITIONER_IR_VERIFIER_VERIFIER_H_
#define SHARDCALL_PARTITIONER_IR_VERIFIER_VERIFIER_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/shapes/target_shapes.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Linear in the size of the module; no recursion. With `targets`, the shapes of
// custom calls that it knows are checked too.
absl::Status VerifyModule(const Module& module, absl::string_view file_name,
                          const TargetShapes* targets = nullptr);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_VERIFIER_VERIFIER_H_
