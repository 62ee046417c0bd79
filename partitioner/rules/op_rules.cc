// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/rules/op_rules.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/analysis/accumulated_dim.h"
#include "shardcall/partitioner/ir/analysis/selecting_reducer.h"
#include "shardcall/partitioner/ir/analysis/side_effects.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/ir/text/source_line.h"
#include "shardcall/partitioner/rules/block_list.h"
#include "shardcall/partitioner/rules/rule_builder.h"
#include "shardcall/sharding/base/intern_table.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

std::string PlaceOf(const Module& module, const Instruction& call) {
  const std::string line = SourceLine(module, call);
  return absl::StrCat("the call of \"", call.as<CustomCallAttrs>().target, "\", %", call.name,
                      line.empty() ? "" : ", at ", line);
}

using Shapes = absl::InlinedVector<const Shape*, 8>;

void AppendLeaves(const Shape* shape, Shapes* out) {
  if (!shape->IsTuple()) {
    out->push_back(shape);
    return;
  }
  for (int i = 0; i < shape->num_leaves(); ++i) out->push_back(shape->leaf(i));
}

// The content of the rule column: a rule function, or a class of ops without rules.
struct RowRule {
  OpClass op_class;
  ShardingRule (*make)(const RuleArgs& args);
};
constexpr RowRule Row(uint32_t traits, absl::string_view name,
                      ShardingRule (*make)(const RuleArgs& args)) {
  if (name == "Structural") return {OpClass::kStructural, nullptr};
  if (name == "ManualOnly") return {OpClass::kManualOnly, nullptr};
  if (name == "OfTarget") return {OpClass::kRule, nullptr};  // see Make
  return {(traits & kCollectiveOp) != 0 ? OpClass::kManualOnly : OpClass::kRule, make};
}

constexpr RowRule kRules[] = {
#define SHARDCALL_OP(opcode, text, attrs, arity, shape, rule, strategy, sized, lower, stablehlo, \
                     traits)                                                                     \
  Row(traits, #rule, rule##Rule),
#include "shardcall/partitioner/ir/opcodes.inc"
#undef SHARDCALL_OP
};

OpClass ClassOf(Opcode opcode) { return kRules[static_cast<int>(opcode)].op_class; }

bool HasDynamicSize(absl::Span<const Shape* const> shapes) {
  return std::any_of(shapes.begin(), shapes.end(),
                     [](const Shape* shape) { return shape->IsArray() && shape->IsDynamic(); });
}

bool RunsOnAnyDevice(Opcode opcode) {
  return !HasTrait(opcode, kEveryDevice | kCollectiveOp | kAsyncForm);
}

// The device that all of the shardings name; -1: they name none, or several.
int64_t CommonDevice(absl::Span<const ShardingConstraint* const> constraints) {
  int64_t device = -1;
  for (const ShardingConstraint* c : constraints) {
    if (c == nullptr || c->maximal_device < 0) return -1;
    if (device >= 0 && c->maximal_device != device) return -1;
    device = c->maximal_device;
  }
  return device;
}

}  // namespace

int64_t MaximalDevice(const Program& program, InstrId i) {
  const Instruction& instr = program.module.instr(i);
  if (!RunsOnAnyDevice(instr.opcode) || RunsOnShards(instr)) return -1;
  if (const auto it = program.outfeeds.find(i); it != program.outfeeds.end()) {
    const int64_t device = CommonDevice(it->second);
    if (device >= 0 || !it->second.empty()) return device;
  }
  absl::InlinedVector<const ShardingConstraint*, 4> arrays;
  for (int k = 0; k < instr.shape->num_leaves(); ++k) {
    const ShardingConstraint* c = program.constraints[program.leaves.leaf(i, k).value];
    if (instr.opcode == Opcode::kCustomCall && c != nullptr && c->maximal_device >= 0) {
      return c->maximal_device;
    }
    if (instr.shape->leaf(k)->IsArray()) arrays.push_back(c);
  }
  if (instr.opcode != Opcode::kCustomCall && !arrays.empty()) return CommonDevice(arrays);
  // Here there are only leaves without a constraint, such as tokens, or no leaves at all.
  if (instr.sharding == nullptr) return -1;
  const HloSharding* s = instr.sharding;
  if (s->kind == HloSharding::Kind::kTuple && s->tuple.size() == 1) s = &s->tuple[0];
  return s->kind == HloSharding::Kind::kMaximal ? s->device : -1;
}

