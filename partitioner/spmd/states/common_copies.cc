// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/states/common_copies.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "shardcall/partitioner/spmd/states/cheaper_states.h"
#include "shardcall/partitioner/spmd/states/narrowed_results.h"
#include "shardcall/partitioner/spmd/states/state_graph.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/stop.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

// visit(leaf, taken) for each operand of an op of the plan that is an array, sharded over the
// program's mesh, and no sum that is still to be added up; `taken` as the op takes it.
void ForEachOperand(const Program& program, absl::Span<const InstrId> order, const Plan& plan,
                    absl::FunctionRef<void(LeafId, const Sharding*)> visit) {
  for (const InstrId id : order) {
    const Decision* const d = plan.ops[id.value].decision;
    if (d == nullptr) continue;
    size_t flat = 0;
    for (const InstrId o : program.module.operands(id)) {
      for (int k = 0; k < program.module.instr(o).shape->num_leaves(); ++k, ++flat) {
        if (flat >= d->operands.size() || d->operands[flat] == nullptr) continue;
        const LeafId leaf = program.leaves.canonical(o, k);
        const Sharding* const stored = plan.state[leaf.value];
        if (stored == nullptr || stored->mesh() != program.mesh) continue;
        if (stored->HasShardedDim() && stored->partial().empty()) visit(leaf, d->operands[flat]);
      }
    }
  }
}

int OpsWithRules(const Program& program, RuleTable& rules) {
  int ops = 0;
  for (int i = 0; i < program.module.num_instructions(); ++i) {
    const InstrId id(static_cast<uint32_t>(i));
    ops += program.annotation[i] == AnnotationKind::kNone && rules.op_class(id) == OpClass::kRule;
  }
  return ops;
}

}  // namespace

bool TriesCommonCopies(const Program& program, RuleTable& rules, const SpmdOptions& options) {
  constexpr int kMostOps = 250;
  if (program.num_partitions == 1 || options.search == StateSearch::kNone) return false;
  return options.search == StateSearch::kAll || OpsWithRules(program, rules) <= kMostOps;
}

std::vector<CommonCopy> CopiesMadeBy(const Program& program, absl::Span<const InstrId> order,
                                     const Plan& plan) {
  std::vector<CommonCopy> out;
  absl::flat_hash_map<LeafId, size_t> at;
  ForEachOperand(program, order, plan, [&](LeafId leaf, const Sharding* taken) {
    if (taken == plan.state[leaf.value] || !taken->partial().empty()) return;
    const auto [known, is_new] = at.try_emplace(leaf, out.size());
    if (is_new) {
      out.emplace_back(leaf, taken);
      return;
    }
    const Shape* const shape = program.LeafShape(leaf);
    const Sharding*& most = out[known->second].second;
    if (LocalBytes(shape, *taken) > LocalBytes(shape, *most)) most = taken;
  });
  return out;
}

std::vector<CommonCopy> CopiesOfAll(const Program& program, absl::Span<const InstrId> order,
                                    const Plan& plan) {
  std::vector<CommonCopy> out;
  absl::flat_hash_map<LeafId, int> readers;
  ForEachOperand(program, order, plan, [&](LeafId leaf, const Sharding*) {
    if (++readers[leaf] != 2) return;
    const Sharding& stored = *plan.state[leaf.value];
    out.emplace_back(leaf, ReplicatedSharding(program.module.context(), stored.mesh(),
                                              stored.rank(), stored.manual()));
  });
  return out;
}

absl::Status ChooseCommonCopies(const Program& program, RuleTable& rules,
                                const SpmdOptions& options, PlanMemo& memo,
                                PropagationResult* propagation, Plan* plan) {
  constexpr int kFewOps = 40;
  if (!TriesCommonCopies(program, rules, options)) return absl::OkStatus();
  const double bytes = plan->bytes, seconds = plan->seconds;
  const size_t fallbacks = plan->fallbacks.size();
  const auto attempt = [&](absl::Span<const CommonCopy> more) -> absl::Status {
    PropagationResult result = *propagation;
    result.common_copies.insert(more.begin(), more.end());
    absl::StatusOr<Plan> made = MakeNarrowPlan(program, result, rules, options, &memo);
    if (!made.ok()) return CheckStop();
    const bool slower =
        made->seconds >= std::min(plan->seconds * (1 - 1e-9), (1 - kWorthwhileSaving) * seconds);
    const bool dearer = made->bytes > bytes && made->seconds > kTimeForBytes * seconds;
    if (slower || dearer || made->fallbacks.size() > fallbacks) return absl::OkStatus();
    *propagation = std::move(result);
    *plan = *std::move(made);
    return absl::OkStatus();
  };
  const Module& module = program.module;
  const std::vector<InstrId> order =
      InCanonicalOrder(module, PartitionedComputations(program, ComputationPostOrder(module)));
  const std::vector<CommonCopy> known = CopiesMadeBy(program, order, *plan);
  if (!known.empty()) SHARDCALL_RETURN_IF_ERROR(attempt(known));
  if (OpsWithRules(program, rules) > kFewOps) return absl::OkStatus();
  for (const CommonCopy& copy : CopiesOfAll(program, order, *plan)) {
    SHARDCALL_RETURN_IF_ERROR(attempt(absl::MakeConstSpan(&copy, 1)));
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
