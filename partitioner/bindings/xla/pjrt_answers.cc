// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/xla/pjrt_answers.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/bindings/xla/asked_call.h"
#include "shardcall/partitioner/bindings/xla/for_xla.h"
#include "shardcall/partitioner/import/import.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/stablehlo/writer.h"
#include "shardcall/partitioner/rules/op_rules.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/convert/convert.h"

namespace shardcall {
inline namespace internal {
namespace {

// One sharding for a value of that shape, made of those of its leaves; null: replicated.
absl::StatusOr<HloSharding> Joined(const Shape* shape, absl::Span<const Sharding* const> leaves) {
  std::vector<HloSharding> parts;
  for (const Sharding* s : leaves) {
    if (s == nullptr) {
      parts.emplace_back();
    } else {
      SHARDCALL_ASSIGN_OR_RETURN(parts.emplace_back(), ToHloSharding(*s));
    }
  }
  if (!shape->IsTuple()) return parts.at(0);
  HloSharding tuple;
  tuple.kind = HloSharding::Kind::kTuple;
  tuple.tuple = std::move(parts);
  return tuple;
}

// Which dimensions of result `k` must be replicated by some rule that the call may have, since XLA
// does not pass the operands' shapes here.
std::vector<bool> WholeDims(const TargetRule& rule, absl::string_view config, size_t k, int rank) {
  std::vector<bool> whole(rank, false);
  if (rule.level == RuleLevel::kBatchDims) {
    for (int d = std::max(0, rule.batch_dims); d < rank; ++d) whole[d] = true;
  }
  for (const RuleAlternative& a : rule.alternatives) {
    if (!a.AppliesTo(config)) continue;
    const size_t at = a.num_operands + k;
    if (at >= a.values.size()) continue;
    const RuleAlternative::Value& value = a.values[at];
    const int last = static_cast<int>(value.dims.size());
    if (value.ellipsis ? rank < last : rank != last) continue;
    for (int d = 0; d < last; ++d) {
      for (const std::string& factor : value.dims[d]) {
        for (const auto* list : {&a.text.need_replication, &a.text.permutation}) {
          const bool listed = std::find(list->begin(), list->end(), factor) != list->end();
          if (listed) whole[rank - last + d] = true;
        }
      }
    }
  }
  return whole;
}

}  // namespace

absl::StatusOr<PjrtPartitioned> AnswerPjrtPartition(const PjrtTarget& target,
                                                    const PjrtQuestion& q) {
  PartitionOptions options;
  options.targets = target.rules.get();
  options.propagate = false;
  const auto run = [&](Module module, int64_t n) {
    options.num_partitions = n;
    return Partition(std::move(module), options);
  };
  SHARDCALL_ASSIGN_OR_RETURN(AskedCall call, MakeAskedCall(target, q));
  const int64_t n = call.num_partitions;
  // The operand shardings that the rule needs. XLA reshards to them, since it knows the program
  // around the call.
  std::vector<HloSharding> wanted;
  SHARDCALL_ASSIGN_OR_RETURN(std::unique_ptr<PartitionedProgram> program,
                             run(std::move(call.module), n));
  const Module& global = program->global->program.module;
  const InstrId id = CallIn(global, target.name);
  if (id.valid() && program->plan.ops[id.value].kind == PlanKind::kRule) {
    SHARDCALL_ASSIGN_OR_RETURN(AskedCall again, MakeAskedCall(target, q));
    const auto states = program->plan.ops[id.value].decision->operands;
    const auto& parameters = again.module.comp(again.module.entry()).parameters;
    size_t leaf = 0;
    for (InstrId x : parameters) {
      const Shape* shape = again.module.instr(x).shape;
      SHARDCALL_ASSIGN_OR_RETURN(HloSharding s,
                                 Joined(shape, states.subspan(leaf, shape->num_leaves())));
      leaf += shape->num_leaves();
      again.module.mutable_instr(x).sharding =
          InternHloSharding(again.module.context(), std::move(s));
    }
    SHARDCALL_ASSIGN_OR_RETURN(program, run(std::move(again.module), n));
  }
  PjrtPartitioned out;
  SHARDCALL_ASSIGN_OR_RETURN(const std::optional<Module> for_xla,
                             ForXla(program->local.module, ""));
  const Module& local = for_xla.has_value() ? *for_xla : program->local.module;
  SHARDCALL_ASSIGN_OR_RETURN(out.module, WriteStablehloBytecode(local, {.all_call_layouts = true}));
  const Module& whole = program->global->program.module;
  const Computation& entry = whole.comp(whole.entry());
  const absl::Span<const Sharding* const> states(program->plan.parameters);
  size_t leaf = 0;
  for (InstrId x : entry.parameters) {
    const Shape* shape = whole.instr(x).shape;
    SHARDCALL_ASSIGN_OR_RETURN(out.operands.emplace_back(),
                               Joined(shape, states.subspan(leaf, shape->num_leaves())));
    leaf += shape->num_leaves();
  }
  SHARDCALL_ASSIGN_OR_RETURN(out.result,
                             Joined(whole.instr(entry.root).shape, program->plan.outputs));
  return out;
}

absl::StatusOr<std::string> AnswerPjrtInfer(const PjrtTarget& target, const PjrtQuestion& q) {
  SHARDCALL_ASSIGN_OR_RETURN(AskedCall call, MakeAskedCall(target, q));
  PartitionOptions options;
  options.targets = target.rules.get();
  options.num_partitions = call.num_partitions;
  if (call.num_partitions == 1) return std::string();
  call.module.header.propagate_to_output = {true};  // propagation may change the result's sharding
  SHARDCALL_ASSIGN_OR_RETURN(const std::unique_ptr<PropagatedProgram> program,
                             PropagateShardings(std::move(call.module), options));
  const Module& module = program->program.module;
  const InstrId id = CallIn(module, target.name);
  if (!id.valid()) return std::string();
  std::vector<const Sharding*> leaves;
  bool sharded = false;
  for (int k = 0; k < module.instr(id).shape->num_leaves(); ++k) {
    leaves.push_back(program->shardings.sharding[program->program.leaves.leaf(id, k).value]);
    sharded = sharded || (leaves.back() != nullptr && !leaves.back()->IsReplicated());
  }
  if (!sharded) return std::string();
  SHARDCALL_ASSIGN_OR_RETURN(const HloSharding result, Joined(module.instr(id).shape, leaves));
  return WriteShardingProto(result);
}

absl::StatusOr<std::string> AnswerPjrtPropagate(const PjrtTarget& target, const PjrtQuestion& q) {
  const TargetRule* rule = target.rules->Find(target.name, q.config);
  if (rule == nullptr) return std::string(q.result_sharding);
  SHARDCALL_ASSIGN_OR_RETURN(AskedCall call, MakeAskedCall(target, q));
  if (call.num_partitions == 1) return std::string(q.result_sharding);
  ImportOptions options;
  options.num_partitions = call.num_partitions;
  SHARDCALL_ASSIGN_OR_RETURN(const Program program, ImportModule(std::move(call.module), options));
  const InstrId id = CallIn(program.module, target.name);
  if (!id.valid()) return std::string(q.result_sharding);
  Context& context = program.module.context();
  const CustomCallView view = ViewCustomCall(program.module, id, program.mesh, {});
  const PartitionerCallbacks& callbacks = rule->callbacks;
  const bool asks = rule->level == RuleLevel::kCallbacks &&
                    callbacks.propagate_user_sharding != nullptr &&
                    callbacks.propagate_reads_result_alone;
  std::vector<const Sharding*> leaves;
  for (int k = 0; k < static_cast<int>(view.results.size()); ++k) {
    const ShardingConstraint* wish = program.constraints[program.leaves.leaf(id, k).value];
    leaves.push_back(nullptr);
    if (wish == nullptr || wish->unknown || !view.results[k]->IsArray()) continue;
    const Sharding* s = ToSharding(context, *wish);
    const std::vector<bool> whole = WholeDims(*rule, q.config, k, s->rank());
    ShardingBuilder b(*s);
    for (int d = 0; d < s->rank(); ++d) {
      if (whole[d]) b.dims[d].clear();
    }
    s = b.Intern(context);
    if (asks) {
      SHARDCALL_ASSIGN_OR_RETURN(const Sharding* answer,
                                 callbacks.propagate_user_sharding(view, k, s));
      if (answer != nullptr) {
        SHARDCALL_ASSIGN_OR_RETURN(s, view.Checked(answer, view.results[k], "the result"));
      }
    }
    leaves.back() = s;
  }
  SHARDCALL_ASSIGN_OR_RETURN(const HloSharding result,
                             Joined(program.module.instr(id).shape, leaves));
  return WriteShardingProto(result);
}

}  // namespace internal
}  // namespace shardcall
