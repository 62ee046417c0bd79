// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/memory/in_place.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/analysis/output_aliasing.h"
#include "shardcall/partitioner/ir/memory/fused_ops.h"

namespace shardcall {
inline namespace internal {
namespace {

// Of what is computed on the way to an op, so much is looked at.
constexpr int kMostFusedOps = 64;

// Whether no operand of an elementwise op is a reshape, or all are, so that XLA moves it behind.
bool AreReshapedAlike(const Module& m, InstrId id) {
  absl::Span<const int64_t> dims;
  bool first = true;
  for (const InstrId o : m.operands(id)) {
    const ValueLeaf from = SourceOf(m, {o, 0});
    if (IsOfOneElement(m, from.value)) continue;
    const absl::Span<const int64_t> own = m.instr(from.value).shape->leaf(from.leaf)->dims();
    if (!first && own != dims) return false;
    dims = own;
    first = false;
  }
  return true;
}

bool ReadsByElement(const Module& m, InstrId id) {
  const Opcode opcode = m.instr(id).opcode;
  return HasTrait(opcode, kElementwise) && opcode != Opcode::kCopy && AreReshapedAlike(m, id);
}

}  // namespace

bool MayOverwrite(const Module& m, InstrId id) {
  return IsByElement(m, id) || m.instr(id).opcode == Opcode::kScatter;
}

absl::flat_hash_set<ValueLeaf> LeavesReadInPlace(const Module& m, const std::vector<bool>& fused,
                                                 InstrId id) {
  absl::flat_hash_set<ValueLeaf> in_place, elsewhere;
  absl::InlinedVector<std::pair<InstrId, bool>, 8> stack = {{id, true}};
  const Opcode opcode = m.instr(id).opcode;
  const bool changes = HasTrait(opcode, kReplacesPart) || opcode == Opcode::kScatter;
  for (int steps = 0; !stack.empty(); ++steps) {
    if (steps == kMostFusedOps) return {};
    const auto [at, aligned] = stack.back();
    stack.pop_back();
    const bool by_element = aligned && ReadsByElement(m, at);
    for (const InstrId o : m.operands(at)) {
      if (!m.instr(o).shape->IsArray()) continue;
      const ValueLeaf from = SourceOf(m, {o, 0});
      const bool here = by_element || (changes && at == id && o == m.operand(id, 0));
      if (fused[from.value.value]) {
        stack.push_back({from.value, here});
      } else {
        (here ? in_place : elsewhere).insert(from);
      }
    }
  }
  for (const ValueLeaf& leaf : elsewhere) in_place.erase(leaf);
  return in_place;
}

std::vector<ValueLeaf> LeavesOverwrittenByCall(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  if (i.opcode == Opcode::kRaggedAllToAll) return {SourceOf(m, {m.operand(id, 1), 0})};
  std::vector<OutputAlias> aliases;
  if (i.opcode != Opcode::kCustomCall ||
      !ParseOutputAliasing(i.as<CustomCallAttrs>().output_to_operand_aliasing, &aliases)) {
    return {};
  }
  std::vector<ValueLeaf> out;
  for (const OutputAlias& alias : aliases) {
    const InstrId o = m.operand(id, static_cast<int>(alias.operand));
    out.push_back(SourceOf(m, {o, FirstLeafAt(m.instr(o).shape, alias.inner)}));
  }
  return out;
}

}  // namespace internal
}  // namespace shardcall
