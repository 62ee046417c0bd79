// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/warnings.h"

#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/collective_reasons.h"
#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/import/value_flow.h"
#include "shardcall/partitioner/ir/text/source_line.h"
#include "shardcall/sharding/base/human_bytes.h"
#include "shardcall/sharding/codes.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
namespace {

// Notes of earlier stages have their code at the start of the text.
ProgramWarning FromText(const std::string& text) {
  const bool coded = text.size() > 5 && text[0] == 'W' && text[4] == ' ';
  return {coded ? text.substr(0, 4) : "", InstrId(), coded ? text.substr(5) : text};
}

// Reshards that a greedy planner planned, each once.
void AddGreedyPlans(const PartitionedProgram& p, CollectiveReasons& reasons,
                    std::vector<ProgramWarning>* out) {
  const Program& program = p.global->program;
  std::set<std::tuple<InstrId, const Sharding*, const Sharding*>> seen;
  for (const CollectiveRecord& r : p.local.collectives) {
    const LeafId leaf = reasons.MovedLeaf(r);
    if (!leaf.valid() || r.from == nullptr || r.to == nullptr) continue;
    const ReshardPlan& plan =
        PlanReshard(program.module.context(), program.LeafShape(leaf), r.from, r.to);
    if (!plan.greedy || !seen.emplace(r.cause.consumer, r.from, r.to).second) continue;
    out->push_back({"W208", r.cause.consumer, GreedyPlanText(plan)});
  }
}

// Why the first sharded operand of an op is sharded, from which its result has its shards; empty if
// there is none.
std::string WhyMade(const Program& program, InstrId id, CollectiveReasons& reasons,
                    const PropagationResult& shardings) {
  for (const LeafId operand : OperandLeaves(program, id)) {
    const Sharding* const s = shardings.sharding[operand.value];
    if (s != nullptr && s->HasShardedDim()) return reasons.WhySharded(operand);
  }
  return "";
}

// Reshards with full rematerialization: their intermediate state needs more memory than either
// end, since the axes conflict and a dimension is gathered whole and sliced again.
void AddRematerialized(const PartitionedProgram& p, CollectiveReasons& reasons,
                       std::vector<ProgramWarning>* out) {
  const Program& program = p.global->program;
  std::set<std::tuple<InstrId, CollectiveCause::Kind, int, const Sharding*>> seen;
  for (const CollectiveRecord& r : p.local.collectives) {
    const LeafId leaf = reasons.MovedLeaf(r);
    if (!leaf.valid() || r.from == nullptr || r.to == nullptr) continue;
    const ReshardPlan& plan =
        PlanReshard(program.module.context(), program.LeafShape(leaf), r.from, r.to);
    if (!GathersAndCuts(program.LeafShape(leaf), plan)) continue;
    if (!seen.emplace(r.cause.consumer, r.cause.kind, r.cause.index, r.from).second) continue;
    const bool result = r.cause.kind == CollectiveCause::Kind::kResult;
    std::string text = absl::StrCat(
        result ? "result " : "operand ", r.cause.index, ": ", r.from->ToString(), " -> ",
        r.to->ToString(), r.from->mesh() == r.to->mesh() ? "" : " in another order of the devices",
        " moves ", HumanBytes(plan.bytes));
    const std::string value = reasons.WhySharded(leaf);
    if (result) {
      const std::string made = WhyMade(program, r.cause.consumer, reasons, p.global->shardings);
      absl::StrAppend(&text, made.empty() ? "" : absl::StrCat("; the left came from: ", made),
                      "; the right came from: ", value);
    } else {
      // A call without results has no sharding that could be explained.
      const Instruction& consumer = program.module.instr(r.cause.consumer);
      const std::string wanted = consumer.shape->num_leaves() == 0
                                     ? ""
                                     : reasons.WhySharded(program.leaves.leaf(r.cause.consumer));
      absl::StrAppend(&text, "; the left came from: ", value,
                      wanted.empty() ? "" : "; the right from: ", wanted);
    }
    out->push_back({"W201", r.cause.consumer, std::move(text)});
  }
}

// Whether the work of an op is divided over the axes of an operand that it gathers all the same, as
// where weights are gathered for the shards of a batch: no other choice would send less, and no
// device does the work of another.
bool IsWorkDivided(const PartitionedProgram& p, InstrId instr, const Gather& g) {
  const Decision* const d = p.plan.ops[instr.value].decision;
  if (g.kind != Gather::Kind::kCost || d == nullptr) return false;
  const BaseMesh& mesh = d->mesh == nullptr ? *p.global->program.mesh : *d->mesh;
  if (g.from->mesh() != &mesh || g.to->mesh() != &mesh) return false;
  AxisList gathered, divided;
  for (int k = 0; k < g.from->rank(); ++k) {
    const AxisList lost = Minus(mesh, g.from->dim(k), g.to->dim(k));
    gathered.insert(gathered.end(), lost.begin(), lost.end());
  }
  for (const auto& axes : d->factor_axes) divided.insert(divided.end(), axes.begin(), axes.end());
  return Minus(mesh, gathered, divided).empty();
}

// A dimension of an operand that a call takes on fewer shards than it comes in, though its rule has
// a factor of the same size for a dimension of another operand, which keeps these axes: they may be
// one in what the call computes, such as the batch of all operands. Empty: there is none.
std::string ApartText(const BaseMesh& mesh, const Decision& d, int operand, const Sharding& from) {
  const Sharding& to = *d.operands[operand];
  for (int dim = 0; dim < from.rank(); ++dim) {
    const AxisList lost = Minus(mesh, from.dim(dim), to.dim(dim));
    const FactorList& mine = d.rule->operands[operand].dims[dim];
    if (lost.empty() || mine.size() != 1) continue;
    for (int t = 0; t < static_cast<int>(d.rule->operands.size()); ++t) {
      const absl::Span<const FactorList> dims = d.rule->operands[t].dims;
      for (int other = 0; other < static_cast<int>(dims.size()); ++other) {
        if (dims[other].size() != 1 || dims[other] == mine) continue;
        const int f = dims[other][0];
        if (d.rule->factors[f].size == d.rule->factors[mine[0]].size &&
            Minus(mesh, lost, d.factor_axes[f]).empty()) {
          return absl::StrCat("dimension ", dim, " apart from dimension ", other, " of operand ",
                              t);
        }
      }
    }
  }
  return "";
}

// Operands of calls that are gathered for rules which keep dimensions apart.
void AddApart(const PartitionedProgram& p, std::vector<ProgramWarning>* out) {
  const Program& program = p.global->program;
  const Module& m = program.module;
  for (int k = 0; k < m.num_instructions(); ++k) {
    const InstrId id(k);
    const Decision* const d = p.plan.ops[k].decision;
    if (m.instr(id).opcode != Opcode::kCustomCall || d == nullptr || d->rule == nullptr) continue;
    const BaseMesh& mesh = d->mesh == nullptr ? *program.mesh : *d->mesh;
    int operand = 0;
    for (InstrId o : m.operands(id)) {
      for (int leaf = 0; leaf < m.instr(o).shape->num_leaves(); ++leaf, ++operand) {
        const LeafId value = program.leaves.canonical(o, leaf);
        const Sharding* const from = p.global->shardings.sharding[value.value];
        const Sharding* const to = d->operands[operand];
        if (from == nullptr || to == nullptr || from->mesh() != &mesh || to->mesh() != &mesh) {
          continue;
        }
        const std::string apart = ApartText(mesh, *d, operand, *from);
        if (apart.empty()) continue;
        const ReshardPlan& plan = PlanReshard(m.context(), program.LeafShape(value), from, to);
        out->push_back(
            {"W203", id,
             absl::StrCat(
                 "operand ", operand, " is gathered: ", from->ToString(), " -> ", to->ToString(),
                 ", ", HumanBytes(plan.bytes), " sent per device, as the call's rule keeps ", apart,
                 ", which is sharded alike; if they are one, a factor for both keeps it sharded")});
      }
    }
  }
}

}  // namespace