// Names in the rule column that stand for classes. If a rule is needed anyway, this one is right
// for any op.
ShardingRule StructuralRule(const RuleArgs& args) { return NeedReplicationRule(args); }
ShardingRule ManualOnlyRule(const RuleArgs& args) { return NeedReplicationRule(args); }
ShardingRule OfTargetRule(const RuleArgs& args) { return NeedReplicationRule(args); }

struct RuleTable::Impl {
  struct Numbered {
    const ShardingRule* rule = nullptr;  // null: none
    int number = -1;
  };
  struct Entry {
    Opcode opcode;
    bool maximal, by_parts;
    const Attributes* attrs;
    const FrontendAttributes* frontend;
    absl::string_view config;
    Shapes shapes;  // operands, then the result, without layouts
    OpClass op_class;
    const TargetRule* target = nullptr;
    bool has_rule = true;
    bool by_callback = false;
    const LocalBody* body = nullptr;
    Numbered rule;
  };

  Impl(const Program& program, RuleOptions options)
      : program(program),
        options(std::move(options)),
        by_instr(program.module.num_instructions()),
        any_maximal(std::any_of(program.owned_constraints.begin(), program.owned_constraints.end(),
                                [](const auto& c) { return c->maximal_device >= 0; })) {}

  const Entry* Get(InstrId i) {
    const Entry*& slot = by_instr[i.value];
    if (slot == nullptr) slot = Find(i);
    return slot;
  }
  const Entry* Find(InstrId i);
  bool ReducesByParts(InstrId i) const;
  void Make(InstrId i, Entry* entry);
  Numbered Keep(ShardingRule rule) { return {&rules.emplace_back(std::move(rule)), num_rules++}; }
  Numbered RuleOfRow(const RuleArgs& args, const Entry& entry);
  // Compares the written shape of a custom call with the inferred one.
  absl::Status CheckShape(InstrId i) const;

  const Program& program;
  RuleOptions options;
  std::vector<const Entry*> by_instr;
  const bool any_maximal;
  BlockList<Entry> entries;
  InternTable<Entry> table;
  BlockList<ShardingRule> rules;
  int num_rules = 0;
  // Elementwise ops have one rule for all ops of the same shapes, which are most ops of a program.
  absl::flat_hash_map<Shapes, Numbered> elementwise;
  absl::Status status;
  int64_t hits = 0, misses = 0;
};

// The computation of an op that combines elements in parts, if that may do so: a reduction, or one
// value that is accumulated along a dimension. Else none.
CompId CombinedParts(const Module& m, const Instruction& instr) {
  if (instr.opcode == Opcode::kReduce) return instr.as<ReduceAttrs>().to_apply;
  if (instr.opcode != Opcode::kReduceWindow || instr.shape->IsTuple()) return CompId();
  const auto& attrs = instr.as<ReduceWindowAttrs>();
  const Shape* in = m.instr(m.operands(instr)[0]).shape;
  return AccumulatedDim(attrs.window, in) < 0 ? CompId() : attrs.to_apply;
}

// What the rule of a reduction takes from its initial values, where it looks at them.
bool RuleTable::Impl::ReducesByParts(InstrId i) const {
  const Module& m = program.module;
  const Instruction& instr = m.instr(i);
  if (options.reduces_by_parts == nullptr) return false;
  const CompId reducer = CombinedParts(m, instr);
  if (!reducer.valid()) return false;
  PartialOp op;
  return !RecognizePartialOp(m, reducer, &op) && !IsSelectingReducer(m, reducer) &&
         options.reduces_by_parts(m, i);
}

