// SPDX-License-Identifier: Apache-2.0
// Finds the calls to check, in registrations and programs.
#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/check/apply_limits.h"
#include "shardcall/partitioner/check/checked_call.h"
#include "shardcall/partitioner/check/type_tries.h"
#include "shardcall/partitioner/custom_call/attribute_formulas.h"
#include "shardcall/partitioner/custom_call/open_factors.h"
#include "shardcall/partitioner/rules/rule_builder.h"
#include "shardcall/sharding/base/near_names.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/terminal_text.h"

namespace shardcall {
namespace {

absl::Status NeedsProgram(const std::string& target, absl::string_view what) {
  return ToStatus(
      {.code = "E191",
       .message = absl::StrCat("the registration of \"", target, "\" ", what),
       .expected = "a program with a call of it",
       .fix = absl::StrCat("Give one: shardcall check-rule CALL.hlo --target=", ShellWord(target))},
      absl::StatusCode::kFailedPrecondition);
}

// Gives every factor a unique name, and every dimension a factor. `shapes`: of all tensors, or
// empty if every dimension has factors already.
void Complete(absl::Span<const Shape* const> shapes, ShardingRule* rule) {
  std::set<std::string> names;
  for (size_t f = 0; f < rule->factors.size(); ++f) {
    std::string& name = rule->factors[f].name;
    if (name.empty() || !names.insert(name).second) {
      name = absl::StrCat("f", f);
      names.insert(name);
    }
  }
  for (int t = 0; t < rule->num_tensors(); ++t) {
    TensorFactors& tensor = t < static_cast<int>(rule->operands.size())
                                ? rule->operands[t]
                                : rule->results[t - rule->operands.size()];
    for (size_t d = 0; d < tensor.dims.size(); ++d) {
      FactorList& dim = tensor.dims[d];
      if (!dim.empty()) continue;
      dim.push_back(static_cast<int>(rule->factors.size()));
      Factor whole;
      whole.kind = FactorKind::kNeedReplication;
      whole.size = shapes[t]->dim(static_cast<int>(d));
      whole.name = absl::StrCat("f", rule->factors.size());
      rule->factors.push_back(whole);
    }
  }
}

// Batch dims as a rule: dimension d is one factor of all tensors that have it in that size, and
// passes through for d < k. So further dimensions can be tested.
ShardingRule BatchFactors(int k, int num_operands, absl::Span<const Shape* const> shapes) {
  ShardingRule rule;
  rule.custom = true;
  std::map<std::pair<int, int64_t>, int> index;
  for (size_t t = 0; t < shapes.size(); ++t) {
    TensorFactors tensor;
    for (int d = 0; d < shapes[t]->rank(); ++d) {
      const auto [it, inserted] = index.try_emplace(std::make_pair(d, shapes[t]->dim(d)),
                                                    static_cast<int>(rule.factors.size()));
      if (inserted) {
        Factor f;
        f.size = shapes[t]->dim(d);
        if (d >= k) f.kind = FactorKind::kNeedReplication;
        rule.factors.push_back(f);
      }
      tensor.dims.push_back({it->second});
    }
    (static_cast<int>(t) < num_operands ? rule.operands : rule.results).push_back(tensor);
  }
  return rule;
}

// The factors of one signature, with one dimension for `...`.
ShardingRule RuleOf(const RuleAlternative& a) {
  ShardingRule rule;
  rule.custom = true;
  std::map<std::string, int, std::less<>> index;
  auto factor = [&](const std::string& name) {
    auto [it, inserted] = index.try_emplace(name, static_cast<int>(rule.factors.size()));
    if (inserted) {
      Factor f;
      f.name = name;
      f.size = kOpenSize;
      rule.factors.push_back(f);
    }
    return it->second;
  };
  const std::string kRest = "rest";
  for (size_t i = 0; i < a.values.size(); ++i) {
    TensorFactors tensor;
    if (a.values[i].ellipsis) tensor.dims.push_back({factor(kRest + a.values[i].group)});
    for (const std::vector<std::string>& dim : a.values[i].dims) {
      FactorList list;
      for (const std::string& name : dim) list.push_back(factor(name));
      tensor.dims.push_back(list);
    }
    (static_cast<int>(i) < a.num_operands ? rule.operands : rule.results).push_back(tensor);
  }
  auto find = [&](const std::string& name) {
    auto it = index.find(name);
    return it == index.end() ? nullptr : &rule.factors[it->second];
  };
  for (const std::string& name : a.text.need_replication) {
    if (Factor* f = find(name)) f->kind = FactorKind::kNeedReplication;
  }
  for (const std::string& name : a.text.permutation) {
    if (Factor* f = find(name)) f->kind = FactorKind::kPermutation;
  }
  for (const std::string& name : a.text.blocked) {
    if (Factor* f = find(name)) f->blocked = true;
  }
  for (const auto& [name, op] : a.text.reduction) {
    Factor* f = find(name);
    if (f == nullptr) continue;
    f->kind = FactorKind::kReduction;
    f->reduction = op;
  }
  for (const auto& [name, pad] : a.text.pad) {
    Factor* f = find(name);
    if (f == nullptr) continue;
    f->has_pad = true;
    f->pad = pad;
  }
  for (const auto& [name, size] : a.text.sizes) {
    if (Factor* f = find(name)) f->size = size;
  }
  return rule;
}

// The call with the types that the signature gives. A rule that ends in "->" is for calls with one
// scalar result or for calls with none: the types may say which, and so do open factors, which no
// scalar may have (open_factors.h). If neither does, the handler is asked.
absl::StatusOr<std::vector<CheckedCall>> WithTypes(CheckedCall call, const RuleAlternative& a) {
  const bool scalar =
      static_cast<int>(a.values.size()) == a.num_operands + 1 && a.values.back().IsScalar();
  std::vector<CheckedCall> calls;
  if (a.types.empty()) {
    call.may_lack_result = scalar && a.text.reduction.empty() && !call.callbacks;
    if (call.may_lack_result && LeavesFactorsOpen(a)) call.DropResult();
    calls.push_back(std::move(call));
    return calls;
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<std::vector<ElementType>> all,
                             TypesOfSignature(a.types));
  for (const size_t results : {a.values.size() - a.num_operands, size_t{0}}) {
    CheckedCall typed = call;
    for (const std::vector<ElementType>& types : all) {
      if (types.size() == a.num_operands + results) typed.type_tries.push_back(types);
    }
    if (typed.type_tries.empty()) continue;
    if (results == 0) typed.DropResult();
    calls.push_back(std::move(typed));
  }
  return calls;
}

// The operands and results of a call, and their types in `types`. E191 if they are not arrays.
struct CallShapes {
  std::vector<const Shape*> operands, results;
  std::vector<ElementType> types;
};
absl::StatusOr<CallShapes> ShapesOf(const Module& module, const Instruction& instr) {
  CallShapes s;
  bool arrays = instr.as<CustomCallAttrs>().called_computations.empty();
  for (InstrId id : module.operands(instr)) s.operands.push_back(module.instr(id).shape);
  if (instr.shape->IsTuple()) {
    s.results.assign(instr.shape->tuple().begin(), instr.shape->tuple().end());
  } else {
    s.results.push_back(instr.shape);
  }
  for (const auto* list : {&s.operands, &s.results}) {
    for (const Shape* shape : *list) {
      arrays = arrays && shape->IsArray();
      if (shape->IsArray()) s.types.push_back(shape->element_type());
    }
  }
  if (arrays) return s;
  return ToStatus({.code = "E191",
                   .message = "a call with tuples, tokens or computations cannot be checked",
                   .where = absl::StrCat("%", instr.name),
                   .expected = "arrays in and out",
                   .fix = "verify the whole program instead"},
                  absl::StatusCode::kUnimplemented);
}

std::vector<int64_t> MinorToMajor(const Shape& shape) {
  if (shape.has_layout()) return {shape.minor_to_major().begin(), shape.minor_to_major().end()};
  std::vector<int64_t> descending;
  for (int d = shape.rank() - 1; d >= 0; --d) descending.push_back(d);
  return descending;
}

// The rule of a call of a program, and whether the target has callbacks.
absl::Status FindRule(const RuleArgs& args, const TargetRegistry& targets, CheckedCall* call) {
  const TargetRule* registered = nullptr;
  const CustomCallSource source =
      FindCustomCallRule(args, &targets, /*maximal=*/false, &registered);
  if (source == CustomCallSource::kMissing) {
    return ToStatus({.code = "E101",
                     .message = absl::StrCat("target \"", call->target, "\" has no sharding rule"),
                     .where = absl::StrCat("%", args.instr.name),
                     .fix = "Give its rule in a manifest (--plugin=FILE.json) or by the program"},
                    absl::StatusCode::kNotFound);
  }
  call->own_rule = source != CustomCallSource::kRegistry;
  call->callbacks =
      source == CustomCallSource::kRegistry && registered->level == RuleLevel::kCallbacks;
  std::vector<const Shape*> shapes(args.operands.begin(), args.operands.end());
  shapes.insert(shapes.end(), args.results.begin(), args.results.end());
  if (registered != nullptr && registered->level == RuleLevel::kBatchDims &&
      source == CustomCallSource::kRegistry) {
    call->rule = BatchFactors(registered->batch_dims, call->num_operands, shapes);
  } else if (call->callbacks) {
    call->rule = NeedReplicationRule(args);
  } else {
    SHARDCALL_ASSIGN_OR_RETURN(call->rule, CustomCallRule(args, source, registered));
    const RuleAlternative* const signature =
        source != CustomCallSource::kRegistry
            ? nullptr
            : registered->Choose(args.instr.backend_config, args.operands, args.results);
    if (signature != nullptr) call->attributes = signature->attributes;
  }
  Complete(shapes, &call->rule);
  return absl::OkStatus();
}

// The check of a custom call of a program.
absl::StatusOr<CheckedCall> CallOf(const Module& module, const Instruction& instr,
                                   const TargetRegistry& targets) {
  const CustomCallAttrs& attrs = instr.as<CustomCallAttrs>();
  SHARDCALL_ASSIGN_OR_RETURN(CallShapes shapes, ShapesOf(module, instr));
  if (attrs.api_version < 1 || attrs.api_version > 4) {
    return ToStatus({.code = "E140",
                     .message = absl::StrCat("the call of \"", attrs.target, "\" has API version ",
                                             attrs.api_version,
                                             ", so that it is not known what its handler takes"),
                     .where = absl::StrCat("%", instr.name),
                     .expected = "1 to 4",
                     .found = absl::StrCat(attrs.api_version),
                     .fix = "Write api_version=API_VERSION_TYPED_FFI, or that of the handler"});
  }
  CheckedCall call;
  call.of_program = true;
  call.target = std::string(attrs.target);
  call.api_version = attrs.api_version;
  call.backend_config = std::string(instr.backend_config);
  call.num_operands = static_cast<int>(shapes.operands.size());
  call.tuple_result = instr.shape->IsTuple();
  call.types = std::move(shapes.types);
  call.type_tries = {call.types};
  call.has_side_effect = attrs.has_side_effect;
  call.aliasing = std::string(attrs.output_to_operand_aliasing);
  if (attrs.has_layout_constraints) {
    // The constraints are arrays, as the operands are.
    for (const Shape* shape : attrs.operand_layouts) call.layouts.push_back(MinorToMajor(*shape));
    for (const Shape* shape : shapes.results) call.layouts.push_back(MinorToMajor(*shape));
  }
  const RuleArgs args{module, instr, shapes.operands, shapes.results};
  SHARDCALL_RETURN_IF_ERROR(FindRule(args, targets, &call));
  if (call.attributes.empty()) return call;
  // The formulas must give what the call states, or trials in other sizes would show nothing.
  std::vector<int64_t> sizes;
  for (const Factor& f : call.rule.factors) sizes.push_back(f.size);
  SHARDCALL_RETURN_IF_ERROR(In(
      ConfigOfShard(call.attributes, call.target, call.backend_config, call.rule, sizes).status(),
      absl::StrCat("%", instr.name)));
  return call;
}

}  // namespace

absl::StatusOr<std::vector<CheckedCall>> CallsOfTarget(const std::string& target,
                                                       const TargetRegistry& targets,
                                                       const HandlerRegistry& handlers) {
  const TargetRule* rule = targets.Find(target, "");
  if (rule == nullptr) {
    const std::vector<std::string> near = targets.NamesLike(target);
    return ToStatus(
        {.code = "E101",
         .message = absl::StrCat("target \"", target, "\" has no sharding rule"),
         .expected = near.empty()
                         ? absl::StrCat("one of the ", targets.List().size(), " targets with one")
                         : absl::StrCat("a target with one, such as ", absl::StrJoin(near, ", ")),
         .found = target,
         .fix = "Give its rule in a manifest (--plugin=FILE.json) or by the program, or "
                "give a program whose call has one"},
        absl::StatusCode::kNotFound);
  }
  if (rule->level == RuleLevel::kBatchDims) {
    return NeedsProgram(target, "says how many dimensions are a batch, not how many there are");
  }
  const bool callbacks = rule->level == RuleLevel::kCallbacks;
  if (callbacks && rule->alternatives.empty()) return NeedsProgram(target, "has callbacks alone");
  SHARDCALL_ASSIGN_OR_RETURN(const HandlerEntry* handler, handlers.Find(target, "Host"));
  std::vector<CheckedCall> calls;
  for (const RuleAlternative& a : rule->alternatives) {
    if (!a.attributes.empty() && a.example_configs.empty()) {
      return NeedsProgram(target, absl::StrCat("says how attribute ", a.attributes[0].first,
                                               " follows the sizes, not which others there are"));
    }
    std::vector<std::string> configs = a.example_configs;
    if (configs.empty()) {
      // The kernel takes each attribute in one type, which the rule does not say.
      if (!a.when.empty()) return NeedsProgram(target, "has a rule for calls with attributes");
      configs.emplace_back();
    }
    for (const std::string& config : configs) {
      if (!a.AppliesTo(config)) continue;
      CheckedCall call;
      call.target = target;
      call.api_version = std::max(handler->api_version, 1);  // 0: any
      call.backend_config = config;
      call.callbacks = callbacks;
      call.rule = RuleOf(a);
      call.num_operands = a.num_operands;
      call.attributes = a.attributes;
      call.types.assign(a.values.size(), ElementType::kF32);
      call.tuple_result = static_cast<int>(a.values.size()) - a.num_operands != 1;
      Complete({}, &call.rule);
      SHARDCALL_ASSIGN_OR_RETURN(std::vector<CheckedCall> typed, WithTypes(std::move(call), a));
      std::move(typed.begin(), typed.end(), std::back_inserter(calls));
    }
  }
  SHARDCALL_RETURN_IF_ERROR(ApplyLimits(targets, &calls));
  return calls;
}

absl::StatusOr<std::vector<CheckedCall>> CallsOfModule(const std::string& target,
                                                       const TargetRegistry& targets,
                                                       const Module& module) {
  std::vector<CheckedCall> calls;
  std::set<std::string> seen;
  for (int n = 0; n < module.num_instructions(); ++n) {
    const Instruction& instr = module.instr(InstrId(n));
    if (instr.opcode != Opcode::kCustomCall || instr.as<CustomCallAttrs>().target != target) {
      continue;
    }
    SHARDCALL_ASSIGN_OR_RETURN(CheckedCall call, CallOf(module, instr, targets));
    std::vector<int64_t> sizes;
    for (const Factor& f : call.rule.factors) sizes.push_back(f.size);
    // All of the call, as its program has it.
    if (seen.insert(call.Hlo(sizes, {})).second) {
      calls.push_back(std::move(call));
    }
  }
  SHARDCALL_RETURN_IF_ERROR(ApplyLimits(targets, &calls));
  if (!calls.empty()) return calls;
  return ToStatus({.code = "E191",
                   .message = absl::StrCat("the program has no call of \"", target, "\""),
                   .fix = "Name a target that it calls"},
                  absl::StatusCode::kNotFound);
}

}  // namespace shardcall