std::string ProgramWarning::ToString(const Module& propagated) const {
  std::string out = code;
  if (instr.valid()) {
    const Instruction& i = propagated.instr(instr);
    const std::string source = SourceLine(propagated, i);
    absl::StrAppend(&out, " %", i.name, source.empty() ? "" : absl::StrCat(" (", source, ")"), ":");
  }
  return out.empty() ? text : absl::StrCat(out, " ", text);
}

absl::string_view ProgramWarning::fix() const {
  const CodeInfo* const info = FindCode(code);
  return info == nullptr ? absl::string_view() : info->fix;
}

std::vector<ProgramWarning> Warnings(const PartitionedProgram& p) {
  std::vector<ProgramWarning> out;
  for (const std::string& w : p.global->program.warnings) out.push_back(FromText(w));
  for (const std::string& w : p.local.warnings) out.push_back(FromText(w));
  CollectiveReasons reasons(p);
  AddRematerialized(p, reasons, &out);
  AddGreedyPlans(p, reasons, &out);
  for (const Fallback& f : p.plan.fallbacks) out.push_back({"W202", f.instr, f.reason});
  for (const auto& [instr, g] : p.plan.gathers) {
    if (g.kind == Gather::Kind::kNoStrategy) continue;  // reported as W202
    if (IsWorkDivided(p, instr, g)) continue;
    out.push_back({"W203", instr, GatherText(g), /*on_request=*/true});
  }
  AddApart(p, &out);
  return out;
}

}  // namespace shardcall
