// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/partition.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/cheapest_propagation.h"
#include "shardcall/partitioner/api/device_memory.h"
#include "shardcall/partitioner/api/report.h"
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
#include "shardcall/partitioner/runtime/sample/reduces_by_parts.h"
#include "shardcall/partitioner/spmd/localize/backend_limits.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/states/cheaper_states.h"
#include "shardcall/partitioner/spmd/states/common_copies.h"
#include "shardcall/partitioner/spmd/states/narrowed_results.h"
#include "shardcall/sharding/base/human_bytes.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/stop.h"
#include "shardcall/sharding/reshard/links.h"

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
    return std::max(plan.invariant_bytes,
                    RoomForLoops(EstimatePeakMemory(m), options.spmd.max_memory));
  }));
  passes.push_back(MakeComposedPermutes());
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

// Assigns missing names, as printing would, so that a stage's printed text, when it is read again,
// has the same names as the program.
void NameAll(Module* module) {
  for (int k = 0; k < module->num_instructions(); ++k) {
    if (!module->instr(InstrId(k)).name.empty()) continue;
    AssignNames(module);
    return;
  }
}

// The per-device program of `global`, whose plan is `known`, if any, or made.
absl::StatusOr<std::unique_ptr<PartitionedProgram>> MakeLocal(PropagatedProgram& global,
                                                              std::optional<Plan> known,
                                                              const PartitionOptions& options,
                                                              StageTimes* times) {
  absl::StatusOr<Plan> plan = absl::UnknownError("");
  absl::StatusOr<LocalProgram> local = absl::UnknownError("");
  {
    StageTimer timer(&times->partition);
    plan = known.has_value()
               ? *std::move(known)
               : MakeNarrowPlan(global.program, global.shardings, *global.rules, options.spmd);
    SHARDCALL_RETURN_IF_ERROR(plan.status());
    Observe(options, "plan");
    local = Localize(global.program, *plan, *global.rules, options.spmd);
    SHARDCALL_RETURN_IF_ERROR(local.status());
    Observe(options, "localize");
  }
  if (options.dump) {
    options.dump("plan", plan->ToString(global.program));
    options.dump("localize", PrintModule(local->module));
  }
  auto out = std::make_unique<PartitionedProgram>(*std::move(local));
  {
    StageTimer timer(&times->cleanup);
    SHARDCALL_RETURN_IF_ERROR(CleanUp(*plan, &out->local, options));
    SHARDCALL_RETURN_IF_ERROR(CheckCollectives(out->local.module, options.spmd.cost.backend,
                                               global.program.num_partitions));
    Observe(options, "clean-up");
  }
  out->plan = *std::move(plan);
  return out;
}

// Whether these shardings are of that order of conflicts.
bool IsOf(const TriedOrder& order, const PropagationResult& shardings) {
  return order.order == shardings.conflicts &&
         absl::c_equal(order.choices, shardings.choices, [](const auto& a, const auto& b) {
           return a.op == b.op && a.order == b.order;
         });
}

// Of one execution of `local`, whose plan is `plan`: what its collectives send and take, after all
// clean-up, and what its ops take besides. A plan knows less of that: what is the same for
// several ops, or in all iterations of a loop, runs once.
ProgramCost CostOf(const Program& program, const Plan& plan, const LocalProgram& local,
                   const CostModel& cost) {
  ProgramCost out{.bytes = TotalBytesMoved(local)};
  for (const CollectiveRecord& r : local.collectives) {
    out.seconds += r.trip_count * cost.Seconds(r.traffic());
  }
  for (int n = 0; n < program.module.num_instructions(); ++n) {
    const OpPlan& op = plan.ops[n];
    if (op.kind != PlanKind::kRule || op.decision == nullptr || op.decision->strategy == nullptr) {
      continue;
    }
    const Instruction& instr = program.module.instr(InstrId(n));
    out.seconds +=
        plan.expected_runs[instr.computation.value] *
        StrategySeconds(*op.decision->strategy, cost, program.module, instr, *op.decision);
  }
  return out;
}

// Compares what was propagated and what was chosen by what their per-device programs send and take.
class FinalChoice {
 public:
  FinalChoice(const PartitionOptions& options, PropagatedProgram* global)
      : options_(options), quiet_(options), global_(*global) {
    quiet_.dump = nullptr;
    quiet_.observe = nullptr;
  }

  // `global` has what was chosen. It gets the cheapest of that and `propagated`, each with its
  // common copies and without.
  absl::Status Run(PlannedPropagation propagated) {
    const bool other_states = !global_.shardings.propagated.empty();
    Candidate chosen = Made({std::move(global_.shardings), std::move(global_.plan)});
    if (other_states && !chosen.of.shardings.common_copies.empty()) {
      Candidate without = WithoutCopies(chosen.of.shardings);
      if (!IsCheaper(chosen, without)) chosen = std::move(without);
    }
    Candidate before = Made(std::move(propagated));
    if (IsCheaper(chosen, before)) {
      PropagationResult& shardings = chosen.of.shardings;
      shardings.propagated_bytes = before.cost.bytes;
      shardings.propagated_seconds = before.cost.seconds;
      shardings.chosen_bytes = chosen.cost.bytes;
      shardings.chosen_seconds = chosen.cost.seconds;
      Take(std::move(chosen));
      return CheckStop();
    }
    if (other_states && before.local != nullptr) {
      Candidate copied = WithCopies(before.of);
      if (IsCheaper(copied, before)) before = std::move(copied);
    }
    Take(std::move(before));
    return CheckStop();
  }

