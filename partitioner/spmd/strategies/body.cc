// SPDX-License-Identifier: Apache-2.0
// Custom calls whose target has a body (RegisterRuleWithBody). The body says by what it builds
// which collectives a candidate has: it is let build the call in a module that is thrown away.
#include "shardcall/partitioner/custom_call/rule_callbacks.h"
#include "shardcall/partitioner/spmd/callbacks/callback_context.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall {
inline namespace internal {
namespace {

// The axes of each factor, as they were decided.
FactorAssignment Factors(const Decision& d, const BaseMesh* mesh,
                         absl::Span<const AxisRef> manual) {
  IndexSet sharded;
  const int count = static_cast<int>(d.factor_axes.size());
  for (int f = 0; f < count; ++f) {
    if (!d.factor_axes[f].empty()) sharded.Insert(f);
  }
  FactorAssignment out(*d.rule, mesh, manual, sharded);
  for (int f = 0; f < count; ++f) out.Extend(f, d.factor_axes[f]);
  return out;
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  const Decision& d = op.decision;
  const auto operand = [&](int i, const Sharding* sharding) {
    if (sharding == nullptr) return op.operands[i];
    return ops.ReshardInCall({CollectiveCause::Kind::kOperand, op.id, i}, op.operands[i],
                             op.operand_shapes[i], d.operands[i], sharding);
  };
  CallbackContext context(ops, op.id, d, operand);
  const FactorAssignment factors = Factors(d, context.call().mesh, context.call().manual_axes);
  ops.Fail(AskAuthor(context.call(), "body", [&] {
    return BuildByRule(context, *d.rule, factors, *ops.rules().body(op.id));
  }));
  ops.Fail(context.CheckAllSet());
  if (context.structure_open()) ops.NoteUnverified(op.id);
  CallbackRecord record = context.TakeRecord();
  return LocalIds(record.results.begin(), record.results.end());
}

// An error of the body is told where the call is emitted.
bool Complete(const OpQuery& op, Candidate* c) {
  const Program& program = op.body->program;
  Module module(program.module.shared_context());
  OpBuilder ops(program, op.body->rules, op.body->options, &module);
  ops.StartComputation(module.AddComputation("trial"));
  if (c->d.mesh != nullptr) ops.emitter().set_mesh(c->d.mesh);
  LocalOp local{op.id, op.instr(), c->d, {}, {}, {}};
  for (size_t k = 0; k < op.shapes.size(); ++k) {
    const Shape* shape = op.shapes[k];
    local.operand_shapes.push_back(shape);
    const Sharding* s = c->operands[k];
    local.operands.push_back(ops.builder().Parameter(
        static_cast<int64_t>(k), s == nullptr ? shape : LocalShape(ops.context(), shape, s)));
  }
  Emit(ops, local);
  for (const CollectiveRecord& r : ops.records()) {
    c->emitted.push_back(r.traffic());
  }
  return true;
}

}  // namespace

constexpr Strategy kBodyStrategy{.name = "body", .complete = Complete, .emit = Emit};

}  // namespace internal
}  // namespace shardcall
