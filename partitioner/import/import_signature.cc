// SPDX-License-Identifier: Apache-2.0
// Entry parameters and results: which shardings are fixed and which propagation may set.
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/import/annotations.h"
#include "shardcall/partitioner/import/import_annotations.h"
#include "shardcall/sharding/convert/convert.h"
#include "shardcall/sharding/tuple_leaves.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {
namespace {

// A single flag applies to all leaves.
std::vector<bool> Spread(const std::vector<bool>& flags, int leaves) {
  if (flags.size() == 1) return std::vector<bool>(leaves, flags[0]);
  std::vector<bool> out = flags;
  out.resize(leaves, false);
  return out;
}

}  // namespace

// What an annotation of a result says if propagation may set the result: the axes that it has at
// least. Null if it has none.
const ShardingConstraint* Annotations::Opened(const ShardingConstraint& c) {
  if (c.unreduced.empty() && c.maximal_device < 0 &&
      absl::c_all_of(c.dims, [](const auto& dim) { return dim.axes.empty(); })) {
    return nullptr;
  }
  ShardingConstraint open = c;
  for (ShardingConstraint::Dim& dim : open.dims) dim.open = true;
  return Own(std::move(open));
}

bool Annotations::InNestedTuple(int flat) const {
  const Shape* shape = m_.instr(m_.comp(m_.entry()).root).shape;
  return shape->IsTuple() && shape->tuple()[ElementOfLeaf(*shape, flat)]->IsTuple();
}

bool Annotations::IsStacked(LeafId value) const {
  const Instruction& loop = m_.instr(p_.leaves.instr(value));
  if (loop.opcode != Opcode::kWhile) return false;
  const InstrId root = m_.comp(loop.as<WhileAttrs>().body).root;
  const LeafId after = p_.leaves.canonical(root, p_.leaves.index(value));
  return HasTrait(m_.instr(p_.leaves.instr(after)).opcode, kReplacesPart);
}

// Requests a `Sharding` custom call on result `flat`, so that the result can be sharded otherwise
// than its producer and the producer's other users.
void Annotations::AskForIdentity(int flat, const ShardingConstraint& c, ModuleEdit* edit) {
  ModuleEdit::Identity identity;
  Context& context = m_.context();
  if (p_.uses_shardy) {
    absl::StatusOr<NamedSharding> named = ToNamedSharding(c, /*inline_mesh=*/false);
    if (!named.ok()) return;
    const std::string text = SdyShardingPerValueText(absl::MakeConstSpan(&*named, 1));
    identity.frontend = WithAttribute(context, nullptr, kSdySharding, text);
  } else {
    absl::StatusOr<HloSharding> sharding = ToHloShardingOrV3(c);
    if (!sharding.ok()) return;
    identity.sharding = InternHloSharding(context, *std::move(sharding));
  }
  if (InNestedTuple(flat)) return;  // it is resharded where the program ends
  const InstrId root = m_.comp(m_.entry()).root;
  identity.operand = flat;
  if (m_.instr(root).opcode == Opcode::kTuple) {
    identity.user = root;
    identity.operand = ElementOfLeaf(*m_.instr(root).shape, flat);
  }
  edit->identities.push_back(identity);
}

absl::Status Annotations::ReadSignature(ModuleEdit* edit) {
  const Computation& entry = m_.comp(m_.entry());
  int leaves = 0;
  for (InstrId p : entry.parameters) leaves += m_.instr(p).shape->num_leaves();
  p_.may_set_parameter = Spread(m_.header.propagate_to_parameters, leaves);
  int flat = 0;
  for (InstrId p : entry.parameters) {
    for (int k = 0; k < m_.instr(p).shape->num_leaves(); ++k, ++flat) {
      const Shape* leaf = LeafShape(p, k);
      const ShardingConstraint*& c = p_.constraints[p_.leaves.leaf(p, k).value];
      if (leaf == nullptr || c != nullptr || p_.may_set_parameter[flat]) continue;
      c = Own(ClosedConstraint(p_.mesh, leaf->rank()));
    }
  }

  const InstrId root = entry.root;
  leaves = m_.instr(root).shape->num_leaves();
  p_.may_set_output = Spread(m_.header.propagate_to_output, leaves);
  p_.unstated_output = inlined_.unstated_results;
  p_.unstated_output.resize(leaves, false);
  // The constraints that the results' values have elsewhere in the program.
  absl::flat_hash_map<uint32_t, std::vector<LeafId>> told;
  for (int k = 0; k < leaves; ++k) told[p_.leaves.canonical(root, k).value];
  for (int l = 0; l < p_.leaves.num_leaves(); ++l) {
    const ShardingConstraint* c = p_.constraints[l];
    if (c == nullptr || c->unknown) continue;
    const auto it = told.find(p_.leaves.canonical(LeafId(l)).value);
    if (it != told.end()) it->second.push_back(LeafId(l));
  }
  // Only the result is annotated, not the value. That does not bind the value inside the program:
  // it is cut so at its end, or at least so where propagation may set the result.
  std::vector<bool> alone(leaves, false);
  for (int k = 0; k < leaves; ++k) {
    const LeafId id = p_.leaves.leaf(root, k);
    const LeafId value = p_.leaves.canonical(id);
    const auto of_root = [&](LeafId l) { return p_.leaves.instr(l) == root; };
    const ShardingConstraint*& c = p_.constraints[id.value];
    alone[k] = c != nullptr && value != id && !InNestedTuple(k) &&
               absl::c_all_of(told[value.value], of_root);
    if (alone[k] && p_.may_set_output[k]) c = Opened(*c);
  }
  for (int k = 0; k < leaves; ++k) {
    const Shape* leaf = LeafShape(root, k);
    if (leaf == nullptr) continue;
    const LeafId id = p_.leaves.leaf(root, k);
    const std::vector<LeafId>& others = told[p_.leaves.canonical(id).value];
    const ShardingConstraint*& c = p_.constraints[id.value];
    // Shardy annotates the value (FuncResultSharding), not the result.
    const bool given = c != nullptr || (p_.uses_shardy && !others.empty());
    const bool unstated = !given && !p_.may_set_output[k];
    if (unstated) {
      c = Own(ClosedConstraint(p_.mesh, leaf->rank()));
      // What a loop stacks is cut once, after it, not in each iteration.
      alone[k] = others.empty() && !InNestedTuple(k) && IsStacked(p_.leaves.canonical(id));
    }
    if (c == nullptr || c->unknown) continue;
    const auto agrees = [&](LeafId l) {
      return p_.constraints[l.value] == nullptr || SameConstraint(*p_.constraints[l.value], *c);
    };
    const bool agree = absl::c_all_of(others, agrees);
    if (unstated && (others.empty() || !agree)) p_.unstated_output[k] = true;
    if ((alone[k] && !p_.may_set_output[k]) || !agree) AskForIdentity(k, *c, edit);
  }
  edit->unstated_results = p_.unstated_output;
  return absl::OkStatus();
}

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall
