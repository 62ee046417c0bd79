// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/expansion.h"

#include "shardcall/partitioner/ir/analysis/called_computations.h"

namespace shardcall {
inline namespace internal {
namespace {

void ExpandOne(const Module& m, InstrId id, const CallExpansion& expansion, GraphBuilder& b,
               ModuleCloner& cloner) {
  const auto operands = cloner.OperandsOf(id);
  const int before = b.module().num_instructions();
  b.set_metadata(m.instr(id).metadata);
  const std::vector<InstrId> made = expansion.make(b, operands);
  InstrId now = made[0];
  if (m.instr(id).shape->IsTuple() && !b.shape(now)->IsTuple()) now = b.Tuple(made);
  // What is given as it came needs a place for the call's sharding.
  if (now.value < before) now = b.Copy(now);
  cloner.Replace(id, now);
}

}  // namespace

std::optional<Rewritten> Expand(const Module& m,
                                absl::flat_hash_map<InstrId, CallExpansion> expansions) {
  for (int k = 0; k < m.num_instructions() && !expansions.empty(); ++k) {
    const Instruction& i = m.instr(InstrId(k));
    const bool fusion = i.opcode == Opcode::kFusion;
    if (!fusion && i.opcode != Opcode::kAsyncStart) continue;
    for (CompId c : CalledComputations(m, i)) {
      for (const InstrId id : m.comp(c).instructions) {
        const auto expansion = expansions.find(id);
        if (expansion == expansions.end() || (fusion && !expansion->second.leaves_out)) continue;
        expansions.erase(expansion);
      }
    }
  }
  if (expansions.empty()) return std::nullopt;
  return RewriteOps(m, [&](InstrId id, GraphBuilder& b, ModuleCloner& cloner) {
    const auto expansion = expansions.find(id);
    if (expansion == expansions.end()) return false;
    ExpandOne(m, id, expansion->second, b, cloner);
    return true;
  });
}

}  // namespace internal
}  // namespace shardcall
