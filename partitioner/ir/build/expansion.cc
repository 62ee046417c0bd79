// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/expansion.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"

namespace shardcall {
inline namespace internal {
namespace {

class Expander {
 public:
  Expander(const Module& m, absl::flat_hash_map<InstrId, CallExpansion> calls)
      : m_(m),
        calls_(std::move(calls)),
        out_(Module(m.shared_context())),
        cloner_(m, &out_.module),
        monoids_(&out_.module) {}

  Rewritten Run() && {
    cloner_.CopyHeader();
    for (int c = 0; c < m_.num_computations(); ++c) cloner_.AddComputation(CompId(c));
    // A map's computation has to be whole when the map is made.
    for (const CompId c : ComputationPostOrder(m_)) {
      GraphBuilder b(&out_.module, cloner_.now(c), &monoids_);
      // Each call has shardings of its own, also where two give the same.
      b.set_value_numbering(false);
      for (const InstrId id : m_.comp(c).instructions) {
        const auto call = calls_.find(id);
        if (call == calls_.end()) {
          cloner_.Clone(id);
        } else {
          Expand(id, call->second, b);
        }
        out_.NoteOrigin(id);
      }
      cloner_.SetRoot(c);
    }
    out_.module.set_entry(cloner_.now(m_.entry()));
    out_.moved_to = cloner_.TakeInstructions();
    return std::move(out_);
  }

 private:
  void Expand(InstrId id, const CallExpansion& expansion, GraphBuilder& b) {
    const Instruction& call = m_.instr(id);
    const auto operands = cloner_.OperandsOf(id);
    b.set_metadata(call.metadata);
    const std::vector<InstrId> made = expansion.make(b, operands);
    InstrId now = made[0];
    if (call.shape->IsTuple() && !b.shape(now)->IsTuple()) now = b.Tuple(made);
    // What is given as it came needs a place for the call's sharding.
    if (absl::c_linear_search(operands, now)) now = b.Copy(now);
    cloner_.Replace(id, now);
  }

  const Module& m_;
  const absl::flat_hash_map<InstrId, CallExpansion> calls_;
  Rewritten out_;
  ModuleCloner cloner_;
  MonoidTable monoids_;
};

}  // namespace

std::optional<Rewritten> Expand(const Module& m,
                                absl::flat_hash_map<InstrId, CallExpansion> expansions) {
  for (int k = 0; k < m.num_instructions() && !expansions.empty(); ++k) {
    const Instruction& i = m.instr(InstrId(k));
    if (i.opcode != Opcode::kAsyncStart) continue;
    for (const InstrId id : m.comp(i.as<AsyncAttrs>().calls).instructions) expansions.erase(id);
  }
  if (expansions.empty()) return std::nullopt;
  return Expander(m, std::move(expansions)).Run();
}

}  // namespace internal
}  // namespace shardcall
