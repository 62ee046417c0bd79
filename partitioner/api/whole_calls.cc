// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/whole_calls.h"

#include <memory>
#include <utility>

#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/ir/build/embed.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

bool NeedsPartitioner(const Instruction& instr, const TargetRegistry& targets,
                      const HandlerRegistry* handlers) {
  if (instr.opcode != Opcode::kCustomCall || KnownTargetOf(instr) != KnownTarget::kNone) {
    return false;
  }
  const absl::string_view target = instr.as<CustomCallAttrs>().target;
  const TargetRule* const rule = targets.Find(target, instr.backend_config);
  if (rule == nullptr || rule->callbacks.partition == nullptr) return false;
  return handlers == nullptr || !handlers->FindForRun(target, instr.backend_config).ok();
}

}  // namespace

absl::StatusOr<absl::optional<Module>> WithWholeCalls(const Module& module,
                                                      const PartitionOptions& options,
                                                      const HandlerRegistry* handlers) {
  bool any = false;
  for (int k = 0; k < module.num_instructions() && !any; ++k) {
    any = NeedsPartitioner(module.instr(InstrId(k)), *options.targets, handlers);
  }
  if (!any || HasManualRegion(module)) return absl::optional<Module>();
  Module copy(module.shared_context());
  copy.header = module.header;
  // What JAX lowers has the number beside it. Partition drops shardings of a program for several.
  if (options.num_partitions > 1) copy.header.num_partitions = options.num_partitions;
  copy.set_entry(EmbedComputations(module, &copy));
  PartitionOptions one = options;
  one.num_partitions = 1;
  one.dump = nullptr;
  one.observe = nullptr;
  SHARDCALL_ASSIGN_OR_RETURN(const std::unique_ptr<PartitionedProgram> program,
                             Partition(std::move(copy), one));
  return absl::optional<Module>(std::move(program->local.module));
}

}  // namespace internal
}  // namespace shardcall
