// SPDX-License-Identifier: Apache-2.0
#include "tests/support/charged.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall {

std::string WhyChargedOtherwise(const PartitionedProgram& program, const SpmdOptions& options) {
  const Module& m = program.global->program.module;
  const absl::StatusOr<LocalProgram> emitted =
      Localize(program.global->program, program.plan, *program.global->rules, options);
  if (!emitted.ok()) return std::string(emitted.status().message());
  std::vector<double> sent(m.num_instructions());
  for (const CollectiveRecord& r : emitted->collectives) {
    const CollectiveCause::Kind kind = r.cause.kind;
    if (kind != CollectiveCause::Kind::kOperand && kind != CollectiveCause::Kind::kResult) continue;
    sent[r.cause.consumer.value] += r.bytes_moved;
  }
  for (size_t k = 0; k < sent.size(); ++k) {
    const OpPlan& op = program.plan.ops[k];
    if (op.kind != PlanKind::kRule || op.decision->rule == nullptr) continue;
    const double charged = op.decision->bytes;
    if (std::abs(charged - sent[k]) <= 1e-6 * (1 + charged)) continue;
    const Instruction& i = m.instr(InstrId(static_cast<uint32_t>(k)));
    return absl::StrCat("%", i.name, " (", op.decision->strategy->name, ") was charged with ",
                        charged, " bytes and sends ", sent[k]);
  }
  return "";
}

}  // namespace shardcall
