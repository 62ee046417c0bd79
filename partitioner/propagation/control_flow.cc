// SPDX-License-Identifier: Apache-2.0
// The constraints that follow from those of other values where loops and branches begin and end:
// of what a loop carries from what its body yields, and of a conditional's result from what its
// branches end with.
#include <algorithm>
#include <limits>
#include <utility>

#include "shardcall/partitioner/propagation/engine.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {

namespace {

// Whether both leave a value as the same sum over devices, and shard it alike.
bool AreSameSum(const ShardingConstraint* a, const ShardingConstraint* b) {
  if (a == nullptr || b == nullptr || a->unreduced.empty() || a->unreduced != b->unreduced ||
      a->unreduced_op != b->unreduced_op || a->mesh != b->mesh ||
      a->dims.size() != b->dims.size()) {
    return false;
  }
  for (size_t d = 0; d < a->dims.size(); ++d) {
    if (a->dims[d].axes != b->dims[d].axes) return false;
  }
  return true;
}

}  // namespace

void PropagationEngine::Impose(LeafId leaf, ShardingConstraint constraint, Imposed source) {
  imposed_constraints_.push_back(std::move(constraint));
  constraint_[leaf.value] = &imposed_constraints_.back();
  imposed_[leaf] = source;
}

// A constraint on what a loop's body yields holds for the value that the loop carries, too: its
// author means the next iteration and the loop's result. Otherwise uses within the body could shard
// a value that is said to be replicated. A dimension without axes stays open unless the value is
// known to begin whole there, so that no value that begins sharded is gathered for it. A sum over
// devices is carried as one if it begins so, too.
void PropagationEngine::ConstrainCarried() {
  const Module& m = program_.module;
  for (int k = 0; k < m.num_instructions(); ++k) {
    const InstrId loop(k);
    if (m.instr(loop).opcode != Opcode::kWhile) continue;
    const InstrId init = m.operand(loop, 0);
    const InstrId root = m.comp(m.instr(loop).as<WhileAttrs>().body).root;
    for (int flat = 0; flat < m.instr(loop).shape->num_leaves(); ++flat) {
      const LeafId carried = program_.leaves.canonical(loop, flat);
      const LeafId yielded = program_.leaves.canonical(root, flat);
      const LeafId first = program_.leaves.canonical(init, flat);
      const ShardingConstraint* c = constraint_[yielded.value];
      if (c == nullptr || constraint_[carried.value] != nullptr || c->maximal_device >= 0) continue;
      if (program_.annotation[program_.leaves.instr(yielded).value] != AnnotationKind::kIdentity) {
        continue;
      }
      ShardingConstraint own = *c;
      own.shard_as = own.shard_like = -1;
      if (!c->unreduced.empty()) {
        if (AreSameSum(c, constraint_[first.value]))
          Impose(carried, std::move(own), {yielded, loop});
        continue;
      }
      bool says = false;
      for (size_t d = 0; d < own.dims.size(); ++d) {
        ShardingConstraint::Dim& dim = own.dims[d];
        dim.open = dim.open || (dim.axes.empty() && !BeginsWhole(first, d));
        says = says || !dim.open || !dim.axes.empty();
      }
      if (!says) continue;
      Impose(carried, std::move(own), {yielded, loop});
    }
  }
}

bool PropagationEngine::BeginsWhole(LeafId first, size_t dim) const {
  const ShardingConstraint* c = constraint_[first.value];
  if (c == nullptr) return graph_.is_cheap(program_.leaves.instr(first));
  return dim < c->dims.size() && c->dims[dim].axes.empty() && !c->dims[dim].open;
}

// The sharding that a constraint gives, without what propagation may add.
const Sharding* PropagationEngine::ShardingOf(LeafId leaf, const ShardingConstraint& c) const {
  const BaseMesh* mesh = c.mesh != nullptr ? c.mesh : program_.mesh;
  ShardingBuilder b(mesh, program_.LeafShape(leaf)->rank());
  if (mesh == program_.mesh) b.manual = ManualAxes(leaf);
  AxisList used = b.manual;
  for (size_t d = 0; d < b.dims.size() && d < c.dims.size(); ++d) {
    b.dims[d] = Minus(*mesh, c.dims[d].axes, used);
    used.insert(used.end(), b.dims[d].begin(), b.dims[d].end());
  }
  return b.Intern(context_);
}

// What resharding costs if a conditional's result is in one state: each branch ends with one of
// `roots`, and all `users` take it.
struct PropagationEngine::BranchResult {
  struct Source {
    const Sharding* sharding;
    Imposed imposed;
  };
  std::vector<Source> roots, users;
  bool other_users = false;  // whose states are not known yet
};

