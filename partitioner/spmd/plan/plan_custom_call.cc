// SPDX-License-Identifier: Apache-2.0
// Custom calls with callbacks, and the checks of rules: results that lack a sharded factor, and
// uneven shards that a kernel does not support.
#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/custom_call/derive/derived_rules.h"
#include "shardcall/partitioner/ir/text/source_line.h"
#include "shardcall/partitioner/spmd/plan/plan_gathers.h"
#include "shardcall/partitioner/spmd/plan/planner.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/rule/factor_assignment.h"

namespace shardcall {
inline namespace internal {
namespace {

// The text of the rule that has the factor, with a caret below the factor; empty if it is not in
// the text.
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

// The number that leaves a reduction as it is, as rules have it.
absl::string_view NeutralPad(PartialOp op) {
  switch (op) {
    case PartialOp::kSum:
    case PartialOp::kOr:
    case PartialOp::kXor: return "0";
    case PartialOp::kProduct: return "1";
    case PartialOp::kAnd: return "-1";  // all bits
    case PartialOp::kMax: return "\"-inf\"";
    case PartialOp::kMin: return "\"inf\"";
  }
  return "0";
}

// Where the author of the target declares the pad value of a factor: with its rule or, if that
// follows from a VJP, with the VJP, by the names of the rule that the VJP is of.
std::string PadFix(RuleTable& rules, const TargetRule* target, const Factor& of) {
  const absl::string_view factor = of.name, neutral = NeutralPad(of.reduction);
  const auto pad = [&](absl::string_view name) {
    return absl::StrCat("Declare \"pad\": {\"", name, "\": ", neutral, "} in ");
  };
  const absl::string_view vjp_of = target == nullptr ? "" : VjpOf(*target);
  if (vjp_of.empty()) {
    return absl::StrCat(pad(factor), "its rule, if ",
                        of.reduction == PartialOp::kSum
                            ? "zero padding leaves the sum as it is"
                            : absl::StrCat("padding of ", neutral, " leaves its \"",
                                           PartialOpName(of.reduction), "\" as it is"));
  }
  const TargetRule* const forward = rules.targets()->Find(vjp_of, "");
  const bool named = forward == nullptr || !InRule(*forward, factor).empty();
  return absl::StrCat(pad(named ? factor : "..."), "the \"vjp\" of target \"", vjp_of,
                      "\", if operands and cotangents of zeros add nothing to its gradients");
}

}  // namespace

States Planner::SeenByCallback(InstrId id) {
  States out = table_.OperandStates(id);
  if (!rules_.PartitionedByCallback(id)) return out;
  const ShardingRule& rule = *rules_.rule(id);
  IndexSet shown;
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    if (rule.factors[f].kind != FactorKind::kNeedReplication) shown.Insert(static_cast<int>(f));
  }
  for (size_t t = 0; t < out.size(); ++t) {
    if (out[t] == nullptr) continue;
    const auto needs = [&](const FactorList& dim) {
      return absl::c_any_of(dim, [&](int f) { return !shown.Contains(f); });
    };
    if (absl::c_none_of(rule.operands[t].dims, needs)) continue;
    // The other factors of its dimensions keep their axes.
    FactorAssignment axes(rule, out[t]->mesh(), program_.manual_axes(id), shown);
    axes.Project(static_cast<int>(t), *out[t]);
    ShardingBuilder seen(*out[t]);
    const Sharding* const dims = axes.DimSharding(context_, static_cast<int>(t));
    for (int d = 0; d < dims->rank(); ++d) {
      if (needs(rule.operands[t].dims[d])) {
        seen.dims[d].assign(dims->dim(d).begin(), dims->dim(d).end());
      }
    }
    out[t] = seen.Intern(context_);
  }
  return out;
}

bool Planner::PlanCallbacks(InstrId id) {
  if (!rules_.has_rule(id)) return false;
  // The callback chooses its operands' shardings when it runs; its results are resharded to what
  // propagation decided.
  const States operands = SeenByCallback(id);
  PlanPassedStates(id, PlanKind::kCallbacks, operands);
  // Callbacks know only the program's mesh. A value that is sharded over another device order is
  // passed to and taken from them replicated. Null: no change.
  const auto whole = [&](const Sharding* s, const Shape* shape) {
    return s != nullptr && s->mesh() != program_.mesh ? table_.Replicated(id, shape) : nullptr;
  };
  States taken, produced, wanted;
  const Shapes shapes = table_.OperandShapes(id);
  for (size_t k = 0; k < shapes.size(); ++k) taken.push_back(whole(operands[k], shapes[k]));
  NoteOperandGathers(table_, id, Gather::Kind::kNoStrategy, taken);
  const Shape* result = module_.instr(id).shape;
  for (int k = 0; k < result->num_leaves(); ++k) {
    wanted.push_back(table_.Wanted(id, k));
    produced.push_back(whole(wanted.back(), result->leaf(k)));
  }
  NoteWholeResults(table_, id, produced, wanted);
  return true;
}

void Planner::PlanOnShards(InstrId id) {
  States need = table_.OperandStates(id);
  for (const Sharding*& state : need) {
    if (state != nullptr) state = WithoutPartial(context_, state);
  }
  PlanPassedStates(id, PlanKind::kManual, need);
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
    const TargetRule* const target = rules_.target(id);
    e.fix = PadFix(rules_, target, factor);
    if (target != nullptr) e.excerpt = InRule(*target, factor.name);
    errors_.push_back(FormatDiagnostic(e));
  }
}

}  // namespace internal
}  // namespace shardcall