const RuleTable::Impl::Entry* RuleTable::Impl::Find(InstrId i) {
  const Module& m = program.module;
  const Instruction& instr = m.instr(i);
  const bool call = instr.opcode == Opcode::kCustomCall;
  const bool maximal = (call || any_maximal) && MaximalDevice(program, i) >= 0;
  const bool by_parts = ReducesByParts(i);
  const FrontendAttributes* frontend = call ? instr.frontend : nullptr;
  const absl::string_view config = call ? instr.backend_config : absl::string_view();
  const absl::Span<const InstrId> operands = m.operands(instr);
  // What a call means may depend on its layouts; those of operands are among its attributes.
  const Shape* const result = call ? instr.shape : instr.shape->bare();

  uint64_t hash = static_cast<uint64_t>(instr.opcode) * 4 + maximal * 2 + by_parts;
  hash = MixHash(hash, reinterpret_cast<uintptr_t>(instr.attrs));
  hash = MixHash(hash, reinterpret_cast<uintptr_t>(frontend));
  hash = MixHash(hash, reinterpret_cast<uintptr_t>(config.data()));
  for (InstrId o : operands) {
    hash = MixHash(hash, reinterpret_cast<uintptr_t>(m.instr(o).shape->bare()));
  }
  hash = FinishHash(MixHash(hash, reinterpret_cast<uintptr_t>(result)));
  const Entry* found = table.Find(hash, [&](const Entry& e) {
    if (e.opcode != instr.opcode || e.maximal != maximal || e.by_parts != by_parts ||
        e.attrs != instr.attrs || e.frontend != frontend || e.config != config ||
        e.shapes.size() != operands.size() + 1 || e.shapes.back() != result) {
      return false;
    }
    for (size_t k = 0; k < operands.size(); ++k) {
      if (e.shapes[k] != m.instr(operands[k]).shape->bare()) return false;
    }
    return true;
  });
  if (found != nullptr) {
    ++hits;
    return found;
  }
  ++misses;
  Entry& e = entries.emplace_back();
  e.opcode = instr.opcode;
  e.maximal = maximal;
  e.by_parts = by_parts;
  e.attrs = instr.attrs;
  e.frontend = frontend;
  e.config = config;
  for (InstrId o : operands) e.shapes.push_back(m.instr(o).shape->bare());
  e.shapes.push_back(result);
  Make(i, &e);
  table.Insert(hash, &e);
  return &e;
}

absl::Status RuleTable::Impl::CheckShape(InstrId i) const {
  if (options.targets == nullptr) return absl::OkStatus();
  const Module& m = program.module;
  const Instruction& instr = m.instr(i);
  Shapes operands;
  for (InstrId o : m.operands(instr)) operands.push_back(m.instr(o).shape);
  return options.targets->CheckShape(
      {&m.context(), instr.as<CustomCallAttrs>().target, instr.backend_config, operands},
      instr.shape);
}

RuleTable::Impl::Numbered RuleTable::Impl::RuleOfRow(const RuleArgs& args, const Entry& entry) {
  const auto make = kRules[static_cast<int>(entry.opcode)].make;
  if (make == nullptr) return {};
  if (entry.maximal || HasDynamicSize(args.operands) || HasDynamicSize(args.results)) {
    return Keep(NeedReplicationRule(args));
  }
  if (make != PointwiseRule || !HasTrait(entry.opcode, kElementwise)) return Keep(make(args));
  Numbered& known = elementwise[entry.shapes];
  if (known.rule == nullptr) known = Keep(make(args));
  return known;
}

