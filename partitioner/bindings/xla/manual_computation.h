// SPDX-License-Identifier: Apache-2.0
// Converts a per-device module to a program of global arrays, for frameworks that pass such
// programs to XLA.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_MANUAL_COMPUTATION_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_MANUAL_COMPUTATION_H_

#include "absl/status/statusor.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/spmd/localize/localize.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct ManualComputation {
  Module module;
  // Whether Shardy reads it, or else GSPMD.
  bool shardy = true;
};

// The per-device module as the body of one manual computation, in a program whose parameters and
// results have their global shapes and the chosen shardings. XLA's partitioner makes the
// per-device module from it again, and the framework can read everything it needs from the
// compiled program. Donation, layouts and names are those of the per-device module. The form is
// that of JAX's shard_map over all axes. It is written for GSPMD where Shardy does not accept it:
// a program without results, or with parameters and results on several meshes none of which can
// express the others' shardings. E164 for a sharding that no form can express, E336 for a
// parameter that is a tuple, or a tuple within the result. `platform`: where it is to run, by
// kernels/ffi/platform.h, if that is known.
absl::StatusOr<ManualComputation> AsManualComputation(const LocalProgram& local,
                                                      absl::string_view platform = {});

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_MANUAL_COMPUTATION_H_
