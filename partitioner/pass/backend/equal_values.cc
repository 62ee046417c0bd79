// SPDX-License-Identifier: Apache-2.0
//   before:  a = broadcast(zero), r = maximum(x, a), b = broadcast(zero), s = scatter(b, ..)
//   after:   a = broadcast(zero), r = maximum(x, a), s = scatter(a, ..)
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/ir/analysis/side_effects.h"
#include "shardcall/partitioner/pass/backend/backend_passes.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
inline namespace internal {

PassResult ShareEqualValues(const Module& m) {
  using Operands = absl::InlinedVector<InstrId, 8>;
  using Value = std::tuple<CompId, Opcode, const Shape*, const Attributes*, Operands>;
  absl::flat_hash_map<Value, InstrId> first;
  return RewriteInstructions(
      m, [&](InstrId id) { return IsPure(m.instr(id).opcode); },
      [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
        const Instruction copy = cloner->CopyOf(id);
        const Value value(b.computation(), copy.opcode, copy.shape, copy.attrs,
                          cloner->OperandsOf(id));
        const auto [found, is_new] = first.try_emplace(value);
        if (is_new) found->second = cloner->Clone(id);
        cloner->Set(id, found->second);
      });
}

}  // namespace internal
}  // namespace shardcall
