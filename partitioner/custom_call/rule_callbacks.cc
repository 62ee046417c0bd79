// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/rule_callbacks.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/build/nearest_literal.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using Shardings = absl::Span<const Sharding* const>;

// The factor assignment of the call before anything is sharded.
FactorAssignment Factors(const ShardingRule& rule, const CustomCallView& call) {
  IndexSet allowed;
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    if (rule.factors[f].kind != FactorKind::kNeedReplication) allowed.Insert(static_cast<int>(f));
  }
  return FactorAssignment(rule, call.mesh, call.manual_axes, allowed);
}

// Takes over the shardings of tensors `first` and following. If two factors want an axis, the
// first one gets it.
void Project(int first, Shardings shardings, FactorAssignment* factors) {
  for (size_t k = 0; k < shardings.size(); ++k) {
    if (shardings[k] != nullptr) factors->Project(first + static_cast<int>(k), *shardings[k]);
  }
}

// The local operands, with the padding that the rule asks for.
absl::StatusOr<std::vector<InstrId>> Operands(PartitionContext& context, const ShardingRule& rule,
                                              const FactorAssignment& factors) {
  const CustomCallView& call = context.call();
  std::vector<InstrId> out;
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const int t = static_cast<int>(k);
    const Sharding* s =
        call.operands[k]->IsArray() ? factors.DimSharding(*call.context, t) : nullptr;
    SHARDCALL_ASSIGN_OR_RETURN(LocalValue x, context.Operand(t, s));
    const TensorFactors& tensor = rule.tensor(t);
    for (size_t d = 0; s != nullptr && d < tensor.dims.size(); ++d) {
      for (int f : tensor.dims[d]) {
        if (!rule.factors[f].has_pad || factors.axes()[f].empty()) continue;
        SHARDCALL_ASSIGN_OR_RETURN(
            const InstrId fill,
            context.builder().Constant(NearestLiteral(
                *call.context, call.operands[k]->element_type(), rule.factors[f].pad)));
        SHARDCALL_ASSIGN_OR_RETURN(
            x, context.MaskPadding(x, call.operands[k], s, {static_cast<int>(d)}, {fill}));
      }
    }
    out.push_back(x.id);
  }
  return out;
}

absl::Status PartitionByRule(PartitionContext& context, const TargetRule& target,
                             const LocalBody& body) {
  const CustomCallView& call = context.call();
  SHARDCALL_ASSIGN_OR_RETURN(const ShardingRule rule,
                             target.Instantiate(call.backend_config, call.operands, call.results));
  const int num_operands = static_cast<int>(call.operands.size());
  std::vector<const Sharding*> operands, results;
  for (int k = 0; k < num_operands; ++k) operands.push_back(context.operand_sharding(k));
  for (size_t k = 0; k < call.results.size(); ++k) {
    results.push_back(context.result_sharding(static_cast<int>(k)));
  }
  FactorAssignment factors = Factors(rule, call);
  Project(0, operands, &factors);
  Project(num_operands, results, &factors);
  return BuildByRule(context, rule, factors, body);
}

}  // namespace

int LocalCall::Factor(absl::string_view name) const {
  for (size_t f = 0; f < rule_.factors.size(); ++f) {
    if (rule_.factors[f].name == name) return static_cast<int>(f);
  }
  SHARDCALL_CHECK(false && "a body names a factor that its rule does not have");
}

absl::Span<const AxisRef> LocalCall::Axes(absl::string_view factor) const {
  return factors_.axes()[Factor(factor)];
}

int64_t LocalCall::Size(absl::string_view factor) const {
  return rule_.factors[Factor(factor)].size;
}

int64_t LocalCall::Tile(absl::string_view factor) const {
  return CeilDiv(Size(factor), AxesSize(Axes(factor)));
}

