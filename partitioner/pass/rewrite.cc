// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/pass/rewrite.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"

namespace shardcall {
inline namespace internal {

namespace {

using Make = absl::FunctionRef<void(InstrId, GraphBuilder& b, ModuleCloner* cloner)>;
using Order = absl::FunctionRef<absl::Span<const InstrId>(CompId)>;

class Rewriting {
 public:
  Rewriting(const Module& m, const std::vector<bool>& concerned, Make make, Order order,
            PassResult* out)
      : m_(m),
        concerned_(concerned),
        make_(make),
        order_(order),
        out_(*out),
        cloner_(m, &out->module),
        monoids_(&out->module) {}

  void Run() {
    cloner_.CopyHeader();
    FindDissolved();
    for (int c = 0; c < m_.num_computations(); ++c) {
      if (!dissolved_[c]) cloner_.AddComputation(CompId(c));
    }
    // A map's computation has to be whole when the map is made.
    for (const CompId c : ComputationPostOrder(m_)) {
      if (dissolved_[c.value]) continue;
      GraphBuilder b(&out_.module, cloner_.now(c), &monoids_);
      for (const InstrId id : order_(c)) Copy(id, b);
      cloner_.SetRoot(c);
    }
    out_.module.set_entry(cloner_.now(m_.entry()));
    out_.moved_to = cloner_.TakeInstructions();
    out_.comp_moved_to = cloner_.TakeComputations();
  }

 private:
  // Computations of async-starts with an op that is concerned.
  void FindDissolved() {
    dissolved_.resize(m_.num_computations());
    for (int k = 0; k < m_.num_instructions(); ++k) {
      if (m_.instr(InstrId(k)).opcode != Opcode::kAsyncStart) continue;
      const CompId wrapped = Wrapped(InstrId(k));
      dissolved_[wrapped.value] = absl::c_any_of(m_.comp(wrapped).instructions,
                                                 [&](InstrId id) { return concerned_[id.value]; });
    }
  }

  CompId Wrapped(InstrId async) const { return m_.instr(async).as<AsyncAttrs>().calls; }

  void Copy(InstrId id, GraphBuilder& b) {
    const Instruction& i = m_.instr(id);
    if (i.attrs->kind == AttrKind::kAsync && dissolved_[Wrapped(id).value]) {
      if (i.opcode == Opcode::kAsyncStart) {
        Dissolve(id, b);
      } else {
        cloner_.Set(id, cloner_.now(m_.operand(id, 0)));
      }
    } else if (concerned_[id.value]) {
      b.set_metadata(i.metadata);
      make_(id, b, &cloner_);
    } else {
      cloner_.Clone(id);
    }
  }

  // Copies what an async-start calls to its place.
  void Dissolve(InstrId start, GraphBuilder& b) {
    const Computation& wrapped = m_.comp(Wrapped(start));
    for (const InstrId id : wrapped.instructions) {
      const Instruction& i = m_.instr(id);
      if (i.opcode == Opcode::kParameter) {
        const auto number = static_cast<int>(i.as<ParameterAttrs>().number);
        cloner_.Set(id, cloner_.now(m_.operand(start, number)));
      } else if (concerned_[id.value]) {
        b.set_metadata(i.metadata);
        make_(id, b, &cloner_);
      } else {
        cloner_.CopyRare(
            id, cloner_.Add(id, cloner_.CopyOf(id), cloner_.OperandsOf(id), b.computation()));
      }
    }
    const InstrId now = cloner_.now(wrapped.root);
    cloner_.CopyOrder(start, now);
    cloner_.Set(start, now);
  }

  const Module& m_;
  const std::vector<bool>& concerned_;
  const Make make_;
  const Order order_;
  PassResult& out_;
  ModuleCloner cloner_;
  MonoidTable monoids_;
  std::vector<bool> dissolved_;  // by old computation
};

}  // namespace

PassResult RewriteInstructions(const Module& m, absl::FunctionRef<bool(InstrId)> concerns,
                               Make make) {
  return RewriteInstructions(m, concerns, make,
                             [&](CompId c) { return absl::MakeConstSpan(m.comp(c).instructions); });
}

PassResult RewriteInstructions(const Module& m, absl::FunctionRef<bool(InstrId)> concerns,
                               Make make, Order order) {
  PassResult out((Module(m.shared_context())));
  std::vector<bool> concerned(m.num_instructions());
  for (int k = 0; k < m.num_instructions(); ++k) concerned[k] = concerns(InstrId(k));
  out.changed = absl::c_linear_search(concerned, true);
  if (out.changed) Rewriting(m, concerned, make, order, &out).Run();
  return out;
}

void Follow(PassResult next, PassResult* all) {
  for (InstrId& id : all->moved_to) id = id.valid() ? next.moved_to[id.value] : id;
  for (CompId& id : all->comp_moved_to) id = id.valid() ? next.comp_moved_to[id.value] : id;
  all->module = std::move(next.module);
  all->changed = true;
}

}  // namespace internal
}  // namespace shardcall
