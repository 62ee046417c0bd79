// SPDX-License-Identifier: Apache-2.0
// Custom calls without a rule, with callbacks, and with rules that uneven
// shards break.
#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "shardcall/partitioner/ir/text/source_line.h"
#include "shardcall/partitioner/spmd/plan/planner.h"
#include "shardcall/partitioner/spmd/strategies/strategy.h"
#include "shardcall/sharding/base/human_bytes.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

// The rule string that has the factor, with a caret below it; empty if it is not written.
std::string InRule(const TargetRule& target, absl::string_view factor) {
  for (const RuleAlternative& a : target.alternatives) {
    const absl::string_view rule = a.text.rule;
    const auto ends = [&](size_t at) {
      return at >= rule.size() || !(absl::ascii_isalnum(rule[at]) || rule[at] == '_');
    };
    for (size_t at = rule.find(factor); at != rule.npos; at = rule.find(factor, at + 1)) {
      if ((at > 0 && !ends(at - 1)) || !ends(at + factor.size())) continue;
      return absl::StrCat("  ", rule, "\n  ", std::string(at, ' '), "^ (rule of target \"",
                          target.target, "\", ", target.source, ")");
    }
  }
  return "";
}

}  // namespace

void Planner::PlanReplicated(InstrId id, PlanKind kind) {
  const Instruction& instr = module_.instr(id);
  Decision d;
  d.strategy = &StrategyOf(instr.opcode);
  States need, produced, final;
  int collectives = 0;
  CopyList copies;
  const States operands = OperandStates(id, &copies);
  const Shapes shapes = OperandShapes(id);
  for (size_t k = 0; k < shapes.size(); ++k) {
    need.push_back(shapes[k]->IsArray() ? Replicated(id, shapes[k]) : nullptr);
    const Copies* at_hand = CopiesAt(copies, k);
    const double bytes = ReshardBytes(shapes[k], operands[k], at_hand, need.back(), &collectives);
    d.bytes += bytes;
    if (bytes > 0 && kind == PlanKind::kRule && operands[k]->HasShardedDim()) {
      plan_.gathers.push_back(
          {id, {Gather::Kind::kHandler, static_cast<int>(k), operands[k], need.back(), bytes}});
    }
  }
  for (int k = 0; k < instr.shape->num_leaves(); ++k) {
    const Shape* leaf = instr.shape->leaf(k);
    produced.push_back(leaf->IsArray() ? Replicated(id, leaf) : nullptr);
    final.push_back(Wanted(id, k));
  }
  d.operands = need;
  d.produced = produced;
  d.final = final;
  if (collectives > 0 && kind == PlanKind::kRule) {
    plan_.fallbacks.push_back(
        {id, absl::StrCat(OpcodeText(instr.opcode), " runs on whole operands; they are gathered")});
  }
  if (kind == PlanKind::kRule) NoteWholeResults(id, d.produced, d.final);
  Finish(id, kind, Keep(d));
}

const Sharding* Planner::ShardedOutside(InstrId id, int flat) {
  if (callers_.empty()) {
    for (int n = 0; n < module_.num_instructions(); ++n) {
      for (CompId c : CalledComputations(module_, module_.instr(InstrId(n)))) {
        callers_[c] = InstrId(n);
      }
    }
  }
  for (InstrId inside = id;;) {
    const LeafId leaf = leaves_.canonical(inside, flat);
    InstrId outer = leaves_.instr(leaf), taken;
    flat = leaves_.index(leaf);
    if (module_.instr(outer).opcode == Opcode::kWhile) {
      // The loop's result, or a carry that its body annotates.
      if (module_.instr(outer).computation == module_.instr(inside).computation) return nullptr;
      const InstrId root = module_.comp(module_.instr(outer).as<WhileAttrs>().body).root;
      const LeafId next = leaves_.canonical(root, flat);
      if (next != leaf && program_.constraints[next.value] != nullptr) return nullptr;
      taken = module_.operand(outer, 0);
    } else {
      const Instruction& parameter = module_.instr(outer);
      const auto caller = callers_.find(parameter.computation);
      if (parameter.opcode != Opcode::kParameter || caller == callers_.end()) return nullptr;
      outer = caller->second;
      const Instruction& call = module_.instr(outer);
      if (call.opcode == Opcode::kCall) {
        taken = module_.operand(outer, static_cast<int>(parameter.as<ParameterAttrs>().number));
      } else if (call.opcode == Opcode::kConditional) {
        const auto& branches = call.as<ConditionalAttrs>().branches;
        const auto at = std::find(branches.begin(), branches.end(), parameter.computation);
        taken = module_.operand(outer, static_cast<int>(at - branches.begin()) + 1);
      } else {
        return nullptr;
      }
    }
    if (module_.instr(outer).sharding != nullptr) return nullptr;
    const Sharding* s = Wanted(taken, flat);
    if (s != nullptr && !s->IsReplicated()) return s;
    inside = taken;
  }
}

