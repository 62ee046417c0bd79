// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/lower/lower.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/build/expanded_calls.h"
#include "shardcall/partitioner/ir/moved_from.h"
#include "shardcall/partitioner/runtime/lower/dynamic_sizes.h"
#include "shardcall/partitioner/runtime/lower/lower_computation.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int kMaxCallDepth = 400;  // frames on a device's stack

// Computations that run as lists of steps; bodies of reduce, sort and the like
// do not.
absl::InlinedVector<CompId, 2> FrameCallees(const Module& m, const Instruction& i) {
  // A custom call's handler may call them.
  if (!RunsComputations(i.opcode)) return {};
  return CalledComputations(m, i);
}

// Marks the computations to lower, and limits the depth of calls.
absl::Status Survey(const Module& m, std::vector<bool>* needed) {
  const std::vector<CompId> order = ComputationPostOrder(m);
  std::vector<int> depth(m.num_computations(), 1);
  for (CompId comp : order) {
    for (InstrId id : m.comp(comp).instructions) {
      const Instruction& i = m.instr(id);
      for (CompId callee : FrameCallees(m, i)) {
        if (!callee.valid()) continue;
        depth[comp.value] = std::max(depth[comp.value], depth[callee.value] + 1);
      }
    }
    if (depth[comp.value] > kMaxCallDepth) {
      return ToStatus({.code = "E311",
                       .message = "computations call each other too deeply to be run",
                       .where = std::string(m.comp(comp).name),
                       .expected = absl::StrCat("at most ", kMaxCallDepth, " levels"),
                       .fix = "Inline some of the calls"});
    }
  }
  (*needed)[m.entry().value] = true;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {  // callers before callees
    if (!(*needed)[it->value]) continue;
    for (InstrId id : m.comp(*it).instructions) {
      for (CompId callee : FrameCallees(m, m.instr(id))) {
        if (callee.valid()) (*needed)[callee.value] = true;
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const DeviceProgram>> Lower(const Module& module,
                                                           const LowerOptions& options) {
  SHARDCALL_RETURN_IF_ERROR(CheckNotMovedFrom(module));
  if (!module.entry().valid()) {
    return ToStatus({.code = "E311",
                     .message = "the module has no entry computation",
                     .fix = "Mark a computation as ENTRY"});
  }
  if (module.header.replica_count > 1) {
    return ToStatus({.code = "E312",
                     .message = "programs with several replicas cannot be run",
                     .expected = "replica_count=1",
                     .found = absl::StrCat("replica_count=", module.header.replica_count),
                     .fix = "Make the replicas partitions: num_partitions"},
                    absl::StatusCode::kUnimplemented);
  }
  SHARDCALL_ASSIGN_OR_RETURN(const absl::optional<Module> expanded,
                             ExpandCalls(module, kIsOp | kRunsAsOps));
  const Module& m = expanded ? *expanded : module;
  if (!HasDynamicSizes(m)) return LowerAll(m, options);
  LowerOptions sized = options;
  sized.fuse = false;
  SHARDCALL_ASSIGN_OR_RETURN(sized.dynamic, DynamicSource::Create(m));
  return LowerAll(sized.dynamic->module(), sized);
}

absl::StatusOr<std::shared_ptr<const DeviceProgram>> LowerAll(const Module& module,
                                                              const LowerOptions& options) {
  std::vector<bool> needed(module.num_computations());
  SHARDCALL_RETURN_IF_ERROR(Survey(module, &needed));
  const Liveness live(module, EffectsAt::kRunning);

  auto program = std::make_shared<DeviceProgram>();
  program->name = module.header.name;
  program->num_partitions = module.header.num_partitions;
  program->entry = static_cast<int>(module.entry().value);
  program->computations.resize(module.num_computations());
  std::vector<uint32_t> position(module.num_instructions());
  int64_t inline_budget = 4 * static_cast<int64_t>(module.num_instructions()) + 10000;
  for (int c = 0; c < module.num_computations(); ++c) {
    if (!needed[c]) continue;
    SHARDCALL_RETURN_IF_ERROR(LowerComputation(module, options, CompId(c), live, &position,
                                               &inline_budget, program.get(),
                                               &program->computations[c]));
  }
  const Computation& entry = module.comp(module.entry());
  for (InstrId id : entry.parameters) {
    const Shape& shape = *module.instr(id).shape;
    for (int k = 0; k < shape.num_leaves(); ++k) {
      program->parameters.push_back(MakeLeafShape(*shape.leaf(k)));
    }
  }
  const Shape& result = *module.instr(entry.root).shape;
  for (int k = 0; k < result.num_leaves(); ++k) {
    program->results.push_back(MakeLeafShape(*result.leaf(k)));
  }
  return std::shared_ptr<const DeviceProgram>(std::move(program));
}

}  // namespace internal
}  // namespace shardcall
