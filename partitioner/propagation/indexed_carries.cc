// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/propagation/indexed_carries.h"

#include <algorithm>
#include <map>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/analysis/trip_count.h"
#include "shardcall/partitioner/ir/row_by_opcode.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

// What an op that takes or changes a part of its first operand, at an index that it computes, needs
// of the other devices if that operand is sharded along the index.
enum class Needs {
  kOperand,  // the operand whole along the index
  kRows,     // the rows that are not its own
  kUpdate,   // the update whole along the index; each device changes its own rows
  kNothing,  // each device changes its own rows
};
struct IndexingRow {
  Opcode opcode;
  Needs needs;
  bool updates;  // the result is the operand, changed
  bool (*indexes)(const Module& m, const Instruction& i, int dim);
};

int64_t OperandDim(const Module& m, const Instruction& i, int operand, int dim) {
  return m.instr(m.operands(i)[operand]).shape->dim(dim);
}

constexpr IndexingRow kIndexing[] = {
    {Opcode::kDynamicSlice, Needs::kOperand, false,
     [](const Module& m, const Instruction& i, int dim) {
       return i.shape->dim(dim) < OperandDim(m, i, 0, dim);
     }},
    {Opcode::kDynamicUpdateSlice, Needs::kUpdate, true,
     [](const Module& m, const Instruction& i, int dim) {
       return OperandDim(m, i, 1, dim) < OperandDim(m, i, 0, dim);
     }},
    {Opcode::kGather, Needs::kRows, false,
     [](const Module& m, const Instruction& i, int dim) {
       const auto& a = i.as<GatherAttrs>();
       return absl::c_linear_search(a.start_index_map, dim) &&
              a.slice_sizes[dim] < OperandDim(m, i, 0, dim);
     }},
    {Opcode::kScatter, Needs::kNothing, true,
     [](const Module&, const Instruction& i, int dim) {
       const auto& a = i.as<ScatterAttrs>();
       return absl::c_linear_search(a.scatter_dims_to_operand_dims, dim) &&
              absl::c_linear_search(a.inserted_window_dims, dim);
     }},
};

// The row of an op that indexes its first operand along `dim`, or null.
const IndexingRow* Indexes(const Module& m, InstrId id, int dim) {
  const Instruction& i = m.instr(id);
  const IndexingRow* row = RowByOpcode(kIndexing, i.opcode);
  return row != nullptr && row->indexes(m, i, dim) ? row : nullptr;
}

}  // namespace

IndexedCarries::IndexedCarries(const Program& program, const PropagationGraph& graph,
                               const CostModel& cost, const PropagatedLeaves& leaves,
                               LeafUses* uses)
    : program_(program),
      module_(program.module),
      graph_(graph),
      cost_(cost),
      known_(leaves),
      uses_(*uses) {}

bool IndexedCarries::LoopsAndIndexedShards() const {
  bool loops = false, indexed = false;
  for (int k = 0; k < module_.num_instructions() && !(loops && indexed); ++k) {
    const InstrId id(k);
    const Opcode opcode = module_.instr(id).opcode;
    loops = loops || opcode == Opcode::kWhile;
    if (indexed || RowByOpcode(kIndexing, opcode) == nullptr) continue;
    const Sharding* s = known_.sharding[program_.leaves.canonical(module_.operand(id, 0)).value];
    for (int d = 0; s != nullptr && !s->is_maximal() && d < s->rank(); ++d) {
      indexed = indexed || (s->IsDimSharded(d) && Indexes(module_, id, d) != nullptr);
    }
  }
  return loops && indexed;
}

std::vector<LeafDim> IndexedCarries::Find() {
  std::vector<LeafDim> found;
  if (!LoopsAndIndexedShards()) return found;
  for (int k = 0; k < module_.num_instructions(); ++k) {
    const InstrId loop(k);
    if (module_.instr(loop).opcode != Opcode::kWhile) continue;
    runs_.clear();
    for (int flat = 0; flat < module_.instr(loop).shape->num_leaves(); ++flat) {
      const Sharding* s = known_.sharding[program_.leaves.canonical(loop, flat).value];
      if (s == nullptr || s->is_maximal()) continue;
      for (int d = 0; d < s->rank(); ++d) {
        if (!s->IsDimSharded(d)) continue;
        uses_.Collect();
        if (runs_.empty()) CountRuns(loop);
        Web web{.dim = d};
        if (!Consider(program_.leaves.canonical(loop, flat), &web)) continue;
        for (LeafId leaf : web.leaves) found.push_back({leaf, d});
      }
    }
  }
  return found;
}

void IndexedCarries::CountRuns(InstrId loop) {
  const auto& attrs = module_.instr(loop).as<WhileAttrs>();
  const double trips = RunsOfComputations(module_, loop, cost_.trip_count);
  std::map<CompId, double> next = {{attrs.condition, trips}, {attrs.body, trips}};
  while (!next.empty()) {  // callers come before callees
    const auto [comp, runs] = *next.begin();
    next.erase(next.begin());
    runs_[comp] += runs;
    for (InstrId id : module_.comp(comp).instructions) {
      if (!HasTrait(module_.instr(id).opcode, kControlFlow)) continue;
      for (CompId callee : CalledComputations(module_, module_.instr(id))) {
        next[callee] += runs * RunsOfComputations(module_, id, cost_.trip_count);
      }
    }
  }
}