void RuleTable::Impl::Make(InstrId i, Entry* entry) {
  const Module& m = program.module;
  const Instruction& instr = m.instr(i);
  entry->op_class = ClassOf(instr.opcode);
  if (entry->op_class == OpClass::kStructural) return;
  Shapes operands, results;
  for (InstrId o : m.operands(instr)) AppendLeaves(m.instr(o).shape, &operands);
  AppendLeaves(instr.shape, &results);
  const RuleArgs args{m, instr, operands, results, entry->by_parts};
  if (instr.opcode != Opcode::kCustomCall) {
    entry->rule = RuleOfRow(args, *entry);
    return;
  }
  const CustomCallSource source =
      FindCustomCallRule(args, options.targets, entry->maximal, &entry->target);
  if (source == CustomCallSource::kOwnRule && options.targets != nullptr) {
    // The call's own rule is used for propagation, the registered callback for partitioning.
    const TargetRule* const target =
        options.targets->Find(instr.as<CustomCallAttrs>().target, instr.backend_config);
    if (target != nullptr && target->callbacks.partition != nullptr) {
      entry->target = target;
      entry->by_callback = true;
    }
  }
  entry->has_rule =
      source != CustomCallSource::kMissing && source != CustomCallSource::kNothingToShard;
  // Callbacks without `partition` only affect propagation.
  if (source == CustomCallSource::kRegistry && entry->target->level == RuleLevel::kCallbacks &&
      entry->target->callbacks.partition == nullptr) {
    entry->has_rule = false;
  }
  if (source == CustomCallSource::kMissing || source == CustomCallSource::kOnShards) {
    entry->op_class = source == CustomCallSource::kMissing ? OpClass::kMissing : OpClass::kOnShards;
    return;
  }
  if (source == CustomCallSource::kRegistry && entry->target->level == RuleLevel::kCallbacks) {
    if (entry->target->callbacks.body == nullptr) {
      entry->op_class = OpClass::kCallbacks;
      if (status.ok()) status = In(CheckShape(i), PlaceOf(m, instr));
      return;
    }
    entry->body = &entry->target->callbacks.body;
  }
  // Check the shape first: for a wrong shape the rule's error would only say that a factor has two
  // sizes.
  const auto made = [&]() -> absl::StatusOr<ShardingRule> {
    SHARDCALL_RETURN_IF_ERROR(CheckShape(i));
    return CustomCallRule(args, source, entry->target);
  };
  absl::StatusOr<ShardingRule> rule = made();
  if (rule.ok()) {
    entry->rule = Keep(*std::move(rule));
    return;
  }
  if (status.ok()) status = In(rule.status(), PlaceOf(m, instr));
  entry->rule = Keep(NeedReplicationRule(args));
}

RuleTable::RuleTable(const Program& program, RuleOptions options)
    : impl_(std::make_unique<Impl>(program, std::move(options))) {}
RuleTable::~RuleTable() = default;

OpClass RuleTable::op_class(InstrId i) {
  if (impl_->program.annotation[i.value] != AnnotationKind::kNone) return OpClass::kAnnotation;
  const OpClass c = ClassOf(impl_->program.module.instr(i).opcode);
  if (c == OpClass::kStructural) return c;
  return impl_->Get(i)->op_class;
}

bool RuleTable::PartitionedByCallback(InstrId i) {
  return impl_->program.module.instr(i).opcode == Opcode::kCustomCall &&
         impl_->program.annotation[i.value] == AnnotationKind::kNone && impl_->Get(i)->by_callback;
}

const ShardingRule* RuleTable::rule(InstrId i) {
  if (impl_->program.annotation[i.value] != AnnotationKind::kNone) return nullptr;
  if (ClassOf(impl_->program.module.instr(i).opcode) == OpClass::kStructural) return nullptr;
  return impl_->Get(i)->rule.rule;
}

int RuleTable::rule_number(InstrId i) { return impl_->Get(i)->rule.number; }

const TargetRule* RuleTable::target(InstrId i) {
  if (impl_->program.module.instr(i).opcode != Opcode::kCustomCall ||
      impl_->program.annotation[i.value] != AnnotationKind::kNone) {
    return nullptr;
  }
  return impl_->Get(i)->target;
}

const LocalBody* RuleTable::body(InstrId i) {
  return target(i) == nullptr ? nullptr : impl_->Get(i)->body;
}

const void* RuleTable::kind(InstrId i) { return impl_->Get(i); }

bool RuleTable::has_rule(InstrId i) { return impl_->Get(i)->has_rule; }

const absl::Status& RuleTable::status() const { return impl_->status; }

const TargetShapes* RuleTable::shapes() const { return impl_->options.targets; }

const TargetRegistry* RuleTable::targets() const { return impl_->options.targets; }

bool RuleTable::MayReplicate(absl::string_view target) const {
  const std::vector<std::string>& allowed = impl_->options.allow_replicate;
  return std::any_of(allowed.begin(), allowed.end(),
                     [&](const std::string& t) { return t == "all" || t == target; });
}

int64_t RuleTable::hits() const { return impl_->hits; }
int64_t RuleTable::misses() const { return impl_->misses; }

}  // namespace shardcall
