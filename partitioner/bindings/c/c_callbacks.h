// SPDX-License-Identifier: Apache-2.0
// Converts partitioners of the C interface (shardcall_c_partition.h) to PartitionerCallbacks.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_C_CALLBACKS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_C_CALLBACKS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/bindings/c/shardcall_c_partition.h"
#include "shardcall/partitioner/custom_call/registry.h"

namespace shardcall {
inline namespace internal {

// E148 for a struct of another size. `library` is kept with the callbacks.
absl::StatusOr<PartitionerCallbacks> MakeCCallbacks(const Shardcall_Partitioner& partitioner,
                                                    std::shared_ptr<const void> library = nullptr);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_C_C_CALLBACKS_H_
