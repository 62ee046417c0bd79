// SPDX-License-Identifier: Apache-2.0
// A per-device module as a program of whole arrays, for frameworks that hand those to XLA.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_MANUAL_COMPUTATION_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_MANUAL_COMPUTATION_H_

#include "absl/status/statusor.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/spmd/localize/localize.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct ManualComputation {
  Module module;
  // Whether Shardy is to read it, else GSPMD.
  bool shardy = true;
};

// The per-device module as the body of one manual computation of a program whose parameters
// and results have their whole shapes, and the shardings that were chosen. XLA's partitioner
// makes the per-device module of it again, and the framework reads from what is compiled all
// that it is used to read. Donation, layouts and names are those of the per-device module.
// The form is that of JAX's shard_map over all axes. What Shardy does not take, which is a
// program without results, and one whose parameters and results lie on meshes of which none
// says what the others do, is written as GSPMD reads it. E164 for a sharding that no form can
// say, E336 for a parameter that is a tuple, or a tuple within the result.
absl::StatusOr<ManualComputation> AsManualComputation(const LocalProgram& local);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_MANUAL_COMPUTATION_H_
