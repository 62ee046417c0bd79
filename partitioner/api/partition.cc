// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/partition.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/cheapest_propagation.h"
#include "shardcall/partitioner/api/device_memory.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/import/export.h"
#include "shardcall/partitioner/import/import.h"
#include "shardcall/partitioner/ir/analysis/trip_count.h"
#include "shardcall/partitioner/ir/build/expanded_calls.h"
#include "shardcall/partitioner/ir/moved_from.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/pass/pass.h"
#include "shardcall/partitioner/propagation/even_edges.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/reshard/hosts.h"

namespace shardcall {
namespace {

// Adds the duration of its scope to `*us`.
class StageTimer {
 public:
  explicit StageTimer(double* us) : us_(us), start_(std::chrono::steady_clock::now()) {}
  ~StageTimer() {
    *us_ += std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start_)
                .count();
  }

 private:
  double* us_;
  std::chrono::steady_clock::time_point start_;
};

void Observe(const PartitionOptions& options, absl::string_view stage) {
  if (options.observe) options.observe(stage);
}

// Which collectives are left, where they are, and how often they run, after passes over them.
void FollowCollectives(const PassResult& done, double trip_count, LocalProgram* local) {
  std::vector<CollectiveRecord> live;
  std::vector<double> runs;  // by computation
  for (CollectiveRecord r : local->collectives) {
    r.local = done.moved_to[r.local.value];
    if (!r.local.valid()) continue;
    const CompId stayed = done.comp_moved_to[r.computation.value];
    r.computation = local->module.instr(r.local).computation;
    if (r.computation != stayed) {
      if (runs.empty()) {
        runs = RunsByComputation(local->module, ComputationPostOrder(local->module), trip_count);
      }
      r.trip_count = runs[r.computation.value];
    }
    live.push_back(r);
  }
  local->collectives = std::move(live);
}

absl::Status CleanUp(const Plan& plan, LocalProgram* local, const PartitionOptions& options) {
  std::vector<std::unique_ptr<Pass>> passes;
  // What the plan took for done before loops, and what else there is room for.
  passes.push_back(MakeLoopInvariants([&](const Module& m) {
    return std::max(plan.invariant_bytes, RoomForLoops(CountDeviceMemory(m).Peak()));
  }));
  passes.push_back(MakeSharedPermutes());
  passes.push_back(MakeDeadCodeElimination());
  passes.push_back(MakeTransposedProducts());
  passes.push_back(MakeExplicitStarts());
  passes.push_back(MakeRowMajorResults());
  passes.push_back(MakeSeparateInits());
  passes.push_back(MakeKeptOperands());
  PipelineOptions pipeline;
  if (options.dump) {
    pipeline.dump = [&](absl::string_view name, const Module& m) {
      options.dump(name, PrintModule(m));
    };
  }
  SHARDCALL_ASSIGN_OR_RETURN(PassResult done,
                             RunPipeline(std::move(local->module), passes, pipeline));
  local->module = std::move(done.module);
  FollowCollectives(done, options.spmd.cost.trip_count, local);
  AssignNames(&local->module);
  return absl::OkStatus();
}

}  // namespace

