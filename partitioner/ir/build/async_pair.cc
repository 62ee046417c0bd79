// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/async_pair.h"

#include "absl/container/inlined_vector.h"

namespace shardcall {
inline namespace internal {
namespace {

// A computation that contains only the collective.
CompId Wrap(const Instruction& collective, absl::Span<const Shape* const> operands, Module* out) {
  const CompId comp = out->AddComputation("async_wrapped");
  absl::InlinedVector<InstrId, 8> parameters;
  for (size_t k = 0; k < operands.size(); ++k) {
    ParameterAttrs attrs;
    attrs.number = static_cast<int64_t>(k);
    parameters.push_back(out->Add(comp, Opcode::kParameter, operands[k], {},
                                  InternAttributes(out->context(), attrs)));
  }
  Instruction root = collective;
  root.name = {};
  out->SetRoot(comp, out->Add(comp, root, parameters));
  return comp;
}

}  // namespace

Instruction AsyncStartOf(const Instruction& collective, absl::Span<const Shape* const> operands,
                         Module* out) {
  Context& context = out->context();
  Instruction start = collective;
  const Shape* const given = context.MakeTuple(operands);
  if (const AsyncForms* const forms = FormsOf(start.opcode); forms != nullptr) {
    start.opcode = forms->start;
    // The start of an all-reduce has the shape of its result only.
    if (forms->whole != Opcode::kAllReduce) {
      start.shape = context.MakeTuple({operands.size() == 1 ? operands[0] : given, start.shape});
    }
    return start;
  }
  AsyncAttrs async;
  async.calls = Wrap(start, operands, out);
  async.sugar = true;
  start.attrs = InternAttributes(context, async);
  start.opcode = Opcode::kAsyncStart;
  start.shape = context.MakeTuple({given, start.shape});
  return start;
}

Instruction AsyncDoneOf(const Instruction& start, const Shape* result) {
  Instruction done;
  done.shape = result;
  const AsyncForms* const forms = FormsStartedBy(start.opcode);
  done.opcode = forms != nullptr ? forms->done : Opcode::kAsyncDone;
  done.attrs = forms != nullptr ? NoAttributes() : start.attrs;
  return done;
}

InstrId WrappedCollective(const Module& module, const Instruction& start) {
  const Computation& comp = module.comp(start.as<AsyncAttrs>().calls);
  const Instruction& root = module.instr(comp.root);
  if (!HasTrait(root.opcode, kCollectiveOp) || HasTrait(root.opcode, kAsyncForm)) return InstrId();
  for (InstrId id : comp.instructions) {
    if (id != comp.root && module.instr(id).opcode != Opcode::kParameter) return InstrId();
  }
  for (InstrId id : comp.parameters) {
    if (!module.instr(id).shape->IsArray()) return InstrId();
  }
  return comp.root;
}

}  // namespace internal
}  // namespace shardcall
