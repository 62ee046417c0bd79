// SPDX-License-Identifier: Apache-2.0
// Import: from a module to the program that propagation and partitioning read.
#ifndef SHARDCALL_PARTITIONER_IMPORT_IMPORT_H_
#define SHARDCALL_PARTITIONER_IMPORT_IMPORT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

struct ImportOptions {
  int64_t num_partitions = 0;  // 0: what the module says
  bool inline_calls = true;
  // Whether ops get plainer names and reverses that cancel go, as WithPlainOps says: for a program
  // that is planned. A body that is cut to other sizes keeps its ops.
  bool plain_ops = false;
};
// Errors E16x (shardings and meshes), E171.. (manual regions), E050
// (replica_count > 1), E051 (device counts that differ), E054 (dimensions without
// a bound). `module` must have passed VerifyModule.
absl::StatusOr<Program> ImportModule(Module module, const ImportOptions& options);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IMPORT_IMPORT_H_
