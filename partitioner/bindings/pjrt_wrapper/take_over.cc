// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt_wrapper/take_over.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/bindings/pjrt/compile_options.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_handlers.h"
#include "shardcall/partitioner/bindings/xla/framework_program.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

// The reason to let XLA compile the program unchanged; empty if shardcall partitions it.
absl::optional<std::string> WhyNot(const RequestedOptions& options, absl::string_view format) {
  if (options.num_partitions <= 1 && options.num_replicas <= 1) return "";
  if (options.num_replicas > 1) {
    return absl::StrCat("it has ", options.num_replicas, " replicas");
  }
  if (options.auto_spmd) return "XLA is to choose its shardings";
  if (!options.spmd) return "it is not to be partitioned";
  if (format != kMlirFormat && format != kHloFormat) {
    return absl::StrCat("it comes in the format \"", format, "\"");
  }
  return absl::nullopt;
}

}  // namespace

absl::StatusOr<absl::variant<PassedThrough, Replacement>> TakeOver(const FrameworkProgram& program,
                                                                   const TakeOverContext& context) {
  SHARDCALL_ASSIGN_OR_RETURN(const RequestedOptions options, ReadOptions(program.options));
  if (const absl::optional<std::string> why = WhyNot(options, program.format)) {
    return PassedThrough{*why};
  }
  std::string converted;
  if (program.format == kMlirFormat) {
    SHARDCALL_ASSIGN_OR_RETURN(converted, context.converter->ToHlo(program.code, program.options));
  }
  const absl::string_view hlo = program.format == kMlirFormat ? converted : program.code;
  Replacement out;
  SHARDCALL_ASSIGN_OR_RETURN(
      out.program, PartitionForFramework(hlo, {.num_partitions = options.num_partitions,
                                               .open_parameters = options.open_parameters,
                                               .open_results = options.open_results,
                                               .platform = context.platform,
                                               .registry = context.registry,
                                               .allow_replicate = context.allow_replicate}));
  const LocalProgram& local = out.program->local;
  ProtoOptions proto;
  proto.list_groups = context.plugin->minor_version() < abi::kIotaGroupsMinorVersion;
  SHARDCALL_ASSIGN_OR_RETURN(HeldShardings held, ShardingsHeld(local));
  proto.parameter_shardings = std::move(held.parameters);
  proto.result_sharding = std::move(held.result);
  SHARDCALL_ASSIGN_OR_RETURN(
      proto.typed_calls, RegisterHandlers(*context.plugin, context.platform, local.module,
                                          static_cast<int>(options.num_partitions),
                                          context.registry->handlers, context.framework_handlers));
  SHARDCALL_ASSIGN_OR_RETURN(out.code, WriteModuleProto(local.module, ProtoForm::kModule, proto));
  SHARDCALL_ASSIGN_OR_RETURN(out.options, ReplacedOptions(program.options, out.code));
  return absl::variant<PassedThrough, Replacement>(std::move(out));
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