 private:
  struct Candidate {
    PlannedPropagation of;
    std::unique_ptr<PartitionedProgram> local;  // null: there is none
    ProgramCost cost;
  };

  Candidate Made(PlannedPropagation of) {
    Candidate out{std::move(of)};
    if (!out.of.plan.has_value()) return out;
    absl::StatusOr<std::unique_ptr<PartitionedProgram>> local =
        MakeLocal(global_, out.of.plan, quiet_, &times_);
    if (!local.ok()) return out;
    out.local = *std::move(local);
    out.cost = CostOf(global_.program, out.local->plan, out.local->local, options_.spmd.cost);
    return out;
  }

  Candidate WithoutCopies(PropagationResult shardings) {
    shardings.common_copies.clear();
    absl::StatusOr<Plan> plan =
        MakeNarrowPlan(global_.program, shardings, *global_.rules, options_.spmd);
    if (!plan.ok()) return {};
    return Made({std::move(shardings), *std::move(plan)});
  }

  Candidate WithCopies(PlannedPropagation of) {
    PlanMemo memo;
    const absl::Status status = ChooseCommonCopies(global_.program, *global_.rules, options_.spmd,
                                                   memo, &of.shardings, &*of.plan);
    if (!status.ok() || of.shardings.common_copies.empty()) return {};
    return Made(std::move(of));
  }

  static bool IsCheaper(const Candidate& chosen, const Candidate& before) {
    if (chosen.local == nullptr || before.local == nullptr) return chosen.local != nullptr;
    return chosen.cost.seconds < (1 - kWorthwhileSaving) * before.cost.seconds &&
           BytesAreWorthIt(chosen.cost, before.cost);
  }

  void Take(Candidate taken) {
    global_.shardings = std::move(taken.of.shardings);
    global_.plan = std::move(taken.of.plan);
    global_.local = std::move(taken.local);
  }