absl::StatusOr<InstrId> LocalCall::Start(absl::string_view factor) const {
  const int f = Factor(factor);
  for (int t = 0; t < rule_.num_tensors(); ++t) {
    const TensorFactors& tensor = rule_.tensor(t);
    for (size_t d = 0; d < tensor.dims.size(); ++d) {
      if (tensor.dims[d].size() != 1 || tensor.dims[d][0] != f) continue;
      const int num_operands = static_cast<int>(call().operands.size());
      const Shape* shape = t < num_operands ? call().operands[t] : call().results[t - num_operands];
      SHARDCALL_ASSIGN_OR_RETURN(const LocalValue start,
                                 context_.TileStart(shape, TensorSharding(t), static_cast<int>(d)));
      return start.id;
    }
  }
  return builder().ConstantInt(ElementType::kS32, 0);
}

absl::StatusOr<InstrId> LocalCall::LocalIndices(InstrId x, absl::string_view factor) const {
  if (!IsSharded(factor)) return x;
  CheckedBuilder& b = builder();
  const ElementType type = b.type(x);
  SHARDCALL_ASSIGN_OR_RETURN(InstrId start, Start(factor));
  SHARDCALL_ASSIGN_OR_RETURN(start, b.Convert(start, type));
  SHARDCALL_ASSIGN_OR_RETURN(start, b.BroadcastScalar(start, shape(x)));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId local, b.Add(Opcode::kSubtract, {x, start}));
  if (Size(factor) % AxesSize(Axes(factor)) == 0) return local;
  // The last tiles may reach past the dimension's end, where an index would be out of bounds.
  SHARDCALL_ASSIGN_OR_RETURN(InstrId end, b.ConstantInt(type, Size(factor)));
  SHARDCALL_ASSIGN_OR_RETURN(end, b.BroadcastScalar(end, shape(x)));
  SHARDCALL_ASSIGN_OR_RETURN(InstrId none, b.ConstantInt(type, -1));
  SHARDCALL_ASSIGN_OR_RETURN(none, b.BroadcastScalar(none, shape(x)));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId inside, b.Compare(Direction::kLt, x, end));
  return b.Add(Opcode::kSelect, {inside, local, none});
}

absl::StatusOr<InstrId> LocalCall::MaskOperand(InstrId x, int i, int dim, InstrId fill) const {
  SHARDCALL_ASSIGN_OR_RETURN(
      const LocalValue masked,
      context_.MaskPadding({x}, call().operands[i], TensorSharding(i), {dim}, {fill}));
  return masked.id;
}

const Sharding* LocalCall::TensorSharding(int t) const {
  return factors_.DimSharding(*call().context, t);
}

const Shape* LocalCall::LocalResult(int i) const {
  const Shape* global = call().results[i];
  if (!global->IsArray()) return global;
  const int t = static_cast<int>(call().operands.size()) + i;
  return LocalShape(*call().context, global, TensorSharding(t));
}

absl::StatusOr<std::vector<InstrId>> LocalCall::CallTarget(
    absl::Span<const InstrId> operands) const {
  std::vector<LocalValue> values;
  for (InstrId id : operands) values.push_back({id});
  std::vector<const Shape*> shapes;
  for (size_t k = 0; k < call().results.size(); ++k) {
    shapes.push_back(LocalResult(static_cast<int>(k)));
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<LocalValue> made,
                             context_.CallTarget(values, shapes));
  std::vector<InstrId> out;
  for (LocalValue v : made) out.push_back(v.id);
  return out;
}

absl::StatusOr<std::vector<InstrId>> LocalCall::MakeCall(
    absl::string_view target, absl::string_view config, absl::Span<const InstrId> operands,
    absl::Span<const Shape* const> results) const {
  CheckedBuilder& b = builder();
  CustomCallAttrs attrs;
  attrs.target = target;
  attrs.api_version = kTypedFfiCall;
  const bool one = results.size() == 1;
  SHARDCALL_ASSIGN_OR_RETURN(
      const InstrId made,
      b.CustomCall(attrs, operands, one ? results[0] : b.context().MakeTuple(results)));
  b.module().mutable_instr(made).backend_config = b.context().Intern(config);
  if (one) return std::vector<InstrId>{made};
  std::vector<InstrId> out;
  for (size_t k = 0; k < results.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId leaf,
                               b.GetTupleElement(made, static_cast<int64_t>(k)));
    out.push_back(leaf);
  }
  return out;
}

