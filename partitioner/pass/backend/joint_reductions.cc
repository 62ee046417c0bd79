// SPDX-License-Identifier: Apache-2.0
// XLA's combiner of all-reduces:
//   before:  p = all-reduce(x),  q = all-reduce(y)
//   after:   t = all-reduce(x, y),  p = get-tuple-element(t), index=0,  q = .. index=1
#include <algorithm>
#include <tuple>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/pass/alike_reductions.h"
#include "shardcall/partitioner/pass/backend/backend_passes.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int64_t kMostJoinedBytes = 30 << 20;

void Join(const std::vector<InstrId>& group, GraphBuilder& b, ModuleCloner* cloner) {
  Instruction copy = cloner->CopyOf(group.back());
  std::vector<InstrId> operands;
  std::vector<const Shape*> shapes;
  for (const InstrId id : group) {
    operands.push_back(cloner->OperandsOf(id)[0]);
    shapes.push_back(cloner->CopyOf(id).shape);
  }
  copy.shape = b.context().MakeTuple(shapes);
  const InstrId all = cloner->Add(group.back(), copy, operands, b.computation());
  for (size_t k = 0; k < group.size(); ++k) {
    cloner->Set(group[k], b.GetTupleElement(all, static_cast<int64_t>(k)));
  }
}

PassResult JoinIn(const Module& m, const ReductionGroups& groups,
                  absl::FunctionRef<absl::Span<const InstrId>(CompId)> order) {
  return RewriteInstructions(
      m, [&](InstrId id) { return groups.contains(id); },
      [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
        const std::vector<InstrId>& group = *groups.at(id);
        if (id == group.back()) Join(group, b, cloner);
      },
      order);
}

// By instruction, the most collectives of this kind that run one after the other before it can.
// Those with the same number do not need each other.
std::vector<int> Levels(const Module& m, Opcode kind) {
  std::vector<int> levels(m.num_instructions());
  for (int c = 0; c < m.num_computations(); ++c) {
    for (const InstrId id : m.comp(CompId(c)).instructions) {
      int& level = levels[id.value];
      for (const InstrId o : m.operands(id)) {
        level = std::max(level, levels[o.value] + (m.instr(o).opcode == kind ? 1 : 0));
      }
    }
  }
  return levels;
}

bool IsJoinable(const Instruction& i) {
  return i.operand_count == 1 && i.shape->IsArray() && !i.shape->IsDynamic() && i.extra < 0 &&
         i.shape->num_elements() > 0 && i.shape->byte_size() <= kMostJoinedBytes;
}

// What alike collectives have in common: the type (of reductions), the monoid (-1: their
// computation is none), the devices, and the rest of their attributes.
using CollectiveKind = std::tuple<ElementType, int, const Attributes*>;
CollectiveKind KindOf(const Module& m, const Instruction& i) {
  const ElementType any{};
  if (i.attrs->kind == AttrKind::kPermute) {
    PermuteAttrs attrs = i.as<PermuteAttrs>();
    attrs.channel_id = -1;
    return {any, -1, InternAttributes(m.context(), attrs)};
  }
  CollectiveAttrs attrs = i.as<CollectiveAttrs>();
  attrs.channel_id = -1;
  Opcode op;
  int monoid = -1;
  if (attrs.to_apply.valid() && RecognizeMonoid(m, attrs.to_apply, &op)) {
    monoid = static_cast<int>(op);
    attrs.to_apply = CompId();
  }
  const bool reduces = monoid >= 0 || attrs.to_apply.valid();
  return {reduces ? i.shape->element_type() : any, monoid, InternAttributes(m.context(), attrs)};
}

ReductionGroups GroupsOfLevels(const Module& m, const std::vector<int>& levels, Opcode kind) {
  absl::flat_hash_map<std::tuple<CompId, int, CollectiveKind>, ReductionGroup> all;
  for (int k = 0; k < m.num_instructions(); ++k) {
    const Instruction& i = m.instr(InstrId(k));
    if (i.opcode != kind || !IsJoinable(i)) continue;
    ReductionGroup& group = all[{i.computation, levels[k], KindOf(m, i)}];
    if (group == nullptr) group = std::make_shared<std::vector<InstrId>>();
    group->push_back(InstrId(k));
  }
  ReductionGroups out;
  for (const auto& [key, group] : all) {
    if (group->size() < 2) continue;
    for (const InstrId id : *group) out[id] = group;
  }
  return out;
}

PassResult JoinDistant(const Module& m, Opcode kind) {
  const std::vector<int> levels = Levels(m, kind);
  std::vector<std::vector<InstrId>> orders;
  for (int c = 0; c < m.num_computations(); ++c) {
    orders.push_back(m.comp(CompId(c)).instructions);
    absl::c_stable_sort(orders.back(),
                        [&](InstrId a, InstrId b) { return levels[a.value] < levels[b.value]; });
  }
  return JoinIn(m, GroupsOfLevels(m, levels, kind),
                [&](CompId c) { return absl::MakeConstSpan(orders[c.value]); });
}

}  // namespace

PassResult JoinReductions(const Module& m) {
  return JoinIn(m, FindAlikeReductions(m, kMostJoinedBytes),
                [&](CompId c) { return absl::MakeConstSpan(m.comp(c).instructions); });
}

PassResult JoinDistantReductions(const Module& m) { return JoinDistant(m, Opcode::kAllReduce); }

PassResult JoinGathers(const Module& m) { return JoinDistant(m, Opcode::kAllGather); }
PassResult JoinReduceScatters(const Module& m) { return JoinDistant(m, Opcode::kReduceScatter); }
PassResult JoinPermutes(const Module& m) { return JoinDistant(m, Opcode::kCollectivePermute); }

}  // namespace internal
}  // namespace shardcall