  const PartitionOptions& options_;
  PartitionOptions quiet_;
  PropagatedProgram& global_;
  StageTimes times_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PropagatedProgram>> PropagateShardings(
    Module module, const PartitionOptions& options) {
  SHARDCALL_RETURN_IF_ERROR(CheckNotMovedFrom(module));
  SHARDCALL_RETURN_IF_ERROR(CheckCostModel(options.spmd.cost));
  if (options.num_partitions < 0) {
    return ToStatus({.code = "E163",
                     .message = "a program is for a number of devices",
                     .expected = "1 or more partitions, or 0 for as many as it says itself",
                     .found = absl::StrCat(options.num_partitions),
                     .fix = "Set num_partitions to the number of devices"});
  }
  // A program that does not say for how many devices it is may have meshes of several.
  const bool unsaid = !module.header.has_num_partitions && !HasManualRegion(module);
  if (options.num_partitions == 1 && (module.header.num_partitions != 1 || unsaid)) {
    SHARDCALL_RETURN_IF_ERROR(RemoveShardings(&module));
  }
  StageTimes times;
  {
    StageTimer timer(&times.import);
    SHARDCALL_ASSIGN_OR_RETURN(absl::optional<Module> expanded, ExpandCalls(module, kIsOp));
    if (expanded) module = *std::move(expanded);
  }
  NameAll(&module);
  ImportOptions import_options;
  import_options.num_partitions = options.num_partitions;
  import_options.plain_ops = true;
  absl::StatusOr<Program> program = absl::UnknownError("");
  {
    StageTimer timer(&times.import);
    program = ImportModule(std::move(module), import_options);
  }
  SHARDCALL_RETURN_IF_ERROR(program.status());
  NameAll(&program->module);
  Observe(options, "import");
  auto out = std::make_unique<PropagatedProgram>(*std::move(program), PropagationResult());
  SHARDCALL_RETURN_IF_ERROR(
      SetLinks(out->program.module.context(), options.spmd.cost, out->program.mesh));
  if (options.dump) options.dump("import", PrintModule(out->program.module));
  out->times = times;
  StageTimer timer(&out->times.propagate);
  out->rules = std::make_unique<RuleTable>(
      out->program, RuleOptions{options.targets, options.allow_replicate, ReducesByParts});
  std::optional<PlannedPropagation> propagated;
  do {
    if (options.conflicts.has_value()) {
      SHARDCALL_ASSIGN_OR_RETURN(
          out->shardings, Propagate(out->program, *out->rules,
                                    {options.propagate, options.spmd.cost, *options.conflicts}));
    } else {
      SHARDCALL_ASSIGN_OR_RETURN(CheapestResult found,
                                 CheapestPropagation(out->program, *out->rules, options));
      out->shardings = std::move(found.best.shardings);
      out->plan = std::move(found.best.plan);
      out->tried_orders = std::move(found.tried);
      propagated = std::move(found.propagated);
    }
    SHARDCALL_RETURN_IF_ERROR(out->rules->status());
  } while (options.even_edges && CloseUnevenParameters(out->shardings, &out->program));
  if (propagated.has_value()) {
    SHARDCALL_RETURN_IF_ERROR(FinalChoice(options, out.get()).Run(*std::move(propagated)));
  }
  for (TriedOrder& t : out->tried_orders) t.taken = IsOf(t, out->shardings);
  if (options.even_edges) EvenResults(out->program, &out->shardings);
  Observe(options, "propagate");
  return out;
}

namespace {

// The options with another bound on memory, which must not outlive them: what a caller observes
// by is not copied, as it may have a state of its own.
PartitionOptions WithMemoryBound(const PartitionOptions& options, int64_t bound) {
  PartitionOptions out = options;
  out.spmd.max_memory = bound;
  // Who gives the order of conflicts wants what is propagated in it.
  if (options.conflicts.has_value()) out.spmd.search = StateSearch::kNone;
  if (options.dump) {
    out.dump = [&options](absl::string_view stage, const std::string& text) {
      options.dump(stage, text);
    };
  }
  if (options.observe) {
    out.observe = [&options](absl::string_view stage) { options.observe(stage); };
  }
  return out;
}

// `out`, if it keeps the bound on memory, else a program that does: one whose loops take no more
// room than the bound leaves, or none, or one of another order of conflicts. If none does, E210
// with what the one that comes closest needs.
absl::StatusOr<std::unique_ptr<PartitionedProgram>> WithinMemoryBound(
    std::unique_ptr<PartitionedProgram> out, PropagatedProgram& global,
    const PartitionOptions& options, StageTimes* times) {
  const int64_t bound = options.spmd.max_memory;
  int64_t least = CountDeviceMemory(out->local.module).Peak();
  if (least <= bound) return out;
  global.shardings.common_copies.clear();  // whole values that live longer
  const PartitionOptions without_room = WithMemoryBound(options, 0);
  const auto keeps = [&](const PartitionOptions& with) -> absl::StatusOr<bool> {
    absl::StatusOr<std::unique_ptr<PartitionedProgram>> other =
        MakeLocal(global, std::nullopt, with, times);
    if (!other.ok()) {  // such as a reshard beyond its limit, which the first plan kept
      SHARDCALL_RETURN_IF_ERROR(CheckStop());
      return false;
    }
    const int64_t peak = CountDeviceMemory((*other)->local.module).Peak();
    if (peak < least) {
      least = peak;
      out = *std::move(other);
    }
    return least <= bound;
  };
  for (const PartitionOptions* with : {&options, &without_room}) {
    SHARDCALL_ASSIGN_OR_RETURN(const bool kept, keeps(*with));
    if (kept) return out;
  }
  // Other orders, and without shardings that were chosen for their time.
  const bool has_orders = !options.conflicts.has_value() &&
                          (!global.shardings.met.empty() || !global.shardings.propagated.empty());
  for (const ConflictOrder order : kConflictOrders) {
    if (!has_orders) break;
    SHARDCALL_ASSIGN_OR_RETURN(
        global.shardings,
        Propagate(global.program, *global.rules, {options.propagate, options.spmd.cost, order}));
    SHARDCALL_ASSIGN_OR_RETURN(const bool kept, keeps(without_room));
    if (kept) return out;
  }
  return ToStatus(
      {.code = "E210",
       .message = "the program needs more memory on a device than it may",
       .expected = absl::StrCat("at most ", HumanBytes(bound)),
       .found = DescribePeak(out->local.module),
       .fix = "Shard more of what is held then, raise --max-memory, or use more devices"},
      absl::StatusCode::kResourceExhausted);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PartitionedProgram>> Partition(Module module,
                                                              const PartitionOptions& options) {
  const int64_t instructions_in = module.num_instructions();
  // What keeps the bound on memory anyway is as it would be without one.
  const PartitionOptions unbound = WithMemoryBound(options, INT64_MAX);
  SHARDCALL_ASSIGN_OR_RETURN(std::unique_ptr<PropagatedProgram> global,
                             PropagateShardings(std::move(module), unbound));
  StageTimes times = global->times;
  std::unique_ptr<PartitionedProgram> out;
  if (global->local != nullptr && !options.dump) {
    out = std::make_unique<PartitionedProgram>(std::move(*global->local));
    for (const char* stage : {"plan", "localize", "clean-up"}) Observe(unbound, stage);
  } else {
    SHARDCALL_ASSIGN_OR_RETURN(
        out, MakeLocal(*global, std::exchange(global->plan, std::nullopt), unbound, &times));
  }
  global->plan.reset();
  global->local.reset();
  if (options.spmd.max_memory < INT64_MAX) {
    SHARDCALL_ASSIGN_OR_RETURN(out, WithinMemoryBound(std::move(out), *global, options, &times));
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
  out->times = times;
  out->instructions_in = instructions_in;
  return out;
}

}  // namespace shardcall