PropagationEngine::BranchResult PropagationEngine::ResultOfBranches(InstrId id, int flat) const {
  BranchResult out;
  const LeafId result = program_.leaves.canonical(id, flat);
  const auto usable = [](const ShardingConstraint* c) {
    return c != nullptr && c->maximal_device < 0 && c->unreduced.empty();
  };
  const Module& m = program_.module;
  for (CompId branch : CalledComputations(m, m.instr(id))) {
    const LeafId root = program_.leaves.canonical(m.comp(branch).root, flat);
    const ShardingConstraint* c = constraint_[root.value];
    if (usable(c)) out.roots.push_back({ShardingOf(root, *c), {root, id}});
  }
  for (uint32_t n : graph_.nodes_of(result)) {
    const Node& node = graph_.node(n);
    const absl::Span<const LeafId> leaves = graph_.leaves(node);
    if (node.instr == id) continue;
    // An annotation of the value, or what a loop or branch passes on or takes.
    const bool passes = node.kind == NodeKind::kRule && leaves.size() == 2 &&
                        (program_.annotation[node.instr.value] == AnnotationKind::kIdentity ||
                         HasTrait(m.instr(node.instr).opcode, kControlFlow));
    const LeafId other = passes && leaves[0] == result ? leaves[1] : leaves[0];
    const ShardingConstraint* c = passes ? constraint_[other.value] : nullptr;
    if (usable(c)) {
      out.users.push_back({ShardingOf(other, *c), {other, node.instr}});
    } else {
      out.other_users = true;
    }
  }
  const InstrId root = m.entry().valid() ? m.comp(m.entry()).root : InstrId();
  for (int k = 0; root.valid() && k < m.instr(root).shape->num_leaves(); ++k) {
    const LeafId output = program_.leaves.leaf(root, k);
    if (program_.leaves.canonical(output) != result) continue;
    const ShardingConstraint* c = program_.constraints[output.value];
    const bool may_set =
        k < static_cast<int>(program_.may_set_output.size()) && program_.may_set_output[k];
    if (c != nullptr && !c->unknown && usable(c)) {
      out.users.push_back({ShardingOf(result, *c), {result, id}});
    } else if (!may_set) {
      out.users.push_back(
          {ReplicatedSharding(context_, program_.mesh, program_.LeafShape(result)->rank()),
           {result, id}});
    }
  }
  return out;
}

// Branches may end in different shardings, of which the result has one; the others are resharded
// where their branch ends. Each branch runs as often as the others. Of the shardings that a branch
// ends with or a user wants, the result takes that with the fewest bytes.
void PropagationEngine::ConstrainBranches() {
  const Module& m = program_.module;
  // The conditionals in a branch decide before their branch's conditional does.
  for (int c = m.num_computations(); c-- > 0;) {
    for (InstrId id : m.comp(CompId(c)).instructions) {
      if (m.instr(id).opcode != Opcode::kConditional) continue;
      for (int flat = 0; flat < m.instr(id).shape->num_leaves(); ++flat) {
        ConstrainBranchResult(id, flat);
      }
    }
  }
}

// Where all branches end with the same sum over devices, the result is that sum.
bool PropagationEngine::ConstrainBranchSum(InstrId id, int flat) {
  const Module& m = program_.module;
  const ShardingConstraint* sum = nullptr;
  LeafId from;
  for (CompId branch : CalledComputations(m, m.instr(id))) {
    const LeafId root = program_.leaves.canonical(m.comp(branch).root, flat);
    const ShardingConstraint* c = constraint_[root.value];
    if (!AreSameSum(c, sum == nullptr ? c : sum)) return false;
    sum = c;
    from = root;
  }
  if (sum == nullptr) return false;
  ShardingConstraint own = *sum;
  own.shard_as = own.shard_like = -1;
  const LeafId result = program_.leaves.canonical(id, flat);
  Impose(result, std::move(own), {from, id});
  branch_results_.insert(result);
  return true;
}

void PropagationEngine::ConstrainBranchResult(InstrId id, int flat) {
  const LeafId result = program_.leaves.canonical(id, flat);
  const Shape* shape = program_.LeafShape(result);
  if (!shape->IsArray() || constraint_[result.value] != nullptr) return;
  if (ConstrainBranchSum(id, flat)) return;
  const BranchResult ends = ResultOfBranches(id, flat);
  const auto differs = [&](const BranchResult::Source& s) {
    return s.sharding != ends.roots[0].sharding;
  };
  if (std::none_of(ends.roots.begin(), ends.roots.end(), differs)) return;
  double least = std::numeric_limits<double>::infinity();
  BranchResult::Source best{};
  const auto consider = [&](const BranchResult::Source& candidate) {
    double bytes = 0;
    for (const BranchResult::Source& s : ends.roots) {
      bytes += PlanReshard(context_, shape, s.sharding, candidate.sharding).bytes;
    }
    bytes /= static_cast<double>(ends.roots.size());
    for (const BranchResult::Source& s : ends.users) {
      bytes += PlanReshard(context_, shape, candidate.sharding, s.sharding).bytes;
    }
    if (bytes >= least) return;
    least = bytes;
    best = candidate;
  };
  consider({Joined(ends.roots[0].sharding, ends), ends.roots[0].imposed});
  for (const BranchResult::Source& s : ends.roots) consider(s);
  for (const BranchResult::Source& s : ends.users) {
    // Whole only if nobody else could use shards.
    if (s.sharding->HasShardedDim() || !ends.other_users) consider(s);
  }
  ShardingConstraint own;
  own.mesh = best.sharding->mesh();
  for (int d = 0; d < best.sharding->rank(); ++d) {
    const absl::Span<const AxisRef> axes = best.sharding->dim(d);
    own.dims.push_back({AxisList(axes.begin(), axes.end()), best.sharding->HasShardedDim(), 0});
  }
  Impose(result, std::move(own), best.imposed);
  branch_results_.insert(result);
}

// `first` with the axes of the others, as far as they are free: no branch sends to get there if all
// of them fit.
const Sharding* PropagationEngine::Joined(const Sharding* first, const BranchResult& ends) const {
  ShardingBuilder b(*first);
  AxisList used(first->used().begin(), first->used().end());
  for (const BranchResult::Source& s : ends.roots) {
    if (s.sharding->mesh() != first->mesh()) continue;
    for (int d = 0; d < first->rank(); ++d) {
      const AxisList longer = ExtendFree(*first->mesh(), b.dims[d], s.sharding->dim(d), used, {});
      const AxisList added = RemovePrefix(*first->mesh(), b.dims[d], longer);
      used.insert(used.end(), added.begin(), added.end());
      b.dims[d] = longer;
    }
  }
  return b.Intern(context_);
}

}  // namespace internal
}  // namespace shardcall