absl::StatusOr<InstrId> LocalCall::AllReduce(InstrId x, PartialOp op,
                                             absl::string_view factor) const {
  SHARDCALL_ASSIGN_OR_RETURN(const LocalValue out, context_.AllReduce({x}, op, Axes(factor)));
  return out.id;
}

absl::StatusOr<InstrId> LocalCall::AllGather(InstrId x, int dim, absl::string_view factor) const {
  SHARDCALL_ASSIGN_OR_RETURN(const LocalValue out, context_.AllGather({x}, dim, Axes(factor)));
  return out.id;
}

absl::Status internal::BuildByRule(PartitionContext& context, const ShardingRule& rule,
                                   const FactorAssignment& factors, const LocalBody& body) {
  const CustomCallView& call = context.call();
  const int num_operands = static_cast<int>(call.operands.size());
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<InstrId> local, Operands(context, rule, factors));
  LocalCall local_call(context, rule, factors);
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<InstrId> made, body(local_call, local));
  if (made.size() != call.results.size()) {
    return absl::InternalError(
        absl::StrCat("its body made ", made.size(), " of ", call.results.size(), " results"));
  }
  for (size_t k = 0; k < made.size(); ++k) {
    const int t = num_operands + static_cast<int>(k);
    const Sharding* s =
        call.results[k]->IsArray() ? factors.TensorSharding(*call.context, t) : nullptr;
    SHARDCALL_RETURN_IF_ERROR(context.SetResult(static_cast<int>(k), {made[k]}, s));
  }
  return absl::OkStatus();
}

absl::Status RegisterRuleWithBody(TargetRegistry& registry, std::string target,
                                  std::vector<RuleAlternative> alternatives, LocalBody body,
                                  std::string source) {
  // A separate registry parses the rules and keeps them for the callbacks.
  auto rules = std::make_shared<TargetRegistry>();
  SHARDCALL_RETURN_IF_ERROR(rules->RegisterCallbacksOfRule(target, alternatives, {}, source));
  auto rule_of = [rules, target](const CustomCallView& call) {
    return rules->Find(target, "")->Instantiate(call.backend_config, call.operands, call.results);
  };
  PartitionerCallbacks callbacks;
  callbacks.propagate_user_sharding = [rule_of](
                                          const CustomCallView& call, int index,
                                          const Sharding* user) -> absl::StatusOr<const Sharding*> {
    SHARDCALL_ASSIGN_OR_RETURN(const ShardingRule rule, rule_of(call));
    const int t = static_cast<int>(call.operands.size()) + index;
    FactorAssignment factors = Factors(rule, call);
    Project(t, {user}, &factors);
    return factors.DimSharding(*call.context, t);
  };
  callbacks.infer_sharding_from_operands =
      [rule_of](const CustomCallView& call,
                Shardings operands) -> absl::StatusOr<std::vector<const Sharding*>> {
    SHARDCALL_ASSIGN_OR_RETURN(const ShardingRule rule, rule_of(call));
    FactorAssignment factors = Factors(rule, call);
    Project(0, operands, &factors);
    std::vector<const Sharding*> out;
    for (size_t k = 0; k < call.results.size(); ++k) {
      const int t = static_cast<int>(call.operands.size() + k);
      out.push_back(factors.DimSharding(*call.context, t));
    }
    return out;
  };
  callbacks.partition = [rules, target, body](PartitionContext& context) -> absl::Status {
    return PartitionByRule(context, *rules->Find(target, ""), body);
  };
  callbacks.body = std::move(body);
  return registry.RegisterCallbacksOfRule(std::move(target), std::move(alternatives),
                                          std::move(callbacks), std::move(source));
}

}  // namespace shardcall
