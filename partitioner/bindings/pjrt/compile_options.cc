// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt/compile_options.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "partitioner/bindings/pjrt/compile_options.pb.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

using pjrt_pb::CompileOptionsProto;

constexpr char kDisabledPasses[] = "xla_disable_hlo_passes";
constexpr absl::string_view kShardingPasses = "sharding-propagation,shardy-xla,spmd-partitioning";

// Serialises a message; it was parsed from bytes before, so it is not too large.
std::string Bytes(const google::protobuf::MessageLite& message) {
  std::string bytes;
  message.SerializeToString(&bytes);
  return bytes;
}

template <typename Message>
absl::StatusOr<Message> Parse(absl::string_view bytes, const char* what) {
  Message message;
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return message;
  return ToStatus({.code = "E339",
                   .message = absl::StrCat("what a framework or plugin gave is no ", what),
                   .found = absl::StrCat(bytes.size(), " bytes"),
                   .fix = "Use a framework and a plugin of matching versions"});
}

void SetText(CompileOptionsProto* options, const std::string& name, std::string value) {
  (*options->mutable_env_option_overrides())[name].set_string_field(std::move(value));
}
void SetFlag(CompileOptionsProto* options, const std::string& name) {
  (*options->mutable_env_option_overrides())[name].set_bool_field(true);
}

// Several partitions and one replica; partition k is on the k-th device.
void SetDevices(pjrt_pb::ExecutableBuildOptionsProto* build, absl::Span<const int64_t> device_ids) {
  build->set_device_ordinal(-1);
  build->set_num_replicas(1);
  build->set_num_partitions(static_cast<int64_t>(device_ids.size()));
  pjrt_pb::DeviceAssignmentProto* devices = build->mutable_device_assignment();
  devices->set_replica_count(1);
  devices->set_computation_count(static_cast<int32_t>(device_ids.size()));
  for (int64_t id : device_ids) devices->add_computation_devices()->add_replica_device_ids(id);
}

}  // namespace

std::string PerDeviceOptions(absl::Span<const int64_t> device_ids, bool tupled_arguments) {
  CompileOptionsProto options;
  options.set_parameter_is_tupled_arguments(tupled_arguments);
  SetDevices(options.mutable_executable_build_options(), device_ids);
  // XLA:CPU rejects several partitions without it; the passes that it enables are disabled below.
  options.mutable_executable_build_options()->set_use_spmd_partitioning(true);
  SetText(&options, kDisabledPasses, std::string(kShardingPasses));
  return Bytes(options);
}

absl::StatusOr<RequestedOptions> ReadOptions(absl::string_view serialized) {
  SHARDCALL_ASSIGN_OR_RETURN(const auto options,
                             Parse<CompileOptionsProto>(serialized, "CompileOptionsProto"));
  const pjrt_pb::ExecutableBuildOptionsProto& build = options.executable_build_options();
  const auto& results = build.allow_spmd_sharding_propagation_to_output();
  const auto& parameters = build.allow_spmd_sharding_propagation_to_parameters();
  return RequestedOptions{.num_replicas = build.num_replicas(),
                          .num_partitions = build.num_partitions(),
                          .spmd = build.use_spmd_partitioning(),
                          .auto_spmd = build.use_auto_spmd_partitioning(),
                          .open_results = {results.begin(), results.end()},
                          .open_parameters = {parameters.begin(), parameters.end()}};
}

absl::StatusOr<std::string> DumpingOptions(absl::string_view requested,
                                           absl::string_view dump_folder) {
  SHARDCALL_ASSIGN_OR_RETURN(auto options,
                             Parse<CompileOptionsProto>(requested, "CompileOptionsProto"));
  // XLA:CPU compiles several partitions only with SPMD, so it stops right after the dump.
  options.mutable_executable_build_options()->set_use_spmd_partitioning(false);
  SetText(&options, "xla_dump_to", std::string(dump_folder));
  SetText(&options, "xla_dump_hlo_module_re", ".*");
  SetFlag(&options, "xla_dump_hlo_as_proto");
  return Bytes(options);
}

absl::StatusOr<std::string> EarlyExitOptions(absl::string_view requested) {
  SHARDCALL_ASSIGN_OR_RETURN(auto options,
                             Parse<CompileOptionsProto>(requested, "CompileOptionsProto"));
  options.mutable_executable_build_options()->set_use_spmd_partitioning(false);
  SetFlag(&options, "xla_early_exit_with_layouts");
  SetFlag(&options, "xla_disable_all_hlo_passes");
  return Bytes(options);
}

std::string PlainOptions(int64_t num_partitions, bool shardy, bool spmd) {
  CompileOptionsProto options;
  std::vector<int64_t> ids;
  for (int64_t d = 0; d < num_partitions; ++d) ids.push_back(d);
  SetDevices(options.mutable_executable_build_options(), ids);
  options.mutable_executable_build_options()->set_use_shardy_partitioner(shardy);
  options.mutable_executable_build_options()->set_use_spmd_partitioning(spmd);
  return Bytes(options);
}

absl::StatusOr<std::string> ReplacedOptions(absl::string_view requested, absl::string_view module) {
  SHARDCALL_ASSIGN_OR_RETURN(auto options,
                             Parse<CompileOptionsProto>(requested, "CompileOptionsProto"));
  SHARDCALL_ASSIGN_OR_RETURN(const auto layouts,
                             Parse<pjrt_pb::HloModuleParts>(module, "HloModuleProto"));
  pjrt_pb::ExecutableBuildOptionsProto* build = options.mutable_executable_build_options();
  build->set_use_spmd_partitioning(true);
  build->set_use_shardy_partitioner(false);
  build->clear_allow_spmd_sharding_propagation_to_output();
  build->clear_allow_spmd_sharding_propagation_to_parameters();
  // The list replaces the framework's own, and any earlier one.
  std::string disabled;
  const auto& overrides = options.env_option_overrides();
  if (const auto given = overrides.find(kDisabledPasses); given != overrides.end()) {
    disabled = absl::StrCat(given->second.string_field(), ",");
  } else {
    for (const std::string& pass : build->debug_options().xla_disable_hlo_passes()) {
      absl::StrAppend(&disabled, pass, ",");
    }
  }
  SetText(&options, kDisabledPasses, absl::StrCat(disabled, kShardingPasses));
  options.clear_argument_layouts();
  for (const std::string& shape : layouts.host_program_shape().parameters()) {
    options.add_argument_layouts(shape);
  }
  build->set_result_layout(layouts.host_program_shape().result());
  return Bytes(options);
}

absl::StatusOr<std::string> HeldModule(absl::string_view holder) {
  SHARDCALL_ASSIGN_OR_RETURN(auto held, Parse<pjrt_pb::HoldsModule>(holder, "HLO module"));
  return std::move(*held.mutable_hlo_module());
}

absl::StatusOr<std::string> WithoutDevices(absl::string_view module) {
  SHARDCALL_ASSIGN_OR_RETURN(auto parts, Parse<pjrt_pb::HloModuleParts>(module, "HloModuleProto"));
  parts.clear_device_assignment();
  return Bytes(parts);
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
