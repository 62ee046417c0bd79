// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/states/state_graph.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/ir/analysis/canonical_order.h"
#include "shardcall/partitioner/ir/analysis/trip_count.h"
#include "shardcall/partitioner/ir/known_targets.h"

namespace shardcall {
inline namespace internal {

std::vector<InstrId> InCanonicalOrder(const Module& module, absl::Span<const CompId> computations) {
  std::vector<InstrId> order;
  for (const CompId comp : computations) {
    const auto& instructions = module.comp(comp).instructions;
    order.insert(order.end(), instructions.begin(), instructions.end());
  }
  const std::vector<uint32_t> number = CanonicalOrder(module);
  absl::c_sort(order, [&](InstrId a, InstrId b) { return number[a.value] < number[b.value]; });
  return order;
}

StateGraph::StateGraph(const Program& program, const PropagationResult& propagation,
                       RuleTable& rules, const SpmdOptions& options, PlanMemo& memo)
    : program_(program),
      module_(program.module),
      leaves_(program.leaves),
      propagation_(propagation),
      rules_(rules),
      options_(options),
      table_(program, propagation, options, &memo.copies, &memo.facts),
      decider_(program, rules, options, table_, memo),
      invariants_(program, table_, options.cost.trip_count) {
  FindOrder();
  FindValues();
  if (!values_.empty()) FindTerms();
}

// Not an op of very many operands or results, which has as many ways to run; nor a barrier of
// propagation, at which the program says that values are sharded each by itself.
bool StateGraph::IsPriced(InstrId id) {
  constexpr size_t kMostLeaves = 64;
  const Instruction& instr = module_.instr(id);
  return LeavesOf(id).size() <= kMostLeaves &&
         !HasTrait(KnownTargetOf(instr), kBlocksForward | kBlocksBackward) &&
         program_.annotation[id.value] == AnnotationKind::kNone &&
         (program_.region_of[id.value] == 0 ||
          !Complement(*program_.mesh, program_.manual_axes(id)).empty()) &&
         !HasTrait(instr.opcode, kSideEffect | kCollectiveOp) &&
         rules_.op_class(id) == OpClass::kRule && !rules_.PartitionedByCallback(id) &&
         RunsOnDevice(program_, id) < 0 && !decider_.HasBody(id);
}

absl::InlinedVector<LeafId, 4> StateGraph::LeavesOf(InstrId id) const {
  absl::InlinedVector<LeafId, 4> out;
  for (InstrId o : module_.operands(id)) {
    for (int k = 0; k < module_.instr(o).shape->num_leaves(); ++k) {
      out.push_back(leaves_.canonical(o, k));
    }
  }
  for (int k = 0; k < module_.instr(id).shape->num_leaves(); ++k) {
    out.push_back(leaves_.canonical(id, k));
  }
  return out;
}

size_t StateGraph::num_operands(const Term& term) const {
  return term.leaves.size() - static_cast<size_t>(module_.instr(term.op).shape->num_leaves());
}

void StateGraph::FindOrder() {
  const std::vector<CompId> computations = ComputationPostOrder(module_);
  runs_ = RunsByComputation(module_, computations, options_.cost.trip_count, BranchRuns::kExpected);
  order_ = InCanonicalOrder(module_, PartitionedComputations(program_, computations));
}

StateGraph::StateList StateGraph::StatesOf(const Term& term, size_t k) const {
  const int v = value_of(term.leaves[k]);
  return v < 0 ? StateList{FirstState(term, k)} : values_[v].states;
}

int StateGraph::PlaceOf(const Term& term, size_t k) const {
  const auto place = absl::c_find(term.values, value_of(term.leaves[k]));
  return place == term.values.end() ? -1 : static_cast<int>(place - term.values.begin());
}

bool StateGraph::IsRepeated(absl::Span<const LeafId> leaves, size_t k) {
  return absl::c_linear_search(leaves.first(k), leaves[k]);
}

// Annotations of values in a manual region may leave all that is not manual open.
bool StateGraph::SaysSomething(const ShardingConstraint& c) {
  const auto open = [](const ShardingConstraint::Dim& d) { return d.open && d.axes.empty(); };
  return c.manual.empty() || !absl::c_all_of(c.dims, open) || !c.replicated.empty() ||
         !c.unreduced.empty() || c.maximal_device >= 0 || c.shard_as >= 0 || c.shard_like >= 0;
}

// Open are the values that no annotation names and that are not given from outside, if only ops
// that are priced, annotations and loops touch them.
void StateGraph::FindValues() {
  open_.assign(leaves_.num_leaves(), kUntouched);
  readers_.assign(leaves_.num_leaves(), 0);
  for (int l = 0; l < leaves_.num_leaves(); ++l) {
    const ShardingConstraint* const c = program_.constraints[l];
    if (c != nullptr && SaysSomething(*c)) open_[leaves_.canonical(LeafId(l)).value] = kGiven;
  }
  // An open result is what its value is, also where the annotated program is read again.
  const InstrId root = module_.comp(module_.entry()).root;
  for (size_t k = 0; k < propagation_.outputs.size(); ++k) {
    const bool open = k < program_.may_set_output.size() && program_.may_set_output[k];
    if (open) open_[leaves_.canonical(root, static_cast<int>(k)).value] = kGiven;
  }
  for (const InstrId id : order_) Touch(id);
  value_of_.assign(leaves_.num_leaves(), -1);
  for (const InstrId id : order_) {
    for (int k = 0; k < module_.instr(id).shape->num_leaves(); ++k) {
      const LeafId leaf = leaves_.canonical(id, k);
      const Shape* const shape = program_.LeafShape(leaf);
      const Sharding* const s = propagation_.sharding[leaf.value];
      if (value_of(leaf) >= 0 || open_[leaf.value] != kOpen || !shape->IsArray() ||
          shape->rank() == 0 || s == nullptr || s->is_maximal() || s->mesh() != program_.mesh ||
          !s->partial().empty()) {
        continue;
      }
      AxisList free = Complement(*program_.mesh, s->manual());
      if (free.empty()) continue;
      value_of_[leaf.value] = static_cast<int>(values_.size());
      values_.push_back({leaf, {s}, std::move(free), {}});
    }
  }
}

void StateGraph::Touch(InstrId id) {
  const Instruction& instr = module_.instr(id);
  const auto touch = [&](LeafId leaf) {
    if (open_[leaf.value] == kUntouched) open_[leaf.value] = kOpen;
  };
  const auto give = [&](InstrId i) {
    for (int k = 0; k < module_.instr(i).shape->num_leaves(); ++k) {
      open_[leaves_.canonical(i, k).value] = kGiven;
    }
  };
  const bool entry = instr.computation == module_.entry();
  if (instr.opcode == Opcode::kTuple || instr.opcode == Opcode::kGetTupleElement ||
      (instr.opcode == Opcode::kParameter && !entry)) {
    return;
  }
  if (instr.opcode == Opcode::kWhile || instr.opcode == Opcode::kConditional) {
    for (int k = 0; k < instr.shape->num_leaves(); ++k) touch(leaves_.canonical(id, k));
    if (instr.opcode == Opcode::kWhile) return;  // its parameters are its results
    for (CompId branch : CalledComputations(module_, instr)) {
      const InstrId p = module_.comp(branch).parameters[0];
      for (int k = 0; k < module_.instr(p).shape->num_leaves(); ++k) touch(leaves_.canonical(p, k));
    }
    return;
  }
  if (program_.annotation[id.value] == AnnotationKind::kIdentity) {
    for (int k = 0; k < instr.shape->num_leaves(); ++k) {
      const LeafId leaf = leaves_.canonical(id, k);
      const ShardingConstraint* const c = program_.constraints[leaf.value];
      if (c != nullptr && !SaysSomething(*c)) {
        touch(leaf);
      } else {
        open_[leaf.value] = kGiven;
      }
    }
    return;
  }
  if (!IsPriced(id)) {
    give(id);
    for (InstrId o : module_.operands(id)) give(o);
    for (CompId c : CalledComputations(module_, instr)) {  // a branch, or what is called
      give(module_.comp(c).root);
      for (InstrId p : module_.comp(c).parameters) give(p);
    }
    return;
  }
  const absl::InlinedVector<LeafId, 4> leaves = LeavesOf(id);
  const size_t results = static_cast<size_t>(instr.shape->num_leaves());
  for (size_t k = 0; k < leaves.size(); ++k) {
    touch(leaves[k]);
    if (k + results < leaves.size() && !IsRepeated(leaves, k)) ++readers_[leaves[k].value];
  }
  for (size_t k = 0; k < results; ++k) {
    const int flat = static_cast<int>(k);
    if (table_.WantedOfOp(id, flat) != table_.Wanted(id, flat)) {
      open_[leaves_.canonical(id, flat).value] = kGiven;
    }
  }
}

void StateGraph::Add(Term term) {
  for (LeafId leaf : term.leaves) {
    const int v = value_of_[leaf.value];
    if (v >= 0 && !absl::c_linear_search(term.values, v)) term.values.push_back(v);
  }
  if (term.values.empty()) return;
  absl::c_sort(term.values);
  for (int v : term.values) values_[v].terms.push_back(static_cast<int>(terms_.size()));
  terms_.push_back(std::move(term));
}

void StateGraph::AddMove(LeafId from, LeafId to, double runs) {
  if (from != to) Add({.op = InstrId(), .leaves = {from, to}, .runs = runs, .values = {}});
}

void StateGraph::FindTerms() {
  for (const InstrId id : order_) {
    const Instruction& instr = module_.instr(id);
    const double runs = runs_[instr.computation.value];
    const auto operand = [&](int k) { return leaves_.canonical(module_.operand(id, 0), k); };
    if (program_.annotation[id.value] == AnnotationKind::kIdentity) {
      for (int k = 0; k < instr.shape->num_leaves(); ++k) {
        AddMove(operand(k), leaves_.canonical(id, k), runs);
      }
    } else if (instr.opcode == Opcode::kWhile) {
      const CompId body = instr.as<WhileAttrs>().body;
      for (int k = 0; k < instr.shape->num_leaves(); ++k) {
        const LeafId carried = leaves_.canonical(id, k);
        AddMove(operand(k), carried, runs);
        AddMove(leaves_.canonical(module_.comp(body).root, k), carried, runs_[body.value]);
      }
    } else if (instr.opcode == Opcode::kConditional) {
      int operand_number = 0;
      for (CompId branch : CalledComputations(module_, instr)) {
        const InstrId p = module_.comp(branch).parameters[0];
        const InstrId passed = module_.operand(id, ++operand_number);
        for (int k = 0; k < module_.instr(p).shape->num_leaves(); ++k) {
          AddMove(leaves_.canonical(passed, k), leaves_.canonical(p, k), runs);
        }
        for (int k = 0; k < instr.shape->num_leaves(); ++k) {
          AddMove(leaves_.canonical(module_.comp(branch).root, k), leaves_.canonical(id, k),
                  runs_[branch.value]);
        }
      }
    } else if (IsPriced(id)) {
      Add({.op = id, .leaves = LeavesOf(id), .runs = runs, .values = {}});
    }
  }
  const InstrId root = module_.comp(module_.entry()).root;
  for (int k = 0; k < module_.instr(root).shape->num_leaves(); ++k) {
    Add({.op = InstrId(), .leaves = {leaves_.canonical(root, k)}, .output = k, .values = {}});
  }
}

const Sharding* StateGraph::FirstState(const Term& term, size_t k) const {
  const LeafId leaf = term.leaves[k];
  const int v = value_of_[leaf.value];
  if (v >= 0) return values_[v].states[0];
  const InstrId id = leaves_.instr(leaf);
  const Shape* const shape = program_.LeafShape(leaf);
  if (!shape->IsArray()) return nullptr;
  // A result that an annotation makes partial is wanted so.
  if (term.op.valid() && k >= num_operands(term)) {
    return table_.WantedOfOp(term.op, static_cast<int>(k - num_operands(term)));
  }
  const Sharding* const s = propagation_.sharding[leaf.value];
  const bool whole =
      s == nullptr || s->is_maximal() || module_.instr(id).opcode == Opcode::kConstant;
  return whole ? table_.Replicated(id, shape) : s;
}

PropagationResult StateGraph::With(absl::Span<const int> states) const {
  PropagationResult out = propagation_;
  for (int l = 0; l < leaves_.num_leaves(); ++l) {
    const int v = value_of_[leaves_.canonical(LeafId(l)).value];
    if (v >= 0) out.sharding[l] = values_[v].states[states[v]];
  }
  return out;
}

}  // namespace internal
}  // namespace shardcall
