// SPDX-License-Identifier: Apache-2.0
// Async pairs. `%s = ((f32[8]), f32[8]) all-to-all-start(%x), ..` is a short
// form: it stands for an async-start that calls a computation made only of
// parameters and the all-to-all.
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/text/parse/instruction_maker.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

bool InstructionMaker::BuildAsync(Scratch* s, const Attributes** out) {
  const Opcode form = s->opcode;
  AsyncAttrs a;
  a.sugar = s->wrapped < kNumOpcodes;
  absl::string_view thread;
  if (s->Has(Attr::kAsyncExecutionThread)) thread = (*s)[Attr::kAsyncExecutionThread].text;
  if (thread == "main") thread = {};
  const CompId calls =
      s->Has(Attr::kCalls) ? CompId(static_cast<uint32_t>((*s)[Attr::kCalls].value)) : CompId();
  if (form == Opcode::kAsyncStart) {
    a.execution_thread = thread;
    a.calls = calls;
    // In the short form the attribute belongs to the wrapped op, if that op has it.
    const bool of_op =
        a.sugar &&
        AttrsOf(static_cast<Opcode>(s->wrapped)).allowed.Has(Attr::kOutputToOperandAliasing);
    if (s->Has(Attr::kOutputToOperandAliasing) && !of_op) {
      a.aliasing = (*s)[Attr::kOutputToOperandAliasing].text;
    }
    // The computation runs on the thread that the start specifies.
    if (!a.sugar) module_.mutable_comp(calls).execution_thread = std::string(thread);
    if (a.sugar && !WrapAsync(s, thread, &a.calls)) return false;
    *out = InternAttributes(context_, a);
    return true;
  }
  // update and done refer to the start at the beginning of the chain of their operands.
  if (s->operands.size() != 1) {
    return lex_.Fail(s->opcode_at, "E012",
                     absl::StrCat("Wrong number of operands of ", OpcodeText(form)), "1",
                     absl::StrCat(s->operands.size()));
  }
  const Instruction& previous = module_.instr(s->operands[0]);
  if (previous.opcode != Opcode::kAsyncStart && previous.opcode != Opcode::kAsyncUpdate) {
    return lex_.Fail(s->opcode_at, "E020", "The operand is not an async start or update",
                     "the start or update of the same op",
                     absl::StrCat("'", OpcodeText(previous.opcode), "'"));
  }
  const AsyncAttrs& start = previous.as<AsyncAttrs>();
  if ((calls.valid() && calls != start.calls) ||
      (s->Has(Attr::kAsyncExecutionThread) && thread != start.execution_thread)) {
    return lex_.Fail(s->opcode_at, "E020", "Async ops of one chain disagree",
                     "the computation and thread of the start");
  }
  const Opcode root = module_.instr(module_.comp(start.calls).root).opcode;
  if (a.sugar && static_cast<int>(root) != s->wrapped) {
    return lex_.Fail(s->opcode_at, "E020", "Async ops of one chain disagree",
                     absl::StrCat("'", OpcodeText(root), "' as at the start"),
                     lex_.TokenAt(s->opcode_at));
  }
  a.calls = start.calls;
  a.execution_thread = start.execution_thread;
  if (s->proto.shape == nullptr) {
    const Shape* shape = previous.shape;
    const bool ok = shape->IsTuple() && shape->tuple().size() >= 2;
    if (form == Opcode::kAsyncUpdate) s->proto.shape = shape;
    if (form == Opcode::kAsyncDone && ok) s->proto.shape = shape->tuple()[1];
  }
  *out = InternAttributes(context_, a);
  return true;
}

// Makes the computation that the short form implies.
bool InstructionMaker::WrapAsync(Scratch* s, absl::string_view thread, CompId* out) {
  const auto wrapped = static_cast<Opcode>(s->wrapped);
  const Shape* shape = s->proto.shape;
  if (shape == nullptr) {
    return lex_.Fail(s->opcode_at, "E015", "An async start needs its shape",
                     "a shape before the opcode");
  }
  bool ok = shape->IsTuple() && shape->tuple().size() >= 2 && shape->tuple()[0]->IsTuple() &&
            shape->tuple()[0]->tuple().size() == s->operands.size();
  for (size_t i = 0; ok && i < s->operands.size(); ++i) {
    ok = shape->tuple()[0]->tuple()[i]->bare() == module_.instr(s->operands[i]).shape->bare();
  }
  if (!ok) {
    return lex_.Fail(s->opcode_at, "E020", "The shape does not fit an async start",
                     "((operand shapes..), result, ..)", shape->ToString(false));
  }
  const int arity = GetOpcodeInfo(wrapped).arity;
  if (arity >= 0 && s->operands.size() != static_cast<size_t>(arity)) {
    return lex_.Fail(s->opcode_at, "E012",
                     absl::StrCat("Wrong number of operands of ", OpcodeText(wrapped)),
                     absl::StrCat(arity), absl::StrCat(s->operands.size()));
  }
  Instruction root;
  root.opcode = wrapped;
  root.shape = shape->tuple()[1];
  if (!records_.Build(s, wrapped, &root.attrs)) return false;
  root.metadata = s->proto.metadata;
  root.frontend = s->proto.frontend;
  root.backend_config = s->proto.backend_config;
  const CompId comp = module_.AddComputation("async_wrapped");
  module_.mutable_comp(comp).execution_thread = std::string(thread);
  absl::InlinedVector<InstrId, 8> parameters;
  for (size_t i = 0; i < s->operands.size(); ++i) {
    ParameterAttrs a;
    a.number = static_cast<int64_t>(i);
    parameters.push_back(module_.Add(comp, Opcode::kParameter, shape->tuple()[0]->tuple()[i], {},
                                     InternAttributes(context_, a)));
  }
  module_.SetRoot(comp, module_.Add(comp, root, parameters));
  *out = comp;
  return true;
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