bool Planner::BehindMissing(InstrId id) const {
  if (behind_missing_.empty()) return false;
  const absl::Span<const InstrId> operands = module_.operands(id);
  return std::any_of(operands.begin(), operands.end(),
                     [&](InstrId o) { return behind_missing_[o.value]; });
}

bool Planner::PlanMissing(InstrId id) {
  const Instruction& instr = module_.instr(id);
  const auto& attrs = instr.as<CustomCallAttrs>();
  const States operands = OperandStates(id);
  const Shapes shapes = OperandShapes(id);
  std::string sharded;
  double moved = 0;
  size_t leaf = 0;
  for (InstrId operand : module_.operands(instr)) {
    for (int k = 0; k < module_.instr(operand).shape->num_leaves(); ++k, ++leaf) {
      const Sharding* from = operands[leaf];
      if (from == nullptr) continue;
      const char* where = "";
      if (from->IsReplicated() && !rules_.MayReplicate(attrs.target)) {
        // Gathered for the call's loop or branch is gathered all the same.
        from = ShardedOutside(operand, k);
        where = ", outside of its loop or branch";
      }
      if (from == nullptr || from->IsReplicated()) continue;
      if (sharded.empty()) {
        sharded = absl::StrCat("operand ", leaf, " is sharded ", from->ToString(), where);
      }
      int collectives = 0;
      moved +=
          ReshardBytes(shapes[leaf], from, nullptr, Replicated(id, shapes[leaf]), &collectives);
    }
  }
  for (int k = 0; k < instr.shape->num_leaves() && sharded.empty(); ++k) {
    const Sharding* s = Wanted(id, k);
    if (s != nullptr && !s->IsReplicated()) {
      sharded = absl::StrCat("result ", k, " is sharded ", s->ToString());
    }
  }
  if (!rules_.MayReplicate(attrs.target)) {
    // Its operands are whole because the other call has no rule yet.
    if (sharded.empty() && BehindMissing(id)) {
      sharded = "it works on what another call without a rule makes";
    }
    if (!sharded.empty() && behind_missing_.empty()) {
      behind_missing_.resize(module_.num_instructions());
    }
  }
  if (sharded.empty() || rules_.MayReplicate(attrs.target)) {
    PlanReplicated(id);
    return false;
  }
  behind_missing_[id.value] = true;
  // Which function a call of CustomSPMDPartitioning is of, its config says.
  MissingTarget& missing = missing_[absl::StrCat(
      attrs.target,
      attrs.target == "CustomSPMDPartitioning" ? instr.backend_config : absl::string_view())];
  if (++missing.calls > kMostNamedCalls) {
    PlanReplicated(id);
    return true;
  }
  missing.last_error = errors_.size();
  Diagnostic e;
  e.code = "E101";
  e.message =
      absl::StrCat("target \"", attrs.target, "\" (%", instr.name, ") has no sharding rule; ",
                   sharded, ". Replicating it moves ", HumanBytes(moved), " per device");
  e.where = SourceLine(module_, instr);
  e.fix = absl::StrCat(
      "Register a rule, in a manifest (--plugin=FILE.json) or by the program, "
      "declare batch_dims=1, ",
      attrs.has_side_effect ? "write sharding={maximal device=0} on the call, since it has side "
                              "effects, "
                            : "",
      "or pass --allow-replicate=", attrs.target);
  if (attrs.target == "CustomSPMDPartitioning") {
    e.fix = absl::StrCat(
        "The dump holds only the address of a Python object (backend_config=\"",
        instr.backend_config,
        "\"); give its rule in a manifest with --plugin=FILE.json, keyed by that backend_config, "
        "dump with Shardy (the rule then stands in the text), or pass --allow-replicate=",
        attrs.target);
  }
  const TargetRule* target = rules_.target(id);
  if (target != nullptr && target->level == RuleLevel::kBatchDims) {
    e.message = absl::StrCat("target \"", attrs.target, "\" (%", instr.name,
                             ") is registered as batch partitionable, but the call does not say "
                             "its batch dims; ",
                             sharded);
    e.fix =
        "Give it the frontend attribute num_batch_dims, e.g. "
        "frontend_attributes={num_batch_dims=\"1\"}, or register batch_dims";
  }
  errors_.push_back(FormatDiagnostic(e));
  PlanReplicated(id);
  return true;
}

