// SPDX-License-Identifier: Apache-2.0
// The dump of the plan: one line per instruction with its kind, shardings and bytes.
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/spmd/plan/plan.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall {
namespace {

absl::string_view KindName(PlanKind kind) {
  switch (kind) {
    case PlanKind::kDead: return "dead";
    case PlanKind::kParameter: return "parameter";
    case PlanKind::kConstant: return "constant";
    case PlanKind::kAlias: return "alias";
    case PlanKind::kBarrier: return "barrier";
    case PlanKind::kRule: return "rule";
    case PlanKind::kEqual: return "equal";
    case PlanKind::kIdentity: return "identity";
    case PlanKind::kBoundary: return "boundary";
    case PlanKind::kWhile: return "while";
    case PlanKind::kConditional: return "conditional";
    case PlanKind::kCall: return "call";
    case PlanKind::kManual: return "manual";
    case PlanKind::kCallbacks: return "callbacks";
    case PlanKind::kOneDevice: return "one device";
    case PlanKind::kFeed: return "feed";
  }
  return "?";
}

void AppendStates(const char* title, absl::Span<const Sharding* const> states, std::string* out) {
  if (states.empty()) return;
  absl::StrAppend(out, " ", title, " ");
  for (size_t k = 0; k < states.size(); ++k) {
    absl::StrAppend(out, k ? ", " : "", states[k] == nullptr ? "-" : states[k]->ToString());
  }
}

}  // namespace

std::string Plan::ToString(const Program& program) const {
  std::string out;
  const Module& m = program.module;
  for (CompId c : PartitionedComputations(program, ComputationPostOrder(m))) {
    absl::StrAppend(&out, "%", m.comp(c).name, " {\n");
    for (InstrId id : m.comp(c).instructions) {
      const OpPlan& op = ops[id.value];
      absl::StrAppend(&out, "  %", m.instr(id).name, " = ", OpcodeText(m.instr(id).opcode), " ",
                      KindName(op.kind));
      const Strategy* strategy = op.decision == nullptr ? nullptr : op.decision->strategy;
      if (strategy != nullptr && strategy != &kLocalStrategy) {
        absl::StrAppend(&out, " by \"", strategy->name, "\"");
      }
      if (op.decision != nullptr) {
        const Decision& d = *op.decision;
        const BaseMesh& mesh = d.mesh != nullptr ? *d.mesh : *program.mesh;
        for (size_t f = 0; f < d.factor_axes.size(); ++f) {
          if (d.factor_axes[f].empty()) continue;
          absl::StrAppend(&out, " factor ", f, "={");
          for (size_t i = 0; i < d.factor_axes[f].size(); ++i) {
            absl::StrAppend(&out, i ? "," : "", mesh.AxisName(d.factor_axes[f][i]));
          }
          absl::StrAppend(&out, "}");
        }
        AppendStates("from", d.operands, &out);
        AppendStates("yields", d.produced, &out);
        if (d.final != d.produced) AppendStates("stored as", d.final, &out);
        if (d.bytes > 0) absl::StrAppend(&out, " moves ", d.bytes);
      }
      absl::StrAppend(&out, "\n");
    }
    absl::StrAppend(&out, "}\n\n");
  }
  return out;
}

}  // namespace shardcall