namespace {

// For one device: drops the sharding annotations of the program.
absl::Status RemoveShardings(Module* module) {
  if (HasManualRegion(*module)) {
    Diagnostic d;
    d.code = "E052";
    d.message = "a program with manual regions runs over its own devices only";
    d.expected = absl::StrCat("--num-partitions=", module->header.num_partitions);
    d.found = "--num-partitions=1";
    d.fix = "leave --num-partitions out";
    return ToStatus(d);
  }
  Context& context = module->context();
  module->header.num_partitions = 1;
  module->header.frontend = WithoutSdy(context, module->header.frontend);
  for (int k = 0; k < module->num_instructions(); ++k) {
    Instruction& i = module->mutable_instr(InstrId(k));
    i.sharding = nullptr;
    i.frontend = WithoutSdy(context, i.frontend);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PropagatedProgram>> PropagateShardings(
    Module module, const PartitionOptions& options) {
  SHARDCALL_RETURN_IF_ERROR(CheckNotMovedFrom(module));
  // A program that does not say for how many devices it is may have meshes of several.
  const bool unsaid = !module.header.has_num_partitions && !HasManualRegion(module);
  if (options.num_partitions == 1 && (module.header.num_partitions != 1 || unsaid)) {
    SHARDCALL_RETURN_IF_ERROR(RemoveShardings(&module));
  }
  SHARDCALL_ASSIGN_OR_RETURN(absl::optional<Module> expanded, ExpandCalls(module, kIsOp));
  if (expanded) module = *std::move(expanded);
  // Assign missing names now, as printing would, so that a stage's printed text, when it is read
  // again, has the same names as the program.
  for (int k = 0; k < module.num_instructions(); ++k) {
    if (!module.instr(InstrId(k)).name.empty()) continue;
    AssignNames(&module);
    break;
  }
  StageTimes times;
  ImportOptions import_options;
  import_options.num_partitions = options.num_partitions;
  absl::StatusOr<Program> program = absl::UnknownError("");
  {
    StageTimer timer(&times.import);
    program = ImportModule(std::move(module), import_options);
  }
  SHARDCALL_RETURN_IF_ERROR(program.status());
  Observe(options, "import");
  auto out = std::make_unique<PropagatedProgram>(*std::move(program), PropagationResult());
  SetHosts(out->program.module.context(), options.spmd.cost);
  if (options.dump) options.dump("import", PrintModule(out->program.module));
  out->times = times;
  StageTimer timer(&out->times.propagate);
  out->rules = std::make_unique<RuleTable>(out->program,
                                           RuleOptions{options.targets, options.allow_replicate});
  do {
    SHARDCALL_ASSIGN_OR_RETURN(
        out->shardings, options.conflicts.has_value()
                            ? Propagate(out->program, *out->rules,
                                        {options.propagate, options.spmd.cost, *options.conflicts})
                            : CheapestPropagation(out->program, *out->rules, options,
                                                  &out->tried_orders, &out->plan));
    SHARDCALL_RETURN_IF_ERROR(out->rules->status());
  } while (options.even_edges && CloseUnevenParameters(out->shardings, &out->program));
  if (options.even_edges) EvenResults(out->program, &out->shardings);
  Observe(options, "propagate");
  return out;
}

absl::StatusOr<std::unique_ptr<PartitionedProgram>> Partition(Module module,
                                                              const PartitionOptions& options) {
  const int64_t instructions_in = module.num_instructions();
  SHARDCALL_ASSIGN_OR_RETURN(std::unique_ptr<PropagatedProgram> global,
                             PropagateShardings(std::move(module), options));
  StageTimes times = global->times;
  absl::StatusOr<Plan> plan = absl::UnknownError("");
  absl::StatusOr<LocalProgram> local = absl::UnknownError("");
  {
    StageTimer timer(&times.partition);
    plan = global->plan.has_value()
               ? *std::exchange(global->plan, std::nullopt)
               : MakePlan(global->program, global->shardings, *global->rules, options.spmd);
    SHARDCALL_RETURN_IF_ERROR(plan.status());
    Observe(options, "plan");
    local = Localize(global->program, *plan, *global->rules, options.spmd);
    SHARDCALL_RETURN_IF_ERROR(local.status());
    Observe(options, "localize");
  }
  if (options.dump) {
    options.dump("plan", plan->ToString(global->program));
    options.dump("localize", PrintModule(local->module));
  }
  auto out = std::make_unique<PartitionedProgram>(*std::move(local));
  {
    StageTimer timer(&times.cleanup);
    SHARDCALL_RETURN_IF_ERROR(CleanUp(*plan, &out->local, options));
    Observe(options, "clean-up");
  }
  if (options.verify_output) {
    const absl::Status status = VerifyModule(out->local.module, "partitioned module");
    if (!status.ok()) {
      // The caller may have passed an invalid module without verifying it.
      SHARDCALL_RETURN_IF_ERROR(VerifyModule(global->program.module, "the given module"));
      return absl::InternalError(
          absl::StrCat("the partitioned module does not verify, which is a bug of shardcall: ",
                       std::string(status.message())));
    }
  }
  out->global = std::move(global);
  out->plan = *std::move(plan);
  out->times = times;
  out->instructions_in = instructions_in;
  return out;
}

}  // namespace shardcall