bool IndexedCarries::Consider(LeafId carried, Web* web) {
  if (!Join(carried, web)) return false;
  for (size_t k = 0; k < web->leaves.size(); ++k) {
    // A value that was gathered in a computation is at hand for further uses there.
    std::map<CompId, double> seconds;
    for (const LeafUse& use : uses_.of(web->leaves[k])) {
      const auto runs = runs_.find(use.at);
      if (runs == runs_.end()) continue;  // outside of the loop
      double once = 0;
      if (!Follow(use, web, &once)) return false;
      seconds[use.at] = std::max(seconds[use.at], runs->second * once);
    }
    for (const auto& [comp, sum] : seconds) web->sharded += sum;
  }
  if (web->sharded == 0) return false;
  CountEntries(web);
  return web->whole < web->sharded;
}

bool IndexedCarries::Join(LeafId leaf, Web* web) {
  if (!web->members.insert(leaf).second) return true;
  const ShardingConstraint* c = known_.constraint[leaf.value];
  if (c != nullptr &&
      (c->maximal_device >= 0 || !c->unreduced.empty() ||
       (web->dim < static_cast<int>(c->dims.size()) && !c->dims[web->dim].axes.empty()))) {
    return false;
  }
  web->leaves.push_back(leaf);
  return true;
}

bool IndexedCarries::Follow(const LeafUse& use, Web* web, double* seconds) {
  if (use.to.valid()) return Join(use.to, web);
  if (use.operand != 0) return false;
  const LeafId result = program_.leaves.canonical(use.by);
  if (program_.annotation[use.by.value] == AnnotationKind::kIdentity ||
      module_.instr(use.by).opcode == Opcode::kCopy) {
    return Join(result, web);
  }
  const IndexingRow* row = Indexes(module_, use.by, web->dim);
  if (row == nullptr) return false;
  if (row->needs == Needs::kOperand) *seconds = SliceSeconds(use, web->dim);
  if (row->needs == Needs::kRows) *seconds = RowsSeconds(use, web->dim);
  if (row->needs == Needs::kUpdate) *seconds = UpdateSeconds(use);
  return !row->updates || Join(result, web);
}

// A value that comes into the web from elsewhere is gathered, if it has shards: what the loop
// begins with once, others as often as the computation runs that they are made in.
void IndexedCarries::CountEntries(Web* web) const {
  for (LeafId leaf : web->leaves) {
    for (const LeafUse& entry : uses_.entries_to(leaf)) {
      if (web->members.contains(entry.leaf)) continue;
      const Sharding* s = known_.sharding[entry.leaf.value];
      if (graph_.is_cheap(program_.leaves.instr(entry.leaf)) || s->is_maximal()) continue;
      const auto runs = runs_.find(entry.at);
      web->whole += (runs == runs_.end() ? 1 : runs->second) *
                    Seconds(program_.LeafShape(leaf), s, Whole(entry.leaf, web->dim));
    }
  }
}

double IndexedCarries::Seconds(const Shape* shape, const Sharding* from, const Sharding* to) const {
  if (to->is_maximal() || (!to->partial().empty() && from->partial().empty())) return 0;
  const ReshardPlan& plan = PlanReshard(program_.module.context(), shape, from, to);
  return cost_.Seconds(plan.traffic());
}

const Sharding* IndexedCarries::Whole(LeafId leaf, int dim) const {
  ShardingBuilder b(*known_.sharding[leaf.value]);
  b.dims[dim].clear();
  return b.Intern(program_.module.context());
}

// Slices are made of an array that is whole along the dimension, or sharded along another one.
double IndexedCarries::SliceSeconds(const LeafUse& use, int dim) const {
  const LeafId result = program_.leaves.canonical(use.by);
  const Sharding& s = *known_.sharding[use.leaf.value];
  const Shape* shape = program_.LeafShape(use.leaf);
  double least = Seconds(shape, &s, Whole(use.leaf, dim));
  for (int d = 0; d < s.rank(); ++d) {
    if (d == dim || Indexes(module_, use.by, d) != nullptr) continue;
    ShardingBuilder moved(s);
    moved.dims[d].insert(moved.dims[d].end(), s.dim(dim).begin(), s.dim(dim).end());
    moved.dims[dim].clear();
    if (shape->dim(d) % AxesSize(moved.dims[d]) != 0) continue;
    const Sharding* there = moved.Intern(program_.module.context());
    const double back = Seconds(program_.LeafShape(result), there, known_.sharding[result.value]);
    least = std::min(least, Seconds(shape, &s, there) + back);
  }
  return least;
}

// Each device has the rows of its shard and zero for the others; the results are added up. Where
// the devices of the result stand in another order, the array is gathered instead.
double IndexedCarries::RowsSeconds(const LeafUse& use, int dim) const {
  const LeafId result = program_.leaves.canonical(use.by);
  const Sharding& s = *known_.sharding[result.value];
  const Sharding& array = *known_.sharding[use.leaf.value];
  if (s.is_maximal() || !s.partial().empty()) return 0;
  if (s.mesh() != array.mesh()) {
    return Seconds(program_.LeafShape(use.leaf), &array, Whole(use.leaf, dim));
  }
  ShardingBuilder parts(s);
  parts.partial = Minus(*s.mesh(), array.dim(dim), s.used());
  return Seconds(program_.LeafShape(result), parts.Intern(program_.module.context()), &s);
}

// The update is wanted as the array is sharded, but whole along each index.
double IndexedCarries::UpdateSeconds(const LeafUse& use) const {
  const LeafId update = program_.leaves.canonical(module_.operand(use.by, 1));
  const Sharding& s = *known_.sharding[update.value];
  if (s.is_maximal()) return 0;
  ShardingBuilder wanted(*known_.sharding[use.leaf.value]);
  for (int d = 0; d < s.rank(); ++d) {
    if (Indexes(module_, use.by, d) != nullptr) wanted.dims[d].clear();
  }
  return Seconds(program_.LeafShape(update), &s, wanted.Intern(program_.module.context()));
}

}  // namespace internal
}  // namespace shardcall
