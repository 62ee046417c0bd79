// SPDX-License-Identifier: Apache-2.0
// Turns an HLO module into a per-device SPMD module: import, propagate, plan, localize, clean up.
// The result of each stage is kept, for explaining and running.
//
//   auto module = ParseModule(text, context, "x.hlo", &targets);
//   auto result = Partition(*std::move(module), {.targets = &targets});
//   std::string local = PrintModule(result->local.module);
//
// Threads may partition at once, each with a module and a Context of its own; the registry in the
// options may be shared. A PartitionedProgram does not change: threads may run it at once
// (run.h), but a module of it, whose Context is not locked, is used by one thread at a time.
#ifndef SHARDCALL_PARTITIONER_API_PARTITION_H_
#define SHARDCALL_PARTITIONER_API_PARTITION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/propagation/propagation.h"
#include "shardcall/partitioner/spmd/localize/localize.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct PartitionOptions {
  int64_t num_partitions = 0;                     // 0: what the module says
  bool propagate = true;                          // false: unannotated values are replicated
  const TargetRegistry* targets = nullptr;        // not owned; required
  std::vector<std::string> allow_replicate = {};  // targets that may be gathered, or "all"
  SpmdOptions spmd = {};
  // Which of two factors takes an axis that both want; none: what leads to the cheapest plan.
  std::optional<ConflictOrder> conflicts = std::nullopt;
  // Open parameters and results are sharded as arrays of frameworks can be: see even_edges.h.
  bool even_edges = false;
  bool verify_output = true;  // run the verifier over the result
  // Called with the name and the text of each stage: "import", "propagate",
  // "plan", "localize", and one per clean-up pass.
  std::function<void(absl::string_view stage, const std::string& text)> dump = {};
  // Called as each of "import", "propagate", "plan", "localize" and "clean-up"
  // ends; for measuring.
  std::function<void(absl::string_view stage)> observe = {};
};

// Microseconds.
struct StageTimes {
  double parse = 0, import = 0, propagate = 0, partition = 0, cleanup = 0, print = 0;
};

// An order of conflicts that was tried, alone or with choices for some ops, and what its plan costs
// (Plan::bytes, Plan::seconds).
struct TriedOrder {
  ConflictOrder order;
  double bytes, seconds;
  std::vector<ConflictChoice> choices = {};
  bool taken = false;
};

struct PartitionedProgram;

// The program up to propagation.
struct PropagatedProgram {
  PropagatedProgram(Program p, PropagationResult r)
      : program(std::move(p)), shardings(std::move(r)) {}
  Program program;
  PropagationResult shardings;
  std::unique_ptr<RuleTable> rules;
  // The orders of conflicts with different results, if several were tried, and the plan of the one
  // that was taken.
  std::vector<TriedOrder> tried_orders;
  std::optional<Plan> plan;
  // The per-device program of that plan, if the choice needed it; without `global`.
  std::shared_ptr<PartitionedProgram> local;
  StageTimes times;
};
// On the heap, since the rule table refers to the program.
absl::StatusOr<std::unique_ptr<PropagatedProgram>> PropagateShardings(
    Module module, const PartitionOptions& options);

struct PartitionedProgram {
  explicit PartitionedProgram(LocalProgram l) : local(std::move(l)) {}
  std::unique_ptr<PropagatedProgram> global;
  Plan plan;
  LocalProgram local;
  StageTimes times;
  int64_t instructions_in = 0;  // of the input module
};
absl::StatusOr<std::unique_ptr<PartitionedProgram>> Partition(Module module,
                                                              const PartitionOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_PARTITION_H_
