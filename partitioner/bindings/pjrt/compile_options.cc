// SPDX-License-Identifier: Apache-2.0
#include "partitioner/bindings/pjrt/compile_options.h"

#include "partitioner/bindings/pjrt/compile_options.pb.h"

namespace shardcall::pjrt {

std::string PerDeviceOptions(absl::Span<const int64_t> device_ids, bool tupled_arguments) {
  pjrt_pb::CompileOptionsProto options;
  options.set_parameter_is_tupled_arguments(tupled_arguments);
  pjrt_pb::ExecutableBuildOptionsProto* build = options.mutable_executable_build_options();
  build->set_device_ordinal(-1);
  build->set_num_replicas(1);
  build->set_num_partitions(static_cast<int64_t>(device_ids.size()));
  // XLA:CPU refuses several partitions without it; the passes that it stands for are
  // switched off below.
  build->set_use_spmd_partitioning(true);
  pjrt_pb::DeviceAssignmentProto* devices = build->mutable_device_assignment();
  devices->set_replica_count(1);
  devices->set_computation_count(static_cast<int32_t>(device_ids.size()));
  for (int64_t id : device_ids) devices->add_computation_devices()->add_replica_device_ids(id);
  (*options.mutable_env_option_overrides())["xla_disable_hlo_passes"].set_string_field(
      "sharding-propagation,shardy-xla,spmd-partitioning");
  std::string bytes;
  options.SerializeToString(&bytes);
  return bytes;
}

}  // namespace shardcall::pjrt
