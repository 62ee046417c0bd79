// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/plan_table.h"

#include <deque>
#include <utility>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/import/boundary_states.h"
#include "shardcall/partitioner/ir/analysis/equal_values.h"
#include "shardcall/partitioner/ir/analysis/generated_values.h"
#include "shardcall/partitioner/ir/analysis/trip_count.h"
#include "shardcall/partitioner/ir/memory/peak_memory.h"
#include "shardcall/partitioner/spmd/plan/candidate.h"
#include "shardcall/partitioner/spmd/plan/sources.h"

namespace shardcall {
inline namespace internal {
namespace {

// The rules of decisions that are not the op's own, as long as the Context lives.
struct KeptRules {
  std::deque<ShardingRule> rules;
};

}  // namespace

PlanTable::PlanTable(const Program& program, const PropagationResult& propagation,
                     const SpmdOptions& options, InternTable<Copies>* copy_lists,
                     ProgramFacts* facts)
    : cost_(options.cost),
      program_(program),
      module_(program.module),
      leaves_(program.leaves),
      propagation_(propagation),
      max_memory_(options.max_memory),
      context_(program.module.context()),
      copies_(context_, copy_lists, program.leaves.num_leaves()),
      untaken_(context_),
      facts_(*facts) {
  plan_.ops.resize(module_.num_instructions());
  plan_.state.resize(leaves_.num_leaves(), nullptr);
  plan_.common_copies = propagation.common_copies;
  if (!facts_.generated.empty()) return;
  facts_.generated = GeneratedValues(module_);
  facts_.equal = EqualValues(module_);
  facts_.read_rows = ReadRowsOfSorts(module_, facts_.equal);
  facts_.num_uses.resize(module_.num_instructions());
  facts_.last_user.resize(module_.num_instructions());
  for (int i = 0; i < module_.num_instructions(); ++i) {
    if (const InstrId equal = facts_.equal[i]; equal.valid()) ++facts_.num_uses[equal.value];
    for (InstrId o : module_.operands(InstrId(i))) {
      ++facts_.num_uses[o.value];
      facts_.last_user[o.value] = InstrId(i);
    }
  }
}

bool PlanTable::TakeEqual(InstrId id) {
  const InstrId from = equal(id);
  if (IsGenerated(id) || plan_.ops[from.value].kind != PlanKind::kRule) {
    return false;
  }
  if (program_.region_of[id.value] != program_.region_of[from.value]) return false;
  const Shape* const shape = module_.instr(id).shape;
  States taken;
  for (int k = 0; k < shape->num_leaves(); ++k) {
    const Sharding *const stored = State(from, k), *const wanted = WantedOfOp(id, k);
    if (stored == nullptr || wanted == nullptr) return false;
    if (!stored->partial().empty() || !wanted->partial().empty()) return false;
    const Copies* const copies = copies_.of(leaves_.canonical(from, k));
    if (ReshardTraffic(shape->leaf(k), stored, copies, wanted).collectives > 0) return false;
    taken.push_back(wanted);
  }
  Decision d;
  d.produced = d.final = taken;
  SetDecision(id, PlanKind::kEqual, Keep(d));
  plan_.equal[id] = from;
  for (int k = 0; k < shape->num_leaves(); ++k) NoteTaken(from, k, taken[k]);
  for (int k = 0; k < shape->num_leaves(); ++k) TakeCopies(id, from, k, taken[k]);
  return true;
}

void PlanTable::TakeCopies(InstrId id, InstrId from, int k, const Sharding* state) {
  const LeafId leaf = leaves_.canonical(from, k), now = leaves_.canonical(id, k);
  untaken_.AddName(leaf, now);
  copies_.Set(now, copies_.AfterAnnotation(plan_.state[leaf.value], copies_.of(leaf), state));
}

const Sharding* PlanTable::Replicated(InstrId id, const Shape* shape) const {
  return ReplicatedSharding(context_, program_.mesh, shape->rank(), program_.manual_axes(id));
}

const Sharding* PlanTable::Wanted(InstrId id, int flat) const {
  const Shape* shape = module_.instr(id).shape->leaf(flat);
  if (!shape->IsArray()) return nullptr;
  const Sharding* s = propagation_.sharding[leaves_.leaf(id, flat).value];
  // A value that is to be on one device is computed on all devices instead; its values are the
  // same.
  if (s == nullptr || s->is_maximal()) return Replicated(id, shape);
  return s;
}

const Sharding* PlanTable::WantedOfOp(InstrId id, int flat) const {
  const Sharding* s = Wanted(id, flat);
  if (num_uses(id) == 1 && !module_.instr(id).shape->IsTuple()) {
    const InstrId user = last_user(id);
    if (program_.annotation[user.value] == AnnotationKind::kIdentity) {
      const Sharding* next = Wanted(user, 0);
      if (next != nullptr && !next->partial().empty()) return next;
    }
  }
  return s;
}

bool PlanTable::WantsPartial() const {
  return absl::c_any_of(propagation_.sharding,
                        [](const Sharding* s) { return s != nullptr && !s->partial().empty(); });
}

States PlanTable::OperandStates(InstrId id, CopyList* copies) const {
  States out;
  for (InstrId o : module_.operands(id)) {
    const int n = module_.instr(o).shape->num_leaves();
    for (int k = 0; k < n; ++k) {
      const Copies* c = copies == nullptr ? nullptr : AvailableCopies(o, k);
      if (c != nullptr) {
        copies->resize(out.size(), nullptr);
        copies->push_back(c);
      }
      out.push_back(State(o, k));
    }
  }
  if (copies != nullptr && !copies->empty()) copies->resize(out.size(), nullptr);
  return out;
}

Shapes PlanTable::OperandShapes(InstrId id) const {
  Shapes out;
  for (InstrId o : module_.operands(id)) {
    const Shape* shape = module_.instr(o).shape;
    for (int k = 0; k < shape->num_leaves(); ++k) out.push_back(shape->leaf(k));
  }
  return out;
}

const Decision* PlanTable::Keep(const Decision& d) {
  Arena& arena = context_.arena();
  Decision* kept = arena.New<Decision>(d);
  absl::InlinedVector<absl::Span<const AxisRef>, 8> axes;
  for (absl::Span<const AxisRef> a : d.factor_axes) axes.push_back(arena.Copy(a));
  kept->factor_axes = arena.Copy(absl::MakeConstSpan(axes));
  kept->operands = arena.Copy(d.operands);
  kept->produced = arena.Copy(d.produced);
  kept->rejected = arena.Copy(d.rejected);
  kept->exchanges = arena.Copy(d.exchanges);
  kept->final = d.final == d.produced ? kept->produced : arena.Copy(d.final);
  return kept;
}

const ShardingRule* PlanTable::KeepRule(ShardingRule rule) {
  return &context_.Get<KeptRules>().rules.emplace_back(std::move(rule));
}

void PlanTable::Finish(InstrId id, PlanKind kind, const Decision* decision) {
  if (decision != nullptr) {
    ChargeReshards(id, kind, *decision);
    NoteResultCopies(id, kind, *decision);
  }
  SetDecision(id, kind, decision);
}

void PlanTable::ChargeReshard(double runs, const Shape* shape, const Sharding* from,
                              const Copies* copies, const Sharding* to) {
  const Traffic traffic = ReshardTraffic(shape, from, copies, to);
  if (traffic.collectives > 0) ChargeRuns(runs, traffic.bytes, cost_.Seconds(traffic));
}

void PlanTable::EndComputation(InstrId root) {
  for (int k = 0; k < module_.instr(root).shape->num_leaves(); ++k) {
    NoteTaken(root, k, State(root, k));
  }
  const UntakenReshards::Cost sum = untaken_.Sum();
  ChargeRuns(-1, sum.bytes, sum.seconds);
  untaken_.Clear();
}

void PlanTable::ChargeReshards(InstrId id, PlanKind kind, const Decision& d) {
  size_t leaf = 0;
  for (InstrId o : module_.operands(id)) {
    const Shape* shape = module_.instr(o).shape;
    for (int k = 0; k < shape->num_leaves() && leaf < d.operands.size(); ++k, ++leaf) {
      NoteTaken(o, k, d.operands[leaf]);
      MakeCommonCopy(id, o, k, d.operands[leaf]);
      const LeafId value = leaves_.canonical(o, k);
      const Copies* const before = copies_.of(value);
      const Traffic sent = ReshardTraffic(shape->leaf(k), State(o, k), before, d.operands[leaf]);
      const double seconds = sent.collectives > 0 ? cost_.Seconds(sent) : 0;
      if (sent.collectives > 0) Charge(sent.bytes, seconds);
      // A loop may have one value as several elements, which is resharded once.
      if (KeepsCopies(kind)) NoteOperandCopy(id, o, k, d.operands[leaf]);
      if (kind == PlanKind::kIdentity && sent.collectives > 0) {
        untaken_.Add(id, value, before, copies_.of(value), num_uses(id),
                     {.bytes = runs_ * sent.bytes, .seconds = runs_ * seconds});
      }
    }
  }
  const Shape* shape = module_.instr(id).shape;
  for (size_t k = 0; k < d.final.size(); ++k) {
    ChargeReshard(runs_, shape->leaf(static_cast<int>(k)), d.produced[k], nullptr, d.final[k]);
  }
  if (kind != PlanKind::kWhile && kind != PlanKind::kConditional) return;
  // The roots of a loop's body and of branches are resharded where they end.
  auto callees = CalledComputations(module_, module_.instr(id));
  if (kind == PlanKind::kWhile) callees.resize(1);  // not the condition
  const double runs = runs_ * ExpectedRuns(module_, id, cost_.trip_count);
  for (CompId callee : callees) {
    const InstrId root = module_.comp(callee).root;
    for (size_t k = 0; k < d.produced.size(); ++k) {
      const int flat = static_cast<int>(k);
      ChargeReshard(runs, shape->leaf(flat), State(root, flat), nullptr, d.produced[k]);
    }
  }
}

void PlanTable::SetDecision(InstrId id, PlanKind kind, const Decision* decision) {
  plan_.ops[id.value] = {kind, decision};
  if (decision == nullptr) return;
  for (size_t k = 0; k < decision->final.size(); ++k) {
    plan_.state[leaves_.canonical(id, static_cast<int>(k)).value] = decision->final[k];
  }
}

void PlanTable::NoteOperandCopies(InstrId id, Decision::States taken) {
  size_t leaf = 0;
  for (InstrId o : module_.operands(id)) {
    const Shape* shape = module_.instr(o).shape;
    for (int k = 0; k < shape->num_leaves(); ++k, ++leaf) {
      if (leaf >= taken.size()) continue;
      NoteTaken(o, k, taken[leaf]);
      NoteOperandCopy(id, o, k, taken[leaf]);
    }
  }
}

void PlanTable::NoteOperandCopy(InstrId user, InstrId operand, int flat, const Sharding* taken) {
  const Sharding* stored = State(operand, flat);
  if (taken == nullptr || stored == nullptr || stored == taken) return;
  MakeCommonCopy(user, operand, flat, taken);
  const LeafId leaf = leaves_.canonical(operand, flat);
  const Shape* const shape = module_.instr(operand).shape->leaf(flat);
  copies_.Set(leaf, copies_.After(shape, stored, copies_.of(leaf), taken));
}

void PlanTable::NoteTaken(InstrId operand, int flat, const Sharding* taken) {
  const LeafId leaf = leaves_.canonical(operand, flat);
  untaken_.Take(operand, leaf, module_.instr(operand).shape->leaf(flat), plan_.state[leaf.value],
                copies_.of(leaf), taken);
}

const Copies* PlanTable::AvailableCopies(InstrId operand, int flat) const {
  const LeafId leaf = leaves_.canonical(operand, flat);
  const Copies* const made = copies_.of(leaf);
  const Sharding* const stored = plan_.state[leaf.value];
  if (plan_.common_copies.empty() || stored == nullptr) return made;
  const auto common = plan_.common_copies.find(leaf);
  if (common == plan_.common_copies.end()) return made;
  return copies_.After(module_.instr(operand).shape->leaf(flat), stored, made, common->second);
}

void PlanTable::MakeCommonCopy(InstrId user, InstrId operand, int flat, const Sharding* taken) {
  if (plan_.common_copies.empty() || taken == nullptr || taken == State(operand, flat)) return;
  const LeafId leaf = leaves_.canonical(operand, flat);
  const Copies *const made = copies_.of(leaf), *const available = AvailableCopies(operand, flat);
  if (available == made) return;
  const Traffic traffic = ReshardTraffic(module_.instr(operand).shape->leaf(flat),
                                         State(operand, flat), made, plan_.common_copies.at(leaf));
  NoteTaken(operand, flat, plan_.common_copies.at(leaf));
  copies_.Set(leaf, available);
  if (traffic.collectives == 0) return;
  Charge(traffic.bytes, cost_.Seconds(traffic));
  auto& [bytes, seconds] = plan_.copied[user];
  bytes += traffic.bytes;
  seconds += cost_.Seconds(traffic);
}

void PlanTable::NoteCopies(InstrId id, PlanKind kind, const Decision& d) {
  if (KeepsCopies(kind)) NoteOperandCopies(id, d.operands);
  NoteResultCopies(id, kind, d);
}

void PlanTable::NoteResultCopies(InstrId id, PlanKind kind, const Decision& d) {
  for (size_t k = 0; k < d.final.size(); ++k) {
    const int flat = static_cast<int>(k);
    const Sharding* made = d.produced[k];
    const LeafId now = leaves_.canonical(id, flat);
    if (kind == PlanKind::kIdentity && made != nullptr) {
      TakeCopies(id, module_.operand(id, 0), flat, made);
      continue;
    }
    copies_.Set(now,
                made == nullptr || made == d.final[k] || kind == PlanKind::kCallbacks
                    ? nullptr
                    : copies_.AfterResult(module_.instr(id).shape->leaf(flat), made, d.final[k]));
    // Whole, it is one that each device can generate.
    if (IsGenerated(id) && d.final[k]->mesh() == program_.mesh && d.final[k]->HasShardedDim()) {
      copies_.Set(now, copies_.With(copies_.of(now), Replicated(id, module_.instr(id).shape)));
    }
    if (kind == PlanKind::kBoundary) NoteCopiesAcross(id, k, d);
  }
}

void PlanTable::NoteCopiesAcross(InstrId id, size_t k, const Decision& d) {
  const auto operands = module_.operands(id);
  if (operands.size() != d.final.size() || d.produced[k] == nullptr) return;
  if (IsGenerated(operands[k])) return;
  const int flat = static_cast<int>(k);
  const LeafId now = leaves_.canonical(id, flat), from = leaves_.canonical(operands[k], 0);
  untaken_.TakeAll(from);  // copies of copies are not followed
  const auto note = [&](const Sharding* state) {
    const Sharding* const across =
        AcrossBoundary(program_, id, flat, d.operands[k], d.produced[k], state);
    if (across == nullptr || across == d.final[k]) return;
    copies_.Set(now, copies_.With(copies_.of(now), across));
  };
  note(plan_.state[from.value]);
  const Copies* const copies = copies_.of(from);
  for (size_t c = 0; copies != nullptr && c < copies->states.size(); ++c) note(copies->states[c]);
}

int64_t PlanTable::WantedBytes(InstrId id, int leaf) const {
  const Shape* const shape = module_.instr(id).shape->leaf(leaf);
  const Sharding* const s = Wanted(id, leaf);
  return s == nullptr ? shape->byte_size() : LocalBytes(shape, *s);
}

int64_t PlanTable::WantedBytes(InstrId id) const {
  int64_t bytes = 0;
  for (int k = 0; k < module_.instr(id).shape->num_leaves(); ++k) bytes += WantedBytes(id, k);
  return bytes;
}

int64_t PlanTable::WantedMemory() const {
  if (memory_ >= 0) return memory_;
  if (!facts_.buffers.has_value()) facts_.buffers = BuffersOf(module_, kPlannedMemory);
  const BufferList buffers = WithBytes(
      module_, *facts_.buffers, [this](InstrId id, int leaf) { return WantedBytes(id, leaf); });
  return memory_ = EdgeBytes() + EstimatePeakTemporaries(buffers, kPlannedMemory);
}

int64_t PlanTable::EdgeBytes() const {
  if (edges_ >= 0) return edges_;
  const Computation& entry = module_.comp(module_.entry());
  edges_ = WantedBytes(entry.root);
  for (const InstrId p : entry.parameters) edges_ += WantedBytes(p);
  return edges_;
}

bool PlanTable::HasRoomForLoops(int64_t bytes) const {
  const bool bounded = max_memory_ < INT64_MAX;
  if (!bounded && bytes <= shardcall::RoomForLoops(EdgeBytes(), max_memory_)) return true;
  return bytes <= RoomForLoops();
}

absl::InlinedVector<int64_t, 8> PlanTable::PlacesOf(InstrId id) const {
  if (module_.instr(id).opcode != Opcode::kSort) return PlaceOfUpdate(module_, id);
  const auto rows = facts_.read_rows.find(id);
  const ReadRows read = rows == facts_.read_rows.end() ? ReadRows() : rows->second;
  return {read.begin, read.end, PlacesOperand(module_, id)};
}

const Accumulators& PlanTable::AccumulatorsOf(PassedProducts products) {
  if (!facts_.accumulators.has_value()) {
    facts_.accumulators = FindAccumulators(program_, products);
  }
  return *facts_.accumulators;
}

Traffic PlanTable::ReshardTraffic(const Shape* shape, const Sharding* from, const Copies* copies,
                                  const Sharding* to) {
  if (from == to || from == nullptr || to == nullptr) return {};
  const ReshardPlan& plan = copies_.Plan(shape, from, copies, to);
  return plan.traffic();
}

}  // namespace internal
}  // namespace shardcall