bool Planner::PlanCallbacks(InstrId id) {
  if (!rules_.has_rule(id)) return PlanMissing(id);
  // The callback chooses its operands' shardings when it runs; what it yields
  // is resharded to what propagation decided.
  PlanPassedStates(id, PlanKind::kCallbacks, OperandStates(id));
  NoteOtherOrders(id);
  return false;
}

void Planner::WarnOfLackingResults(InstrId id, const Decision& d) {
  const Instruction& instr = module_.instr(id);
  const ShardingRule& rule = *d.rule;
  const auto has = [](const TensorFactors& tensor, int f) {
    return absl::c_any_of(tensor.dims,
                          [&](const FactorList& dim) { return absl::c_linear_search(dim, f); });
  };
  for (int f = 0; f < static_cast<int>(d.factor_axes.size()); ++f) {
    const Factor& factor = rule.factors[f];
    if (d.factor_axes[f].empty() || factor.kind != FactorKind::kPassThrough || factor.blocked) {
      continue;
    }
    int lacks = 0;
    const int count = static_cast<int>(rule.results.size());
    while (lacks < count && (has(rule.results[lacks], f) || !instr.shape->leaf(lacks)->IsArray())) {
      ++lacks;
    }
    const absl::string_view target = instr.as<CustomCallAttrs>().target;
    if (lacks == count || !warned_.insert(absl::StrCat(target, "\n", factor.name)).second) continue;
    plan_.warnings.push_back(absl::StrCat(
        "W204 target \"", target, "\" (%", instr.name, ") runs on shards of factor ", factor.name,
        ", which result ", lacks,
        " does not have: every device is taken to compute the same. Fix: Declare ", factor.name,
        " in the rule's reduction or need_replication if it does not; "
        "shardcall check-rule tells"));
  }
}

void Planner::CheckUneven(InstrId id, const Decision& d) {
  if (d.rule == nullptr) return;
  const Instruction& instr = module_.instr(id);
  for (size_t f = 0; f < d.factor_axes.size(); ++f) {
    const Factor& factor = d.rule->factors[f];
    const int64_t n = AxesSize(d.factor_axes[f]);
    if (factor.kind != FactorKind::kReduction || factor.size % n == 0 || factor.has_pad) continue;
    Diagnostic e;
    e.code = "E150";
    const int64_t tile = CeilDiv(factor.size, n);
    std::string parts;
    for (int64_t i = 0; i < std::min<int64_t>(n, 8); ++i) {
      const int64_t valid = std::max<int64_t>(0, std::min(tile, factor.size - i * tile));
      absl::StrAppend(&parts, i ? "," : "", valid);
    }
    e.message =
        absl::StrCat("factor ", factor.name, " = ", factor.size, " over ", n, " gives ", parts,
                     n > 8 ? ",.." : "", "; target \"", instr.as<CustomCallAttrs>().target, "\" (%",
                     instr.name, ") reduces over it and does not accept uneven shards");
    e.where = SourceLine(module_, instr);
    e.fix = absl::StrCat("Declare pad={\"", factor.name,
                         "\": 0} in its rule, if zero padding leaves the sum as it is");
    if (const TargetRule* target = rules_.target(id)) e.excerpt = InRule(*target, factor.name);
    errors_.push_back(FormatDiagnostic(e));
  }
}

}  // namespace shardcall
