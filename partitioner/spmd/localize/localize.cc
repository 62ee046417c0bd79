// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/localize/localize.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/ir/analysis/generated_values.h"
#include "shardcall/partitioner/ir/attribute_records.h"
#include "shardcall/partitioner/spmd/localize/exchange.h"
#include "shardcall/partitioner/spmd/localize/feeds.h"
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/localize/one_device.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/plan/transfers.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/stop.h"

namespace shardcall {

Localizer::Localizer(const Program& program, const Plan& plan, RuleTable& rules,
                     const SpmdOptions& options)
    : program_(program),
      plan_(plan),
      global_(program.module),
      leaves_(program.leaves),
      context_(program.module.context()),
      result_(Module(program.module.shared_context())),
      ops_(program, rules, options, &result_.module),
      values_(program.leaves.num_leaves()),
      copy_slot_(program.leaves.num_leaves(), -1),
      generated_(GeneratedValues(program.module)),
      computation_map_(program.module.num_computations()),
      caller_(program.module.num_computations()),
      control_edges_(program.module, &result_.module),
      text_order_(program.place),
      stated_(context_, program.num_partitions > 1),
      one_device_(std::make_unique<OneDeviceLocalizer>(this)) {}

Localizer::~Localizer() = default;

std::pair<InstrId, const Sharding*> Localizer::Stored(InstrId id, int flat) const {
  const Value& v = values_[leaves_.canonical(id, flat).value];
  return {v.id, v.state};
}

void Localizer::Store(InstrId id, int flat, InstrId value, const Sharding* state) {
  const LeafId leaf = leaves_.canonical(id, flat);
  DropCopies(leaf);  // the leaf of a loop is that of its body's parameter too
  values_[leaf.value] = {value, state};
}

const Localizer::CopyList* Localizer::CopiesOf(LeafId canonical) const {
  const int32_t slot = copy_slot_[canonical.value];
  return slot < 0 || copies_[slot].empty() ? nullptr : &copies_[slot];
}

void Localizer::AddCopy(LeafId canonical, InstrId id, const Sharding* state) {
  int32_t& slot = copy_slot_[canonical.value];
  if (slot < 0) {
    slot = static_cast<int32_t>(copies_.size());
    copies_.emplace_back();
    copied_.push_back(canonical);
  }
  for (Value& known : copies_[slot]) {
    if (known.state != state) continue;
    if (!known.id.valid()) known.id = id;  // it was to be generated
    return;
  }
  copies_[slot].push_back({id, state});
}

std::string Localizer::WhatIsResharded(const Sharding* from, const Sharding* to,
                                       const CollectiveCause& cause, LeafId leaf) const {
  const absl::string_view consumer = global_.instr(cause.consumer).name;
  std::string what, user;
  if (leaf.valid()) what = absl::StrCat("%", global_.instr(leaves_.instr(leaf)).name);
  switch (cause.kind) {
    case CollectiveCause::Kind::kOperand:
      user = absl::StrCat(" for operand ", cause.index, " of %", consumer);
      break;
    case CollectiveCause::Kind::kCarry:
      user = absl::StrCat(" for value ", cause.index, " of %", consumer);
      break;
    case CollectiveCause::Kind::kResult:
      what = absl::StrCat("result ", cause.index, " of %", consumer);
      break;
    case CollectiveCause::Kind::kProgram:
    case CollectiveCause::Kind::kCallback: break;
  }
  return absl::StrCat("a reshard of ", what, " from ", from->ToString(), " to ", to->ToString(),
                      user);
}

void Localizer::CheckExchanges(InstrId id, size_t first) {
  absl::InlinedVector<double, 6> bytes;  // by operand
  for (size_t k = first; k < ops_.shared().records.size(); ++k) {
    const CollectiveRecord& r = ops_.shared().records[k];
    if (r.cause.kind == CollectiveCause::Kind::kProgram) continue;
    const size_t operand = static_cast<size_t>(r.cause.index);
    bytes.resize(std::max(bytes.size(), operand + 1));
    bytes[operand] += r.bytes_moved;
  }
  for (size_t k = 0; k < bytes.size(); ++k) {
    ops_.CheckBytes(bytes[k], [&] {
      return absl::StrCat("the halo exchange of operand ", k, " of %", global_.instr(id).name);
    });
  }
}

InstrId Localizer::Reshard(InstrId x, const Shape* global, const Sharding* from, const Sharding* to,
                           const CollectiveCause& cause, LeafId leaf, const Sharding* stored) {
  if (from == to) return x;
  const ReshardPlan& plan = PlanReshard(context_, global, from, to);
  ops_.CheckBytes(plan.bytes, [&] { return WhatIsResharded(from, to, cause, leaf); });
  emitter().set_cause(cause);
  absl::InlinedVector<InstrId, 4> steps;
  x = emitter().Reshard(x, global, from, to, &steps);
  if (!leaf.valid()) return x;
  for (size_t k = 0; k < steps.size(); ++k) {
    const Sharding* after = plan.moves[k].after;
    if (after != stored && after->partial().empty()) AddCopy(leaf, steps[k], after);
  }
  return x;
}

InstrId Localizer::Get(InstrId id, int flat, const Sharding* to, const CollectiveCause& cause) {
  const LeafId leaf = leaves_.canonical(id, flat);
  if (!plan_.common_copies.empty() && to != nullptr && to != values_[leaf.value].state) {
    const auto common = plan_.common_copies.find(leaf);
    if (common != plan_.common_copies.end()) GetFromCopies(id, flat, common->second, cause);
  }
  return GetFromCopies(id, flat, to, cause);
}

InstrId Localizer::GetFromCopies(InstrId id, int flat, const Sharding* to,
                                 const CollectiveCause& cause) {
  const LeafId leaf = leaves_.canonical(id, flat);
  const Value stored = values_[leaf.value];
  if (to == nullptr || stored.state == to) return stored.id;
  const Shape* shape = global_.instr(id).shape->leaf(flat);
  Value from = stored;
  if (const CopyList* copies = CopiesOf(leaf)) {
    absl::InlinedVector<const Sharding*, 4> states;
    for (const Value& copy : *copies) {
      if (copy.state == to && copy.id.valid()) return copy.id;
      states.push_back(copy.state);
    }
    const ReshardChoice choice = CheapestReshard(context_, shape, stored.state, states, to);
    for (const Value& copy : *copies) {
      if (copy.state == choice.from) from = copy;
    }
  }
  if (!from.id.valid()) {
    // As a sum over devices, one of them has it.
    const Sharding* const shard = WithoutPartial(context_, to);
    InstrId made = Generate(leaf, shard);
    AddCopy(leaf, made, shard);
    if (shard == to) return made;
    made = Reshard(made, shape, shard, to, cause, leaf, stored.state);
    AddCopy(leaf, made, to);
    return made;
  }
  const InstrId value = Reshard(from.id, shape, from.state, to, cause, leaf, stored.state);
  AddCopy(leaf, value, to);
  return value;
}

InstrId Localizer::Generate(LeafId leaf, const Sharding* to) {
  while (!generated_[leaves_.instr(leaf).value]) {  // an annotation
    leaf = leaves_.canonical(global_.operand(leaves_.instr(leaf), 0), leaves_.index(leaf));
  }
  const InstrId id = leaves_.instr(leaf);
  const Instruction& instr = global_.instr(id);
  absl::InlinedVector<const Sharding*, 4> need;
  for (InstrId o : global_.operands(id)) {
    const int rank = global_.instr(o).shape->rank();
    const bool broadcast = instr.opcode == Opcode::kBroadcast;
    if (!broadcast && rank == to->rank()) {
      need.push_back(to);
      continue;
    }
    ShardingBuilder of_operand(to->mesh(), rank);  // of a scalar, as a clamp has, or in dimensions
    of_operand.manual.assign(to->manual().begin(), to->manual().end());
    Ints dims;
    if (broadcast) dims = instr.as<DimensionsAttrs>().dimensions;
    for (int d = 0; d < rank; ++d) {
      const absl::Span<const AxisRef> axes = to->dim(static_cast<int>(dims[d]));
      of_operand.dims[d].assign(axes.begin(), axes.end());
    }
    need.push_back(of_operand.Intern(context_));
  }
  Decision d;
  d.strategy = &StrategyOf(instr.opcode);
  d.operands = need;
  d.produced = d.final = absl::MakeConstSpan(&to, 1);
  LocalOp op{id, instr, d, {}, {}, {LocalShape(context_, instr.shape, to)}};
  for (size_t k = 0; k < need.size(); ++k) {
    const InstrId o = global_.operand(id, static_cast<int>(k));
    op.operands.push_back(Get(o, 0, need[k], {CollectiveCause::Kind::kOperand, id, 0}));
    op.operand_shapes.push_back(global_.instr(o).shape);
  }
  return d.strategy->emit(ops_, op)[0];
}

void Localizer::StoreResults(InstrId id, const Decision& d, absl::Span<const InstrId> produced) {
  const Instruction& instr = global_.instr(id);
  for (size_t k = 0; k < produced.size(); ++k) {
    const int flat = static_cast<int>(k);
    const Sharding *made = d.produced[k], *final = d.final[k];
    if (made == nullptr || made == final) {
      Store(id, flat, produced[k], final);
      continue;
    }
    const LeafId leaf = leaves_.canonical(id, flat);
    DropCopies(leaf);
    if (made->partial().empty()) AddCopy(leaf, produced[k], made);
    const InstrId value = Reshard(produced[k], instr.shape->leaf(flat), made, final,
                                  {CollectiveCause::Kind::kResult, id, flat}, leaf, final);
    values_[leaf.value] = {value, final};
  }
}

const Shape* Localizer::LocalShapeOf(const Shape* global,
                                     absl::Span<const Sharding* const> states) {
  absl::InlinedVector<const Shape*, 6> leaves;
  for (int k = 0; k < global->num_leaves(); ++k) {
    const Shape* leaf = global->leaf(k);
    leaves.push_back(states[k] == nullptr ? leaf : LocalShape(context_, leaf, states[k]));
  }
  return ops_.ShapeFromLeaves(global, leaves);
}

LocalSources Localizer::SourcesOf(InstrId id) const {
  LocalSources out;
  for (InstrId operand : global_.operands(id)) {
    LocalSource& s = out.emplace_back();
    const InstrId source = SourceOf(global_, operand);
    if (!source.valid()) continue;
    const Instruction& i = global_.instr(operand);
    const auto [value, state] = Stored(source, 0);
    s = {{i.opcode, i.attrs, global_.instr(source).shape, state}, value, InstrId()};
    if (i.opcode == Opcode::kPad) s.fill = Stored(global_.operand(operand, 1), 0).first;
  }
  return out;
}

absl::Status Localizer::LocalizeInstruction(InstrId id) {
  const OpPlan& plan = plan_.ops[id.value];
  const Instruction& instr = global_.instr(id);
  builder().set_metadata(instr.metadata);
  const bool other_mesh = plan.decision != nullptr && plan.decision->mesh != nullptr;
  emitter().set_mesh(other_mesh ? plan.decision->mesh : program_.mesh);
  switch (plan.kind) {
    case PlanKind::kDead:
    case PlanKind::kAlias: return absl::OkStatus();
    case PlanKind::kParameter: LocalizeParameter(id, *plan.decision); return absl::OkStatus();
    case PlanKind::kBarrier: LocalizeBarrier(id, *plan.decision); return absl::OkStatus();
    case PlanKind::kIdentity:
    case PlanKind::kBoundary: LocalizePassThrough(id, *plan.decision); return absl::OkStatus();
    case PlanKind::kEqual: LocalizeEqual(id, *plan.decision); return absl::OkStatus();
    case PlanKind::kWhile:
    case PlanKind::kConditional:
    case PlanKind::kCall: LocalizeControlFlow(id, *plan.decision); return absl::OkStatus();
    case PlanKind::kCallbacks: return LocalizeCallbacks(id, *plan.decision);
    case PlanKind::kConstant:
    case PlanKind::kManual:
    case PlanKind::kOneDevice:
    case PlanKind::kFeed:
    case PlanKind::kRule: break;
  }
  const Decision& d = *plan.decision;
  LocalOp op{id, instr, d, {}, {}, {}};
  int flat = 0;
  // The end of a one-device transfer emits the whole transfer, so it takes the operands of the
  // start.
  const InstrId start = plan.kind == PlanKind::kOneDevice ? TransferStart(global_, id) : InstrId();
  for (InstrId o : global_.operands(start.valid() ? start : id)) {
    const Shape* shape = global_.instr(o).shape;
    for (int k = 0; k < shape->num_leaves(); ++k, ++flat) {
      op.operands.push_back(
          Get(o, k, d.operands[flat], {CollectiveCause::Kind::kOperand, id, flat}));
      op.operand_shapes.push_back(shape->leaf(k));
    }
  }
  for (int k = 0; k < instr.shape->num_leaves(); ++k) {
    const Shape* leaf = instr.shape->leaf(k);
    op.result_shapes.push_back(
        d.produced[k] == nullptr ? leaf : LocalShape(context_, leaf, d.produced[k]));
  }
  if (plan.kind == PlanKind::kOneDevice) {
    one_device_->Localize(op);
    return ops_.status();
  }
  if (plan.kind == PlanKind::kFeed) {
    LocalizeFeed(*this, op);
    return ops_.status();
  }
  const Strategy& strategy = d.strategy != nullptr ? *d.strategy : StrategyOf(instr.opcode);
  if (strategy.reads_sources) op.sources = SourcesOf(id);
  const size_t first = ops_.shared().records.size();
  for (const Exchange& e : d.exchanges) {
    emitter().set_cause({CollectiveCause::Kind::kOperand, id, e.operand});
    InstrId& x = op.operands[e.operand];
    x = EmitExchange(emitter(), x, e.dim, d.operands[e.operand]->dim(e.dim), e.ranges);
  }
  emitter().set_cause({CollectiveCause::Kind::kOperand, id, 0});
  const LocalIds produced = strategy.emit(ops_, op);
  if (!ops_.status().ok()) return ops_.status();
  CheckExchanges(id, first);
  StoreResults(id, d, produced);
  if (generated_[id.value] && d.final[0]->mesh() == program_.mesh && d.final[0]->HasShardedDim()) {
    const Sharding& stored = *d.final[0];
    AddCopy(leaves_.canonical(id, 0), InstrId(),
            ReplicatedSharding(context_, stored.mesh(), stored.rank(), stored.manual()));
  }
  return ops_.status();
}

void Localizer::FinishRoot(CompId comp) {
  const InstrId root = global_.comp(comp).root;
  const Shape* shape = global_.instr(root).shape;
  const std::vector<const Sharding*> states = RootStates(comp);
  LocalIds leaves;
  for (int k = 0; k < shape->num_leaves(); ++k) {
    leaves.push_back(GetFromCopies(root, k, states[k], {CollectiveCause::Kind::kCarry, root, k}));
  }
  const InstrId value = ops_.Assemble(shape, leaves);
  local().SetRoot(builder().computation(), value);
}

absl::Status Localizer::LocalizeComputation(CompId comp) {
  const CompId to = local().AddComputation(global_.comp(comp).name);
  computation_map_[comp.value] = to;
  const size_t n = global_.comp(comp).instructions.size();
  local().mutable_comp(to).instructions.reserve(n + n / 4);
  ops_.StartComputation(to);
  for (LeafId leaf : copied_) copy_slot_[leaf.value] = -1;
  copies_.clear();
  copied_.clear();
  for (InstrId id : global_.comp(comp).instructions) {
    SHARDCALL_RETURN_IF_ERROR(CheckStop());
    const int begin = local().num_instructions();
    SHARDCALL_RETURN_IF_ERROR(LocalizeInstruction(id));
    if (!control_edges_.empty()) control_edges_.NoteEmitted(id, builder().computation(), begin);
    text_order_.NoteEmitted(id, local());
  }
  if (!control_edges_.empty()) control_edges_.Keep(comp);
  FinishRoot(comp);
  text_order_.NoteEmitted(InstrId(), local());
  return ops_.status();
}

absl::StatusOr<LocalProgram> Localizer::Run() {
  const size_t n = static_cast<size_t>(global_.num_instructions());
  local().Reserve(n + n / 4, 2 * n + n / 2);
  for (int i = 0; i < global_.num_instructions(); ++i) {
    const Instruction& instr = global_.instr(InstrId(i));
    ops_.shared().next_channel =
        std::max(ops_.shared().next_channel, ChannelIdOf(*instr.attrs) + 1);
    if (HasTrait(instr.opcode, kControlFlow)) {
      for (CompId c : CalledComputations(global_, instr)) caller_[c.value] = InstrId(i);
    }
  }
  const std::vector<CompId> order =
      PartitionedComputations(program_, ComputationPostOrder(global_));
  for (CompId comp : order) SHARDCALL_RETURN_IF_ERROR(LocalizeComputation(comp));
  absl::flat_hash_map<CompId, double> trip_count;  // by the local module's computations
  for (CompId c : order) trip_count[computation_map_[c.value]] = plan_.trip_count[c.value];
  for (CollectiveRecord& r : ops_.shared().records) {
    if (const auto it = trip_count.find(r.computation); it != trip_count.end()) {
      r.trip_count = it->second;
    }
  }
  MakeHeader();
  SHARDCALL_RETURN_IF_ERROR(VerifyCallbacks());
  result_.collectives = std::move(ops_.shared().records);
  std::vector<CompId> made;
  for (const CompId c : order) made.push_back(computation_map_[c.value]);
  text_order_.Restore(made, &result_);
  return std::move(result_);
}

absl::StatusOr<LocalProgram> Localize(const Program& program, const Plan& plan, RuleTable& rules,
                                      const SpmdOptions& options) {
  return Localizer(program, plan, rules, options).Run();
}

}  // namespace shardcall
