// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "shardcall/partitioner/propagation/engine.h"
#include "shardcall/partitioner/rules/op_rules.h"

namespace shardcall {
inline namespace internal {

const Limits* PropagationEngine::InternLimits(const Limits& limits) {
  uint64_t hash = MixHash(limits.closed.Hash(), limits.cheap * 2 + limits.fixed);
  for (const AxisRef& a : limits.reserved) {
    hash = MixHash(hash, (uint64_t{a.axis} << 48) ^ (uint64_t{a.pre_size} << 24) ^ a.size);
  }
  hash = FinishHash(hash);
  const Limits* found = limits_table_.Find(hash, [&](const Limits& l) { return l == limits; });
  if (found != nullptr) return found;
  limits_storage_.push_back(limits);
  limits_table_.Insert(hash, &limits_storage_.back());
  return &limits_storage_.back();
}

// The manual axes at a leaf. The results of a boundary are on its other side.
AxisList PropagationEngine::ManualAxes(LeafId leaf) const {
  const InstrId i = program_.leaves.instr(leaf);
  const absl::Span<const AxisRef> at = program_.manual_axes(i);
  AxisList axes(at.begin(), at.end());
  if (program_.annotation[i.value] != AnnotationKind::kManualBoundary) return axes;
  const ManualBoundary& b = program_.boundaries.at(i);
  if (!b.entry) return Minus(*program_.mesh, axes, b.manual_axes);
  for (const AxisRef& a : Minus(*program_.mesh, b.manual_axes, axes)) axes.push_back(a);
  return axes;
}

// If several leaves of one value have constraints, the producer's is used, else the first.
void PropagationEngine::FindConstraints() {
  constraint_.assign(program_.leaves.num_leaves(), nullptr);
  for (uint32_t l = 0; l < program_.constraints.size(); ++l) {
    const ShardingConstraint* c = program_.constraints[l];
    if (c == nullptr || c->unknown) continue;
    const LeafId canonical = program_.leaves.canonical(LeafId(l));
    // A maximal sharding of a tuple's element says where the value is, not which device computes
    // it.
    if (c->maximal_device >= 0 && canonical.value != l &&
        MaximalDevice(program_, program_.leaves.instr(LeafId(l))) < 0) {
      continue;
    }
    if (constraint_[canonical.value] == nullptr || canonical.value == l) {
      constraint_[canonical.value] = c;
    }
  }
}

// Applies the axes of dimensions with user priority up to `priority`. Dimensions with later
// priorities stay closed, with their axes reserved.
void PropagationEngine::SeedLeaf(LeafId leaf, int priority) {
  const uint32_t l = leaf.value;
  const Shape* shape = program_.LeafShape(leaf);
  const InstrId instr = program_.leaves.instr(leaf);
  const ShardingConstraint* c = constraint_[l];
  const bool boundary_exit = program_.annotation[instr.value] == AnnotationKind::kManualBoundary &&
                             !program_.boundaries.at(instr).entry;
  const BaseMesh* mesh = c != nullptr && c->mesh != nullptr ? c->mesh : program_.mesh;
  ShardingBuilder b(mesh, shape->rank());
  AxisList manual = ManualAxes(leaf);
  if (!manual.empty() && mesh == program_.mesh) b.manual = manual;
  Limits limits;
  if (c == nullptr && !boundary_exit) {
    limits.cheap = graph_.is_cheap(instr);
    sharding_[l] = b.Intern(context_);
    limits_[l] = InternLimits(limits);
    return;
  }
  AxisList used = b.manual;
  auto place = [&](absl::Span<const AxisRef> axes, AxisList* out) {
    for (const AxisRef& a : Minus(*mesh, axes, used)) {
      out->push_back(a);
      used.push_back(a);
    }
  };
  if (boundary_exit) {
    const ManualBoundary& boundary = program_.boundaries.at(instr);
    const auto& dims = boundary.manual_dims[program_.leaves.index(leaf)];
    for (int d = 0; d < shape->rank() && d < static_cast<int>(dims.size()); ++d) {
      place(dims[d], &b.dims[d]);
    }
    const auto& partial = boundary.manual_partial[program_.leaves.index(leaf)];
    place(partial.axes, &b.partial);
    if (!b.partial.empty()) b.partial_op = partial.op;
    limits.reserved = Minus(*mesh, boundary.manual_axes, used);
    used.insert(used.end(), limits.reserved.begin(), limits.reserved.end());
  }
  if (c != nullptr) {
    if (c->maximal_device >= 0) {
      limits.fixed = true;
      b.maximal_device = c->maximal_device;
      b.manual.clear();
      for (AxisList& d : b.dims) d.clear();
    } else {
      for (int d = 0; d < shape->rank() && d < static_cast<int>(c->dims.size()); ++d) {
        const ShardingConstraint::Dim& dim = c->dims[d];
        const bool waits = dim.priority > priority;
        place(dim.axes, waits ? &limits.reserved : &b.dims[d]);
        if (waits || !dim.open) limits.closed.Insert(d);
      }
      place(c->unreduced, &b.partial);
      b.partial_op = c->unreduced_op;
      limits.reserved.insert(limits.reserved.end(), c->replicated.begin(), c->replicated.end());
    }
  }
  sharding_[l] = b.Intern(context_);
  limits_[l] = InternLimits(limits);
  if (c != nullptr) NoteConstraint(leaf);
}

// The dimensions of a leaf that its own constraint shards.
void PropagationEngine::NoteConstraint(LeafId leaf) {
  const ShardingConstraint& c = *constraint_[leaf.value];
  const Sharding& s = *sharding_[leaf.value];
  for (int d = 0; d < s.rank() && d < static_cast<int>(c.dims.size()); ++d) {
    if (!s.dim(d).empty() && !c.dims[d].axes.empty()) provenance_.at(leaf, d).constraint = true;
  }
}

void PropagationEngine::Activate(int priority) {
  for (uint32_t l = 0; l < constraint_.size(); ++l) {
    const ShardingConstraint* c = constraint_[l];
    if (c == nullptr || sharding_[l] == nullptr || c->maximal_device >= 0) continue;
    const BaseMesh& mesh = *sharding_[l]->mesh();
    Limits limits = *limits_[l];
    ShardingBuilder b(*sharding_[l]);
    bool changed = false;
    for (int d = 0; d < sharding_[l]->rank() && d < static_cast<int>(c->dims.size()); ++d) {
      const ShardingConstraint::Dim& dim = c->dims[d];
      if (dim.priority != priority) continue;
      // These axes were reserved, so no other dimension has taken them.
      const AxisList axes = Minus(mesh, dim.axes, sharding_[l]->used());
      b.dims[d].insert(b.dims[d].end(), axes.begin(), axes.end());
      limits.reserved = Minus(mesh, limits.reserved, dim.axes);
      if (dim.open && !KeptWhole(LeafId(l), d)) limits.closed.Erase(d);
      changed = true;
    }
    if (!changed) continue;
    sharding_[l] = b.Intern(context_);
    limits_[l] = InternLimits(limits);
    NoteConstraint(LeafId(l));
    QueueLeaf(LeafId(l));
  }
}

void PropagationEngine::SeedAll(int priority) {
  if (seeded_priority_ == priority && seeds_.has_value()) {
    sharding_ = seeds_->sharding;
    limits_ = seeds_->limits;
    provenance_ = seeds_->provenance;
  } else {
    SeedWithoutKept(priority);
    if (seeded_priority_ == priority) seeds_ = {sharding_, limits_, provenance_};
    seeded_priority_ = priority;
  }
  CloseKeptWhole();
}

void PropagationEngine::CloseKeptWhole() {
  for (const auto& [leaf, dims] : kept_whole_) {
    Limits limits = *limits_[leaf.value];
    for (int d = 0; d < sharding_[leaf.value]->rank(); ++d) {
      if (dims.Contains(d)) limits.closed.Insert(d);
    }
    limits_[leaf.value] = InternLimits(limits);
  }
}

void PropagationEngine::SeedWithoutKept(int priority) {
  const int n = program_.leaves.num_leaves();
  sharding_.assign(n, nullptr);
  limits_.assign(n, nullptr);
  if (provenance_.num_slots() == 0) {  // the last run's went into its result
    provenance_ = ProvenanceTable(program_);
  } else {
    provenance_.Clear();
  }
  const Limits* const open = InternLimits({});
  const Limits* const cheap = InternLimits({.cheap = true});
  // Values without any constraint share one state per rank and region.
  std::vector<const Sharding*> plain;
  constexpr int kRanks = 16;
  plain.assign(program_.regions.size() * kRanks, nullptr);
  for (uint32_t l = 0; l < static_cast<uint32_t>(n); ++l) {
    const LeafId leaf(l);
    if (program_.leaves.canonical(leaf) != leaf) continue;
    const Shape* const shape = program_.LeafShape(leaf);
    if (!shape->IsArray()) continue;
    const InstrId instr = program_.leaves.instr(leaf);
    const int rank = shape->rank();
    if (constraint_[l] != nullptr || rank >= kRanks ||
        program_.annotation[instr.value] == AnnotationKind::kManualBoundary) {
      SeedLeaf(leaf, priority);
      continue;
    }
    const Sharding*& slot = plain[program_.region_of[instr.value] * kRanks + rank];
    if (slot == nullptr) {
      slot = ReplicatedSharding(context_, program_.mesh, rank, program_.manual_axes(instr));
    }
    sharding_[l] = slot;
    limits_[l] = graph_.is_cheap(instr) ? cheap : open;
  }
  for (const auto& [leaf, source] : imposed_) {
    if (sharding_[leaf.value] == nullptr || !sharding_[leaf.value]->HasShardedDim()) continue;
    for (int d = 0; d < sharding_[leaf.value]->rank(); ++d) {
      if (sharding_[leaf.value]->dim(d).empty()) continue;
      provenance_.at(leaf, d) = {.from = source.from,
                                 .via = source.via,
                                 .from_dim = static_cast<int16_t>(d),
                                 .brought = INT32_MAX};
    }
  }
  // Entry parameters without a constraint that propagation may not set stay replicated.
  const Module& m = program_.module;
  if (!m.entry().valid()) return;
  size_t flat = 0;
  for (InstrId p : m.comp(m.entry()).parameters) {
    for (int k = 0; k < m.instr(p).shape->num_leaves(); ++k, ++flat) {
      const LeafId leaf = program_.leaves.canonical(p, k);
      if (sharding_[leaf.value] == nullptr || constraint_[leaf.value] != nullptr) continue;
      if (flat < program_.may_set_parameter.size() && program_.may_set_parameter[flat]) continue;
      Limits closed = *limits_[leaf.value];
      for (int d = 0; d < sharding_[leaf.value]->rank(); ++d) closed.closed.Insert(d);
      limits_[leaf.value] = InternLimits(closed);
    }
  }
}

// See PropagationResult::outputs.
std::vector<const Sharding*> PropagationEngine::OutputShardings() const {
  std::vector<const Sharding*> out;
  const Module& m = program_.module;
  if (!m.entry().valid()) return out;
  const InstrId root = m.comp(m.entry()).root;
  if (!root.valid()) return out;
  for (int k = 0; k < m.instr(root).shape->num_leaves(); ++k) {
    const LeafId leaf = program_.leaves.leaf(root, k);
    const LeafId canonical = program_.leaves.canonical(leaf);
    const Sharding* s = sharding_[canonical.value];
    if (s == nullptr) {
      out.push_back(nullptr);
      continue;
    }
    const ShardingConstraint* c = program_.constraints[leaf.value];
    const AxisList manual = ManualAxes(canonical);  // none, unless the program returns it so
    const bool may_set =
        k < static_cast<int>(program_.may_set_output.size()) && program_.may_set_output[k];
    const bool chosen = branch_results_.contains(canonical);  // not annotated itself
    if (c != nullptr && !c->unknown && (chosen || c != constraint_[canonical.value])) {
      const BaseMesh* mesh = c->mesh != nullptr ? c->mesh : program_.mesh;
      ShardingBuilder b(mesh, s->rank());
      b.manual = manual;
      b.maximal_device = c->maximal_device;
      AxisList used(c->replicated.begin(), c->replicated.end());
      for (int d = 0; d < s->rank() && d < static_cast<int>(c->dims.size()); ++d) {
        b.dims[d] = Minus(*mesh, c->dims[d].axes, used);
        used.insert(used.end(), b.dims[d].begin(), b.dims[d].end());
      }
      b.partial = Minus(*mesh, c->unreduced, used);
      b.partial_op = c->unreduced_op;
      used.insert(used.end(), b.partial.begin(), b.partial.end());
      for (int d = 0; d < s->rank() && d < static_cast<int>(c->dims.size()); ++d) {
        if (!c->dims[d].open || s->mesh() != mesh) continue;
        const AxisList longer = ExtendFree(*mesh, b.dims[d], s->dim(d), used, {});
        used.insert(used.end(), longer.begin(), longer.end());
        b.dims[d] = longer;
      }
      s = b.Intern(context_);
    } else if (!may_set && (chosen || constraint_[canonical.value] == nullptr)) {
      s = ReplicatedSharding(context_, program_.mesh, s->rank(), manual);
    }
    out.push_back(s);
  }
  return out;
}

}  // namespace internal
}  // namespace shardcall
