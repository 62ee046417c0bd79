// SPDX-License-Identifier: Apache-2.0
#include "tests/support/charged.h"

#include <cmath>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/import/value_flow.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall {

namespace {

// What partition callbacks read and make. They decide when they run in which states they take and
// give a value, which is at hand in these then; the plan knows only what they were asked for.
absl::flat_hash_set<LeafId> SeenByCallbacks(const PartitionedProgram& program) {
  absl::flat_hash_set<LeafId> seen;
  const Program& global = program.global->program;
  const auto add = [&](InstrId id) {
    for (int k = 0; k < global.module.instr(id).shape->num_leaves(); ++k) {
      seen.insert(global.leaves.canonical(id, k));
    }
  };
  for (int i = 0; i < global.module.num_instructions(); ++i) {
    const InstrId id(i);
    if (program.plan.ops[i].kind != PlanKind::kCallbacks) continue;
    add(id);
    for (InstrId o : global.module.operands(id)) add(o);
  }
  // An annotated value is at hand in the states of the value without the annotation.
  for (int i = 0; i < global.module.num_instructions(); ++i) {
    const InstrId id(i);
    if (program.plan.ops[i].kind != PlanKind::kIdentity) continue;
    if (seen.contains(global.leaves.canonical(global.module.operand(id, 0)))) add(id);
  }
  return seen;
}

// How far the bytes of an op with so many collectives may differ: elements smaller than a byte are
// sent in whole bytes, in each collective, where plans count their bits.
double Slack(const Program& program, InstrId id, int collectives) {
  const auto narrow = [&](LeafId leaf) {
    const Shape* shape = program.LeafShape(leaf);
    return shape->IsArray() && ElementTypeBits(shape->element_type()) < 8;
  };
  return absl::c_any_of(OperandLeaves(program, id), narrow) ? collectives + 1 : 0;
}

}  // namespace

std::string WhyChargedOtherwise(const PartitionedProgram& program, const SpmdOptions& options) {
  // What stands for a permute between some of the devices, for the sum of a size that devices do
  // not divide, or for groups that are no grid may send more.
  const BackendLimits& backend = options.cost.backend;
  if (!backend.Has(Collective::kPermute) || !backend.Has(Collective::kAllReduce) ||
      backend.groups != GroupForm::kAny) {
    return "";
  }
  const Program& global = program.global->program;
  const Module& m = global.module;
  const absl::flat_hash_set<LeafId> by_callbacks = SeenByCallbacks(program);
  const absl::StatusOr<LocalProgram> emitted =
      Localize(global, program.plan, *program.global->rules, options);
  if (!emitted.ok()) return std::string(emitted.status().message());
  std::vector<double> sent(m.num_instructions());
  std::vector<int> collectives(m.num_instructions());
  for (const CollectiveRecord& r : emitted->collectives) {
    const CollectiveCause::Kind kind = r.cause.kind;
    if (kind == CollectiveCause::Kind::kProgram || kind == CollectiveCause::Kind::kCarry) continue;
    sent[r.cause.consumer.value] += r.bytes_moved;
    ++collectives[r.cause.consumer.value];
  }
  for (size_t k = 0; k < sent.size(); ++k) {
    const OpPlan& op = program.plan.ops[k];
    if (op.kind != PlanKind::kRule || op.decision->rule == nullptr) continue;
    const InstrId id(static_cast<uint32_t>(k));
    const auto copied = program.plan.copied.find(id);
    const double charged =
        op.decision->bytes + (copied == program.plan.copied.end() ? 0 : copied->second.first);
    if (std::abs(charged - sent[k]) <= 1e-6 * (1 + charged) + Slack(global, id, collectives[k])) {
      continue;
    }
    const bool may_be_less = absl::c_any_of(OperandLeaves(global, id), [&](LeafId l) {
      return by_callbacks.contains(global.leaves.canonical(l));
    });
    if (may_be_less && sent[k] < charged) continue;
    const Instruction& i = m.instr(id);
    return absl::StrCat("%", i.name, " (", op.decision->strategy->name, ") was charged with ",
                        charged, " bytes and sends ", sent[k]);
  }
  return "";
}

}  // namespace shardcall
