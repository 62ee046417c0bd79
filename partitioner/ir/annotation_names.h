// SPDX-License-Identifier: Apache-2.0
// The names under which Shardy, JAX and XLA annotate programs. Custom-call targets of the same kind
// stand in known_targets.inc.
#ifndef SHARDCALL_PARTITIONER_IR_ANNOTATION_NAMES_H_
#define SHARDCALL_PARTITIONER_IR_ANNOTATION_NAMES_H_

#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {

// Frontend attributes of HLO, in which Shardy exports what its own attributes say.
inline constexpr absl::string_view kSdyPrefix = "xla.sdy.";  // of all of them
inline constexpr absl::string_view kSdySharding = "xla.sdy.sharding";
inline constexpr absl::string_view kSdyShardingRule = "xla.sdy.sharding_rule";
inline constexpr absl::string_view kSdyShardingGroupId = "xla.sdy.sharding_group_id";
inline constexpr absl::string_view kSdyMeshes = "xla.sdy.meshes";  // of the module
// Of the calls at the edges of a manual region.
inline constexpr absl::string_view kSdyInShardings = "xla.sdy.in_shardings";
inline constexpr absl::string_view kSdyOutShardings = "xla.sdy.out_shardings";
inline constexpr absl::string_view kSdyManualAxes = "xla.sdy.manual_axes";

// The computation that holds the body of a manual region.
inline constexpr absl::string_view kSdyManualBody = "xla.sdy.manual_computation_body";

// Of a call that starts a collective, as JAX 0.12 writes it.
inline constexpr absl::string_view kAsyncCollectiveConfig = "async_collective_config";

// Attributes of operations in StableHLO. Those of Shardy's dialect:
inline constexpr absl::string_view kDialectSharding = "sdy.sharding";
inline constexpr absl::string_view kDialectShardingRule = "sdy.sharding_rule";
// and those of the MHLO dialect, which has what HLO has and StableHLO lacks.
inline constexpr absl::string_view kMhloPrefix = "mhlo.";  // of all of them
inline constexpr absl::string_view kMhloSharding = "mhlo.sharding";
inline constexpr absl::string_view kMhloFrontendAttributes = "mhlo.frontend_attributes";
inline constexpr absl::string_view kMhloBackendConfig = "mhlo.backend_config";
inline constexpr absl::string_view kMhloNumPartitions = "mhlo.num_partitions";
inline constexpr absl::string_view kMhloNumReplicas = "mhlo.num_replicas";
// Arrays of the layouts and the tiles of main's flat parameters and results.
inline constexpr absl::string_view kMhloParameterLayouts =
    "mhlo.xla_entry_computation_parameter_layouts";
inline constexpr absl::string_view kMhloParameterTiles =
    "mhlo.xla_entry_computation_parameter_tiles";
inline constexpr absl::string_view kMhloResultLayouts = "mhlo.xla_entry_computation_result_layout";
inline constexpr absl::string_view kMhloResultTiles = "mhlo.xla_entry_computation_result_tiles";

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANNOTATION_NAMES_H_
