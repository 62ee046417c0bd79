// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/states/narrowed_results.h"

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/spmd/plan/sources.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/sharding/reshard/reshard.h"
#include "shardcall/sharding/rule/factor_assignment.h"

namespace shardcall {
inline namespace internal {
namespace {

// Whether the op hands its operands to computations and takes its results from their roots.
bool HandsOver(PlanKind kind) {
  return kind == PlanKind::kWhile || kind == PlanKind::kConditional || kind == PlanKind::kCall;
}

class Narrowing {
 public:
  Narrowing(const Program& program, const CostModel& cost, Plan* plan)
      : program_(program),
        module_(program.module),
        leaves_(program.leaves),
        context_(program.module.context()),
        cost_(cost),
        plan_(*plan),
        read_(program.leaves.num_leaves()),
        uses_(program.module.num_instructions()),
        callers_(program.module.num_computations()) {}

  void Run() {
    const std::vector<CompId> order =
        PartitionedComputations(program_, ComputationPostOrder(module_));
    for (CompId comp : order) FindCallees(comp);
    for (CompId comp : order) {
      ReadRoot(comp);
      const auto& instructions = module_.comp(comp).instructions;
      for (auto id = instructions.rbegin(); id != instructions.rend(); ++id) Visit(*id);
    }
  }

 private:
  static constexpr double kWorthMoreCollectives = 0.9;
  // In which states a value is read: in none yet, in `state` and shards of it, or in others.
  struct Read {
    const Sharding* state = nullptr;
    bool otherwise = false;
  };
  struct Cost {
    double bytes = 0, seconds = 0;
    int collectives = 0;
  };

  // The roots of loops' bodies, of branches and of calls are read as their caller says. Counts
  // uses.
  void FindCallees(CompId comp) {
    for (InstrId id : module_.comp(comp).instructions) {
      for (InstrId o : module_.operands(id)) ++uses_[o.value];
      const PlanKind kind = plan_.ops[id.value].kind;
      if (!HandsOver(kind)) continue;
      const auto callees = CalledComputations(module_, module_.instr(id));
      for (size_t c = 0; c < callees.size(); ++c) {
        const bool condition = kind == PlanKind::kWhile && c == 1;
        if (!condition) callers_[callees[c].value].push_back(id);
      }
    }
  }

  void ReadRoot(CompId comp) {
    const InstrId root = module_.comp(comp).root;
    const int num_leaves = module_.instr(root).shape->num_leaves();
    if (comp == module_.entry()) {
      for (int k = 0; k < num_leaves; ++k) Note(root, k, plan_.outputs[k]);
      return;
    }
    for (const InstrId caller : callers_[comp.value]) {
      const Decision& d = *plan_.ops[caller.value].decision;
      for (int k = 0; k < num_leaves; ++k) Note(root, k, d.produced[k]);
    }
    const bool called = !callers_[comp.value].empty();
    for (int k = 0; !called && k < num_leaves; ++k) NoteOther(root, k);
  }

  void Visit(InstrId id) {
    const OpPlan& op = plan_.ops[id.value];
    if (op.kind == PlanKind::kDead || op.kind == PlanKind::kAlias) return;
    if (op.kind == PlanKind::kEqual) {
      const InstrId from = plan_.equal.at(id);
      for (int k = 0; k < module_.instr(id).shape->num_leaves(); ++k) NoteOther(from, k);
      return;
    }
    const bool annotation = op.kind == PlanKind::kIdentity;
    if (op.decision != nullptr && (annotation || op.kind == PlanKind::kRule)) Narrow(id);
    const bool known = annotation || op.kind == PlanKind::kRule || HandsOver(op.kind);
    const bool sources = ReadsSources(module_.instr(id).opcode);
    size_t flat = 0;
    for (const InstrId o : module_.operands(id)) {
      // An op that may read the operand's source in its place has been credited with its cost.
      if (const InstrId source = sources ? SourceOf(module_, o) : InstrId(); source.valid()) {
        NoteOther(source, 0);
        NoteOther(o, 0);
      }
      for (int k = 0; k < module_.instr(o).shape->num_leaves(); ++k, ++flat) {
        if (!known || op.decision == nullptr || flat >= op.decision->operands.size()) {
          NoteOther(o, k);
          continue;
        }
        Note(o, k, op.decision->operands[flat]);
        // What reads an annotated value may start from what its operand is stored as.
        if (annotation && !ReadWithin(id, static_cast<int>(flat))) NoteOther(o, k);
      }
    }
  }

  void NoteOther(InstrId id, int k) { read_[leaves_.canonical(id, k).value].otherwise = true; }
  void Note(InstrId id, int k, const Sharding* state) {
    Read& read = read_[leaves_.canonical(id, k).value];
    const Shape* const shape = module_.instr(id).shape->leaf(k);
    if (state == nullptr || !state->partial().empty()) {
      read.otherwise = true;
    } else if (read.state == nullptr || IsCut(shape, state, read.state)) {
      read.state = state;
    } else if (!IsCut(shape, read.state, state)) {
      read.otherwise = true;
    }
  }
  // Whether all that is read of a result are shards of the state it is stored in.
  bool ReadWithin(InstrId id, int k) const {
    const Read& read = read_[leaves_.canonical(id, k).value];
    const Sharding* const stored = plan_.ops[id.value].decision->final[k];
    return !read.otherwise && read.state != nullptr && stored != nullptr &&
           IsCut(module_.instr(id).shape->leaf(k), stored, read.state);
  }

  // Whether each device has its shard under `to` within that under `from`.
  bool IsCut(const Shape* shape, const Sharding* from, const Sharding* to) const {
    if (from == to) return true;
    if (from->mesh() != to->mesh() || from->manual() != to->manual()) return false;
    if (from->is_maximal() || to->is_maximal() || !from->partial().empty()) return false;
    for (int d = 0; d < from->rank(); ++d) {
      if (from->dim(d).size() > to->dim(d).size()) return false;
    }
    return PlanReshard(context_, shape, from, to).traffic().collectives == 0;
  }
  Cost CostOf(const Shape* shape, const Sharding* from, const Sharding* to) const {
    if (from == to || from == nullptr || to == nullptr) return {};
    const Traffic traffic = PlanReshard(context_, shape, from, to).traffic();
    return {traffic.bytes, traffic.collectives > 0 ? cost_.Seconds(traffic) : 0,
            traffic.collectives};
  }

  // Stores results that are read in smaller shards only as these.
  void Narrow(InstrId id) {
    const Instruction& instr = module_.instr(id);
    const bool annotation = plan_.ops[id.value].kind == PlanKind::kIdentity;
    for (int k = 0; k < instr.shape->num_leaves(); ++k) {
      const Decision& d = *plan_.ops[id.value].decision;
      const LeafId leaf = leaves_.canonical(id, k);
      const Sharding *const stored = d.final[k], *const read = read_[leaf.value].state;
      if (stored == nullptr || read == stored || !ReadWithin(id, k)) continue;
      if (plan_.common_copies.contains(leaf)) continue;
      const Sharding* const made =
          annotation ? plan_.state[leaves_.canonical(module_.operand(id, 0), k).value]
                     : d.produced[k];
      const Shape* const shape = instr.shape->leaf(k);
      if (!annotation && made == stored) {
        RunOnShards(id, read);
        continue;
      }
      const Cost before = CostOf(shape, made, stored), after = CostOf(shape, made, read);
      if (after.bytes > before.bytes || after.seconds > before.seconds) continue;
      const bool more = after.collectives > before.collectives;
      if (more && after.seconds > kWorthMoreCollectives * before.seconds) continue;
      if (annotation && after.seconds > 0 && MayHaveCopies(module_.operand(id, 0))) continue;
      if (!annotation && after.bytes == before.bytes && after.seconds == before.seconds) continue;
      Store(id, k, read, {after.bytes - before.bytes, after.seconds - before.seconds});
    }
  }

  // Lets an op that sends nothing compute no more of its result than `state`, if it has what that
  // needs of its operands.
  void RunOnShards(InstrId id, const Sharding* state) {
    OpPlan& op = plan_.ops[id.value];
    const Decision& d = *op.decision;
    const bool local = d.strategy == &kLocalStrategy && d.rule != nullptr && d.mesh == nullptr;
    if (!local || d.bytes != 0 || d.final.size() != 1) return;
    FactorAssignment assignment(*d.rule, program_.mesh, program_.manual_axes(id),
                                FactorsAllowedByRule(*d.rule));
    const int result = static_cast<int>(d.operands.size());
    assignment.Project(result, *state);
    assignment.Normalize();
    if (assignment.DimSharding(context_, result) != state) return;
    std::vector<const Sharding*> taken;
    size_t flat = 0;
    for (const InstrId o : module_.operands(id)) {
      for (int k = 0; k < module_.instr(o).shape->num_leaves(); ++k, ++flat) {
        const Sharding* const stored = plan_.state[leaves_.canonical(o, k).value];
        taken.push_back(d.operands[flat] == nullptr
                            ? nullptr
                            : assignment.DimSharding(context_, static_cast<int>(flat)));
        if (taken.back() == nullptr) continue;
        if (!IsCut(module_.instr(o).shape->leaf(k), stored, taken.back())) return;
      }
    }
    Arena& arena = context_.arena();
    Decision* const made = arena.New<Decision>(d);
    std::vector<absl::Span<const AxisRef>> axes;
    for (const AxisList& a : assignment.axes()) axes.push_back(arena.Copy(absl::MakeConstSpan(a)));
    made->factor_axes = arena.Copy(absl::MakeConstSpan(axes));
    made->operands = arena.Copy(absl::MakeConstSpan(taken));
    made->produced = made->final = arena.Copy(absl::MakeConstSpan(&state, 1));
    op.decision = made;
    plan_.state[leaves_.canonical(id, 0).value] = state;
  }

  // Whether the state that is stated for a value may cost nothing, as another op reads it so, or it
  // was made so.
  bool MayHaveCopies(InstrId value) const {
    const OpPlan& op = plan_.ops[value.value];
    return uses_[value.value] > 1 || op.decision == nullptr ||
           op.decision->produced != op.decision->final;
  }

  void Store(InstrId id, int k, const Sharding* state, Cost more) {
    OpPlan& op = plan_.ops[id.value];
    Arena& arena = context_.arena();
    Decision* const made = arena.New<Decision>(*op.decision);
    std::vector<const Sharding*> states(made->final.begin(), made->final.end());
    states[k] = state;
    made->final = arena.Copy(absl::MakeConstSpan(states));
    op.decision = made;
    plan_.state[leaves_.canonical(id, k).value] = state;
    if (op.kind == PlanKind::kIdentity) {
      // What its reshard was charged with depends on the copies there were, so that stays charged.
      made->operands = made->produced = made->final;
      return;
    }
    made->bytes += more.bytes;
    made->seconds += more.seconds;
    const double runs = plan_.expected_runs[module_.instr(id).computation.value];
    plan_.bytes += runs * more.bytes;
    plan_.seconds += runs * more.seconds;
  }

  const Program& program_;
  const Module& module_;
  const LeafTable& leaves_;
  Context& context_;
  const CostModel& cost_;
  Plan& plan_;
  std::vector<Read> read_;                                // by canonical leaf
  std::vector<uint32_t> uses_;                            // by instruction
  std::vector<absl::InlinedVector<InstrId, 1>> callers_;  // by computation
};

}  // namespace

void NarrowResults(const Program& program, const CostModel& cost, Plan* plan) {
  Narrowing(program, cost, plan).Run();
}

absl::StatusOr<Plan> MakeNarrowPlan(const Program& program, const PropagationResult& propagation,
                                    RuleTable& rules, const SpmdOptions& options, PlanMemo* memo) {
  absl::StatusOr<Plan> plan = MakePlan(program, propagation, rules, options, memo);
  if (plan.ok()) NarrowResults(program, options.cost, &*plan);
  return plan;
}

}  // namespace internal
}  // namespace shardcall
