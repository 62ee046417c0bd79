// SPDX-License-Identifier: Apache-2.0
// Reductions that start from the identity.
//
// XLA counts the init of a reduction as often as suits it: not at all where one element is reduced,
// once for each part of a concatenate (which an all-to-all becomes) or of a reduction in two steps
// (seen in jaxlib 0.10.2 and 0.12.0). From the identity that makes no difference; another init is
// combined with the result:
//   before:  r = reduce(x, init), to_apply=add
//   after:   s = reduce(x, -0), to_apply=add, r = add(broadcast(init), s)
#include "shardcall/partitioner/ir/analysis/identity_constant.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/pass/pass.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
namespace {

// Whether it is a reduction by a monoid from another value than its identity.
bool HasInit(const Module& m, InstrId id, Opcode* monoid) {
  const Instruction& i = m.instr(id);
  if (i.opcode != Opcode::kReduce || !i.shape->IsArray() || i.shape->IsDynamic() ||
      !RecognizeMonoid(m, i.as<ReduceAttrs>().to_apply, monoid)) {
    return false;
  }
  const int64_t elements = m.instr(m.operand(id, 0)).shape->num_elements();
  if (elements == 0 || IdentityLiteral(m.context(), *monoid, i.shape->element_type()) == nullptr ||
      IsIdentityConstant(m, m.operand(id, 1), *monoid)) {
    return false;
  }
  // A maximum of the init and the init is the init, so that only a dropped one matters.
  return !IsIdempotent(*monoid) || elements == i.shape->num_elements();
}

class SeparateInits : public Pass {
 public:
  absl::string_view name() const override { return "separate-inits"; }

  absl::StatusOr<PassResult> Run(const Module& m) override {
    Opcode monoid = Opcode::kAdd;
    return RewriteInstructions(
        m, [&](InstrId id) { return HasInit(m, id, &monoid); },
        [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
          HasInit(m, id, &monoid);
          auto operands = cloner->OperandsOf(id);
          const InstrId init = operands[1];
          operands[1] = b.Identity(monoid, b.type(operands[0]), ZeroSign::kExact);
          const InstrId made = cloner->Add(id, cloner->CopyOf(id), operands, b.computation());
          cloner->CopyRare(id, made);
          cloner->Set(id, b.Binary(monoid, b.BroadcastScalar(init, b.shape(made)), made));
        });
  }
};

}  // namespace

std::unique_ptr<Pass> MakeSeparateInits() { return std::make_unique<SeparateInits>(); }

}  // namespace shardcall
