// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/missing_rules.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/text/source_line.h"
#include "shardcall/sharding/base/human_bytes.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/terminal_text.h"

namespace shardcall {
inline namespace internal {

void MissingRules::Visit(InstrId id) {
  if (!behind_.empty()) behind_[id.value] = BehindMissing(id);
}

bool MissingRules::BehindMissing(InstrId id) const {
  if (behind_.empty()) return false;
  const absl::Span<const InstrId> operands = module_.operands(id);
  return std::any_of(operands.begin(), operands.end(), [&](InstrId o) { return behind_[o.value]; });
}

const Sharding* MissingRules::ShardedOutside(InstrId id, int flat) {
  const LeafTable& leaves = program_.leaves;
  if (!callers_known_) {
    callers_known_ = true;
    for (int n = 0; n < module_.num_instructions(); ++n) {
      for (CompId c : CalledComputations(module_, module_.instr(InstrId(n)))) {
        callers_[c] = InstrId(n);
      }
    }
  }
  for (InstrId inside = id;;) {
    const LeafId leaf = leaves.canonical(inside, flat);
    InstrId outer = leaves.instr(leaf), taken;
    flat = leaves.index(leaf);
    if (module_.instr(outer).opcode == Opcode::kWhile) {
      // Null for the loop's result, and for a loop-carried value that the body annotates.
      if (module_.instr(outer).computation == module_.instr(inside).computation) return nullptr;
      const InstrId root = module_.comp(module_.instr(outer).as<WhileAttrs>().body).root;
      const LeafId next = leaves.canonical(root, flat);
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
    const Sharding* s = table_.Wanted(taken, flat);
    if (s != nullptr && !s->IsReplicated()) return s;
    inside = taken;
  }
}

std::string MissingRules::HowSharded(InstrId id, double* bytes) {
  const Instruction& instr = module_.instr(id);
  const States operands = table_.OperandStates(id);
  const Shapes shapes = table_.OperandShapes(id);
  std::string sharded;
  size_t leaf = 0;
  for (InstrId operand : module_.operands(instr)) {
    for (int k = 0; k < module_.instr(operand).shape->num_leaves(); ++k, ++leaf) {
      const Sharding* from = operands[leaf];
      if (from == nullptr) continue;
      const char* where = "";
      if (from->IsReplicated()) {
        // An operand that was gathered at the entry of the enclosing loop or branch counts as
        // sharded.
        from = ShardedOutside(operand, k);
        where = ", outside of its loop or branch";
      }
      if (from == nullptr || from->IsReplicated()) continue;
      if (sharded.empty()) {
        sharded = absl::StrCat("operand ", leaf, " is sharded ", from->ToString(), where);
      }
      const Sharding* const whole = table_.Replicated(id, shapes[leaf]);
      *bytes += table_.ReshardTraffic(shapes[leaf], from, nullptr, whole).bytes;
    }
  }
  for (int k = 0; k < instr.shape->num_leaves() && sharded.empty(); ++k) {
    const Sharding* s = table_.Wanted(id, k);
    if (s != nullptr && !s->IsReplicated()) {
      sharded = absl::StrCat("result ", k, " is sharded ", s->ToString());
    }
  }
  return sharded;
}

bool MissingRules::IsError(InstrId id) {
  const Instruction& instr = module_.instr(id);
  const auto& attrs = instr.as<CustomCallAttrs>();
  if (rules_.MayReplicate(attrs.target)) return false;
  double bytes = 0;
  std::string sharded = HowSharded(id, &bytes);
  // Its operands may be replicated only because the other call has no rule yet.
  if (sharded.empty() && BehindMissing(id)) {
    sharded = "it works on what another call without a rule makes";
  }
  if (sharded.empty()) return false;
  if (behind_.empty()) behind_.resize(module_.num_instructions());
  behind_[id.value] = true;
  // All calls of CustomSPMDPartitioning share a target; the config tells their functions apart.
  MissingTarget& target = targets_[absl::StrCat(
      attrs.target,
      attrs.target == "CustomSPMDPartitioning" ? instr.backend_config : absl::string_view())];
  if (++target.calls > kMostNamedCalls) return true;
  target.last_error = errors_.size();
  errors_.push_back(Message(id, sharded, bytes));
  return true;
}

void MissingRules::CountOthers() {
  for (const auto& [name, target] : targets_) {
    if (target.calls <= kMostNamedCalls) continue;
    absl::StrAppend(&errors_[target.last_error], "\n  and so have ", target.calls - kMostNamedCalls,
                    " more calls of it");
  }
}

std::string MissingRules::Misspelt(absl::string_view target) const {
  if (rules_.targets() == nullptr) return "";
  const std::vector<std::string> near = rules_.targets()->NamesLike(target);
  if (near.empty()) return "";
  return absl::StrCat("Is it the target \"", near[0], "\", which has a rule? Else: ");
}

int MissingRules::BatchDims(InstrId id) const {
  const Instruction& instr = module_.instr(id);
  const States operands = table_.OperandStates(id);
  Shapes shapes = table_.OperandShapes(id);
  for (int k = 0; k < instr.shape->num_leaves(); ++k) shapes.push_back(instr.shape->leaf(k));
  const auto has_dim = [&](const Shape* shape, int d) {
    return shape->IsArray() && shape->rank() > d && shape->dim(d) == shapes[0]->dim(d);
  };
  const auto is_sharded = [](const Sharding* s, int d) {
    return s != nullptr && s->rank() > d && !s->dim(d).empty();
  };
  int dims = 0;
  while (absl::c_all_of(shapes, [&](const Shape* s) { return has_dim(s, dims); }) &&
         absl::c_any_of(operands, [&](const Sharding* s) { return is_sharded(s, dims); })) {
    ++dims;
  }
  return dims;
}

std::string MissingRules::Message(InstrId id, const std::string& sharded, double bytes) const {
  const Instruction& instr = module_.instr(id);
  const auto& attrs = instr.as<CustomCallAttrs>();
  Diagnostic e;
  e.code = "E101";
  e.message =
      absl::StrCat("target \"", attrs.target, "\" (%", instr.name, ") has no sharding rule; ",
                   sharded, ". Replicating it moves ", HumanBytes(bytes), " per device");
  e.where = SourceLine(module_, instr);
  const int batch_dims = BatchDims(id);
  e.fix = absl::StrCat(
      Misspelt(attrs.target),
      "Register a rule, in a manifest (--plugin=FILE.json) or by the program, ",
      batch_dims > 0 ? absl::StrCat("declare batch_dims=", batch_dims, ", ") : "",
      attrs.has_side_effect ? "write sharding={maximal device=0} on the call, since it has side "
                              "effects, "
                            : "",
      "or allow to replicate it (--allow-replicate=", ShellWord(attrs.target), ")");
  if (attrs.target == "CustomSPMDPartitioning") {
    e.fix = absl::StrCat(
        "The dump holds only the address of a Python object (backend_config=\"",
        instr.backend_config,
        "\"); give its rule in a manifest with --plugin=FILE.json, keyed by that backend_config, "
        "dump with Shardy (the rule then stands in the text), or allow to replicate it "
        "(--allow-replicate=",
        ShellWord(attrs.target), ")");
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
  return FormatDiagnostic(e);
}

}  // namespace internal
}  // namespace shardcall
