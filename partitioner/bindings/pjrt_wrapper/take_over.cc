// SPDX-License-Identifier: Apache-2.0
#include "partitioner/bindings/pjrt_wrapper/take_over.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/ffi/platform.h"
#include "partitioner/api/lower_calls.h"
#include "partitioner/bindings/pjrt/compile_options.h"
#include "partitioner/bindings/pjrt/pjrt_handlers.h"
#include "partitioner/ir/proto/hlo_proto.h"
#include "partitioner/ir/verifier.h"
#include "sharding/convert.h"
#include "sharding/status.h"

namespace shardcall::pjrt {
namespace {

constexpr char kName[] = "the framework's program";

// Why XLA is left to compile the program as it is; empty if it is taken over.
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

// What the shards make up together, as a framework reads it.
absl::StatusOr<HloSharding> Held(const LocalState* state) {
  if (state == nullptr) return HloSharding();  // a token
  return ToHloShardingOrV3(*state->sharding);
}

absl::Status SetHeldShardings(const LocalProgram& local, ProtoOptions* proto) {
  for (const LocalState* state : local.parameters) {
    SHARDCALL_ASSIGN_OR_RETURN(HloSharding held, Held(state));
    proto->parameter_shardings.push_back(std::move(held));
  }
  HloSharding results;
  results.kind = HloSharding::Kind::kTuple;
  for (const LocalState* state : local.outputs) {
    SHARDCALL_ASSIGN_OR_RETURN(HloSharding held, Held(state));
    results.tuple.push_back(std::move(held));
  }
  const Module& m = local.module;
  const bool tuple = m.instr(m.comp(m.entry()).root).shape->IsTuple();
  proto->result_sharding = tuple ? std::move(results) : std::move(results.tuple.at(0));
  return absl::OkStatus();
}

absl::StatusOr<Module> ReadProgram(absl::string_view hlo, const RequestedOptions& options) {
  SHARDCALL_ASSIGN_OR_RETURN(Module module,
                             ReadModuleProto(hlo, std::make_shared<Context>(), kName));
  ModuleHeader& header = module.header;
  header.replica_count = 1;
  header.num_partitions = options.num_partitions;
  header.has_num_partitions = true;
  if (!options.open_results.empty()) header.propagate_to_output = options.open_results;
  if (!options.open_parameters.empty()) header.propagate_to_parameters = options.open_parameters;
  SHARDCALL_RETURN_IF_ERROR(VerifyModule(module, header.name));
  return module;
}

// Closes those of the open values that are sharded unevenly; whether there are any.
// Frameworks have no arrays of uneven shards, so that such a value stays whole.
bool CloseUneven(absl::Span<const Shape* const> shapes, absl::Span<const LocalState* const> states,
                 std::vector<bool>* open) {
  if (open->size() == 1) open->resize(shapes.size(), open->front());
  bool found = false;
  for (size_t k = 0; k < shapes.size() && k < open->size(); ++k) {
    if (!(*open)[k] || states[k] == nullptr || !shapes[k]->IsArray()) continue;
    const Sharding& s = *states[k]->sharding;
    for (int d = 0; d < shapes[k]->rank() && !s.is_maximal(); ++d) {
      if (shapes[k]->dim(d) % AxesSize(s.dim(d)) == 0) continue;
      (*open)[k] = false;
      found = true;
      break;
    }
  }
  return found;
}

absl::StatusOr<std::unique_ptr<PartitionedProgram>> PartitionHlo(absl::string_view hlo,
                                                                 RequestedOptions options,
                                                                 const TakeOverContext& context) {
  PartitionOptions partition;
  partition.num_partitions = options.num_partitions;
  partition.targets = &context.registry->rules;
  partition.allow_replicate = context.allow_replicate;
  SHARDCALL_ASSIGN_OR_RETURN(const std::string platform, PlatformFromName(context.platform));
  while (true) {  // closes at least one value each time
    SHARDCALL_ASSIGN_OR_RETURN(Module module, ReadProgram(hlo, options));
    SHARDCALL_ASSIGN_OR_RETURN(module, LowerCalls(std::move(module), context.registry->lowerings,
                                                  platform));
    SHARDCALL_ASSIGN_OR_RETURN(std::unique_ptr<PartitionedProgram> program,
                               Partition(std::move(module), partition));
    const LocalProgram& local = program->local;
    const bool results = CloseUneven(local.output_shapes, local.outputs, &options.open_results);
    const bool parameters =
        CloseUneven(local.parameter_shapes, local.parameters, &options.open_parameters);
    if (!results && !parameters) return program;
  }
}

}  // namespace

absl::StatusOr<absl::variant<PassedThrough, Replacement>> TakeOver(
    const FrameworkProgram& program, const TakeOverContext& context) {
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
  SHARDCALL_ASSIGN_OR_RETURN(out.program, PartitionHlo(hlo, options, context));
  const LocalProgram& local = out.program->local;
  ProtoOptions proto;
  proto.list_groups = context.plugin->minor_version() < abi::kIotaGroupsMinorVersion;
  SHARDCALL_RETURN_IF_ERROR(SetHeldShardings(local, &proto));
  SHARDCALL_ASSIGN_OR_RETURN(
      proto.typed_calls,
      RegisterHandlers(*context.plugin, context.platform, local.module,
                       static_cast<int>(options.num_partitions), context.registry->handlers,
                       context.framework_handlers));
  SHARDCALL_ASSIGN_OR_RETURN(out.code, WriteModuleProto(local.module, ProtoForm::kModule, proto));
  SHARDCALL_ASSIGN_OR_RETURN(out.options, ReplacedOptions(program.options, out.code));
  return absl::variant<PassedThrough, Replacement>(std::move(out));
}

}  // namespace shardcall::pjrt
