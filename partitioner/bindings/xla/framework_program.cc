// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/xla/framework_program.h"

#include <utility>

#include "shardcall/kernels/ffi/platform.h"
#include "shardcall/partitioner/api/lower_calls.h"
#include "shardcall/partitioner/bindings/xla/inspect_sharding.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/not_converted.h"
#include "shardcall/partitioner/ir/stablehlo/reader.h"
#include "shardcall/partitioner/ir/stablehlo/stablehlo_input.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/convert/convert.h"

namespace shardcall {
namespace {

constexpr char kName[] = "the framework's program";

// The global sharding of a value, as frameworks read it.
absl::StatusOr<HloSharding> Held(const LocalState* state) {
  if (state == nullptr) return HloSharding();  // a token
  return ToHloShardingOrV3(*state->sharding);
}

absl::StatusOr<Module> ReadProgram(absl::string_view bytes, const FrameworkRequest& request) {
  auto context = std::make_shared<Context>();
  const bool stablehlo = LooksLikeStablehlo(bytes);
  SHARDCALL_ASSIGN_OR_RETURN(Module module,
                             stablehlo ? ReadStablehloBytecode(bytes, std::move(context))
                                       : ReadModuleProto(bytes, std::move(context), kName));
  ModuleHeader& header = module.header;
  header.replica_count = 1;
  header.num_partitions = request.num_partitions;
  header.has_num_partitions = true;
  SetOpen(request.open_parameters, request.open_results, &header);
  const absl::Status verified = VerifyModule(module, header.name);
  if (!verified.ok() && stablehlo) return StablehloNotConverted(verified.message());
  SHARDCALL_RETURN_IF_ERROR(verified);
  return module;
}

}  // namespace

void internal::SetOpen(const std::vector<bool>& parameters, const std::vector<bool>& results,
                       ModuleHeader* header) {
  if (!parameters.empty()) header->propagate_to_parameters = parameters;
  if (!results.empty()) header->propagate_to_output = results;
}

absl::StatusOr<std::unique_ptr<PartitionedProgram>> PartitionForFramework(
    absl::string_view bytes, const FrameworkRequest& request) {
  PartitionOptions partition;
  partition.num_partitions = request.num_partitions;
  partition.targets = &request.registry->rules;
  partition.allow_replicate = request.allow_replicate;
  partition.conflicts = request.conflicts;
  partition.spmd = request.spmd;
  partition.even_edges = true;
  SHARDCALL_ASSIGN_OR_RETURN(const std::string platform, PlatformFromName(request.platform));
  SHARDCALL_ASSIGN_OR_RETURN(Module module, ReadProgram(bytes, request));
  if (request.observe) request.observe(module);
  const InspectShardingCallbacksOf callbacks(module);  // for jax.debug
  SHARDCALL_ASSIGN_OR_RETURN(module,
                             LowerCalls(std::move(module), request.registry->lowerings, platform));
  return Partition(std::move(module), partition);
}

absl::StatusOr<HeldShardings> ShardingsHeld(const LocalProgram& local) {
  HeldShardings out;
  for (const LocalState* state : local.parameters) {
    SHARDCALL_ASSIGN_OR_RETURN(HloSharding held, Held(state));
    out.parameters.push_back(std::move(held));
  }
  out.result.kind = HloSharding::Kind::kTuple;
  for (const LocalState* state : local.outputs) {
    SHARDCALL_ASSIGN_OR_RETURN(HloSharding held, Held(state));
    out.result.tuple.push_back(std::move(held));
  }
  const Module& m = local.module;
  const bool tuple = m.instr(m.comp(m.entry()).root).shape->IsTuple();
  if (!tuple) {
    HloSharding only = std::move(out.result.tuple.at(0));
    out.result = std::move(only);
  }
  return out;
}

}  // namespace shardcall
