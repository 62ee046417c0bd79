// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/propagation/graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "shardcall/partitioner/import/value_flow.h"
#include "shardcall/partitioner/ir/analysis/canonical_order.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/rules/rule_builder.h"

namespace shardcall {
inline namespace internal {

PropagationGraph::PropagationGraph(const Program& program, RuleTable& rules)
    : program_(program), module_(program.module), rules_(rules) {
  const int n = module_.num_instructions();
  nodes_.reserve(n);
  leaf_pool_.reserve(3 * n);
  order_ = CanonicalOrder(module_);
  FindCheap();
  for (int c = 0; c < module_.num_computations(); ++c) {
    for (InstrId i : module_.comp(CompId(c)).instructions) {
      switch (rules_.op_class(i)) {
        case OpClass::kRule:
        case OpClass::kManualOnly:
          if (const ShardingRule* rule = rules_.rule(i)) AddRuleNode(i, rule);
          break;
        case OpClass::kStructural: AddControlFlow(i); break;
        case OpClass::kAnnotation: {
          const AnnotationKind kind = program_.annotation[i.value];
          if (kind == AnnotationKind::kIdentity) {
            AddEdges(i, module_.operand(i, 0), i);
          } else if (kind == AnnotationKind::kManualBoundary) {
            int flat = 0;
            for (InstrId o : module_.operands(i)) {
              for (int k = 0; k < module_.instr(o).shape->num_leaves(); ++k, ++flat) {
                if (!module_.instr(o).shape->leaf(k)->IsArray()) continue;
                Node node;
                node.kind = NodeKind::kBoundary;
                node.instr = i;
                node.index = flat;
                Push(node, {program_.leaves.canonical(o, k), program_.leaves.canonical(i, flat)});
              }
            }
          }
          break;
        }
        case OpClass::kCallbacks: {
          std::vector<LeafId> leaves;
          Node node;
          node.kind = NodeKind::kCallbacks;
          node.instr = i;
          for (InstrId o : module_.operands(i)) {
            for (int k = 0; k < module_.instr(o).shape->num_leaves(); ++k) {
              leaves.push_back(program_.leaves.canonical(o, k));
            }
          }
          node.index = static_cast<int32_t>(leaves.size());
          for (int k = 0; k < module_.instr(i).shape->num_leaves(); ++k) {
            leaves.push_back(program_.leaves.canonical(i, k));
            callbacks_[leaves.back()] = num_nodes();
          }
          Push(node, leaves);
          break;
        }
        case OpClass::kOnShards:
        case OpClass::kMissing: break;
      }
    }
  }
  AddGroups();
  BuildAdjacency();
  OrderNodes();
}

uint32_t PropagationGraph::Push(Node node, absl::Span<const LeafId> leaves) {
  node.leaf_begin = static_cast<uint32_t>(leaf_pool_.size());
  node.leaf_count = static_cast<uint32_t>(leaves.size());
  leaf_pool_.insert(leaf_pool_.end(), leaves.begin(), leaves.end());
  nodes_.push_back(node);
  return static_cast<uint32_t>(nodes_.size()) - 1;
}

void PropagationGraph::AddRuleNode(InstrId i, const ShardingRule* rule) {
  const size_t number = rules_.rule_number(i);
  if (number >= by_rule_.size()) by_rule_.resize(2 * number + 64);
  const OpRule*& known = by_rule_[number];
  if (known == nullptr) {
    absl::InlinedVector<int64_t, 8> bytes;
    for (InstrId o : module_.operands(i)) {
      const Shape* s = module_.instr(o).shape;
      for (int k = 0; k < s->num_leaves(); ++k) bytes.push_back(s->leaf(k)->byte_size());
    }
    const Shape* s = module_.instr(i).shape;
    for (int k = 0; k < s->num_leaves(); ++k) bytes.push_back(s->leaf(k)->byte_size());
    known = MakeRule(rule, module_.instr(i).opcode, bytes, KnownTargetOf(module_.instr(i)));
  }
  if (known->step->inert) return;
  Node node;
  node.instr = i;
  node.rule = known;
  node.leaf_begin = static_cast<uint32_t>(leaf_pool_.size());
  for (InstrId o : module_.operands(i)) {
    const uint32_t first = program_.leaves.first(o).value;
    const int n = module_.instr(o).shape->num_leaves();
    for (int k = 0; k < n; ++k) leaf_pool_.push_back(program_.leaves.canonical(LeafId(first + k)));
  }
  const int n = module_.instr(i).shape->num_leaves();
  for (int k = 0; k < n; ++k) leaf_pool_.push_back(program_.leaves.canonical(i, k));
  node.leaf_count = static_cast<uint32_t>(leaf_pool_.size()) - node.leaf_begin;
  nodes_.push_back(node);
}

const OpRule* PropagationGraph::MakeRule(const ShardingRule* rule, Opcode opcode,
                                         absl::Span<const int64_t> bytes, KnownTarget target) {
  OpRule& made = op_rules_.emplace_back();
  made.bytes.assign(bytes.begin(), bytes.end());
  const bool forward = !HasTrait(target, kBlocksForward);
  const bool backward = !HasTrait(target, kBlocksBackward);
  const auto make = [&] {
    StepRule& step = step_rules_.emplace_back(rule, opcode, bytes);
    step.forward = forward;
    step.backward = backward;
    return &step;
  };
  // Rules of thousands of tensors are few.
  if (!StepRule::IsDense(*rule)) {
    made.step = make();
    return &made;
  }
  StepSignature signature = SignatureOf(*rule, opcode, bytes);
  signature.push_back(forward << 1 | int{backward});
  uint64_t hash = 0;
  for (int64_t part : signature) hash = MixHash(hash, part);
  hash = FinishHash(hash);
  const Signed* found = by_signature_.Find(
      hash, [&](const Signed& s) { return s.signature == absl::MakeConstSpan(signature); });
  if (found == nullptr) {
    Arena& arena = module_.context().arena();
    found = arena.New<Signed>(arena.Copy(absl::MakeConstSpan(signature)), make());
    by_signature_.Insert(hash, found);
  }
  made.step = found->step;
  return &made;
}

// All tensors share all dimensions. In a group every member counts as a result, since a cheap
// operand would not be a source for the others.
const OpRule* PropagationGraph::Identity(const Shape* shape, int tensors, bool group) {
  const OpRule** slot = group ? nullptr : &identities_[shape->bare()];
  if (slot != nullptr && *slot != nullptr) return *slot;
  ShardingRule& rule = identity_rules_.emplace_back();
  TensorFactors dims;
  for (int d = 0; d < shape->rank(); ++d) {
    Factor f;
    f.size = shape->dim(d);
    f.name = FactorName(d);
    rule.factors.push_back(std::move(f));
    dims.dims.push_back({d});
  }
  if (!group) rule.operands.assign(1, dims);
  rule.results.assign(group ? tensors : 1, dims);
  const absl::InlinedVector<int64_t, 2> bytes(tensors, shape->byte_size());
  const OpRule* made = MakeRule(&rule, Opcode::kCopy, bytes, KnownTarget::kNone);
  if (slot != nullptr) *slot = made;
  return made;
}

void PropagationGraph::AddEdge(InstrId via, LeafId a, LeafId b) {
  a = program_.leaves.canonical(a);
  b = program_.leaves.canonical(b);
  const Shape* x = program_.LeafShape(a);
  const Shape* y = program_.LeafShape(b);
  if (a == b || !x->IsArray() || !y->IsArray() || x->rank() == 0 || x->dims() != y->dims()) return;
  Node node;
  node.instr = via;
  node.rule = Identity(x, 2, /*group=*/false);
  Push(node, {a, b});
}

void PropagationGraph::AddEdges(InstrId via, InstrId from, InstrId to) {
  const int n =
      std::min(module_.instr(from).shape->num_leaves(), module_.instr(to).shape->num_leaves());
  for (int k = 0; k < n; ++k) {
    AddEdge(via, program_.leaves.leaf(from, k), program_.leaves.leaf(to, k));
  }
}

void PropagationGraph::AddControlFlow(InstrId i) {
  if (!HasTrait(module_.instr(i).opcode, kControlFlow)) return;
  for (const ValueFlow& flow : ValueFlows(module_, i)) AddEdges(i, flow.from, flow.to);
}

void PropagationGraph::AddGroups() {
  std::map<std::pair<bool, int64_t>, std::vector<LeafId>> groups;
  for (uint32_t l = 0; l < program_.constraints.size(); ++l) {
    const ShardingConstraint* c = program_.constraints[l];
    if (c == nullptr || (c->shard_as < 0 && c->shard_like < 0)) continue;
    const bool as = c->shard_as >= 0;
    std::vector<LeafId>& members = groups[{as, as ? c->shard_as : c->shard_like}];
    const LeafId leaf = program_.leaves.canonical(LeafId(l));
    if (std::find(members.begin(), members.end(), leaf) == members.end()) members.push_back(leaf);
  }
  for (auto& [key, members] : groups) {
    const Shape* shape = program_.LeafShape(members[0]);
    members.erase(std::remove_if(members.begin(), members.end(),
                                 [&](LeafId l) {
                                   const Shape* s = program_.LeafShape(l);
                                   return !s->IsArray() || s->dims() != shape->dims();
                                 }),
                  members.end());
    if (members.size() < 2 || shape->rank() == 0) continue;
    Node node;
    node.instr = program_.leaves.instr(members[0]);
    node.rule = Identity(shape, static_cast<int>(members.size()), /*group=*/true);
    Push(node, members);
    if (key.first) shard_as_.push_back(members);
  }
}

void PropagationGraph::FindCheap() {
  cheap_.assign(module_.num_instructions(), false);
  for (int c = 0; c < module_.num_computations(); ++c) {
    for (InstrId i : module_.comp(CompId(c)).instructions) {
      const Instruction& instr = module_.instr(i);
      if (!HasTrait(instr.opcode, kElementwise | kCheap)) continue;
      bool all = true;
      for (InstrId o : module_.operands(instr)) all = all && cheap_[o.value];
      cheap_[i.value] = all;
    }
  }
}

void PropagationGraph::OrderNodes() {
  std::vector<uint32_t> begin(order_.size() + 1, 0);
  for (const Node& node : nodes_) ++begin[order_[node.instr.value] + 1];
  for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  place_of_.resize(nodes_.size());
  node_at_.resize(nodes_.size());
  for (uint32_t n = 0; n < nodes_.size(); ++n) {
    place_of_[n] = begin[order_[nodes_[n].instr.value]]++;
    node_at_[place_of_[n]] = n;
  }
}

void PropagationGraph::BuildAdjacency() {
  const int leaves = program_.leaves.num_leaves();
  adjacent_begin_.assign(leaves + 1, 0);
  for (const LeafId& l : leaf_pool_) ++adjacent_begin_[l.value + 1];
  for (int l = 0; l < leaves; ++l) adjacent_begin_[l + 1] += adjacent_begin_[l];
  adjacent_.resize(leaf_pool_.size());
  std::vector<uint32_t> at(adjacent_begin_.begin(), adjacent_begin_.end() - 1);
  for (uint32_t n = 0; n < nodes_.size(); ++n) {
    for (LeafId l : this->leaves(nodes_[n])) adjacent_[at[l.value]++] = n;
  }
}

}  // namespace internal
}  // namespace shardcall
