// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/xla/pjrt_answers.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/bindings/xla/for_xla.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/build/program_builder.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/stablehlo/writer.h"
#include "shardcall/partitioner/rules/op_rules.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/convert.h"

namespace shardcall::inline internal {
namespace {

struct OneCall {
  explicit OneCall(Module m) : module(std::move(m)) {}
  Module module;
  int64_t num_partitions = 1;
};

int64_t DevicesOf(const HloSharding& s) {
  switch (s.kind) {
    case HloSharding::Kind::kTiled: return s.num_devices();
    case HloSharding::Kind::kNamed:
      return s.named.mesh != nullptr ? s.named.mesh->num_devices() : 1;
    case HloSharding::Kind::kTuple: {
      int64_t n = 1;
      for (const HloSharding& part : s.tuple) n = std::max(n, DevicesOf(part));
      return n;
    }
    default: return 1;
  }
}

absl::Status Wrong(const PjrtTarget& target, std::string message, std::string expected,
                   std::string found, std::string fix) {
  return ToStatus({.code = "E147",
                   .message = std::move(message),
                   .where = absl::StrCat("target \"", target.name, "\""),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = std::move(fix)});
}

// Arrays in descending layout, and tuples of them and of tokens.
absl::StatusOr<const Shape*> Plain(const PjrtTarget& target, Context& context, const Shape* shape) {
  if (shape->IsToken()) return shape;
  if (shape->IsTuple()) {
    std::vector<const Shape*> parts;
    for (const Shape* part : shape->tuple()) {
      SHARDCALL_ASSIGN_OR_RETURN(parts.emplace_back(), Plain(target, context, part));
    }
    return context.MakeTuple(parts);
  }
  if (!shape->IsArray() || shape->IsDynamic()) {
    return Wrong(target, "a call is asked about with a value of a kind that is not sharded here",
                 "an array of fixed size", shape->ToString(false), "give its operands fixed sizes");
  }
  return context.WithDefaultLayout(context.MakeArray(shape->element_type(), shape->dims()));
}

// ENTRY { ROOT call(parameters) }, with the shardings on the parameters and the call.
absl::StatusOr<OneCall> MakeCall(const PjrtTarget& target, const PjrtQuestion& q) {
  ProgramBuilder p("local");
  Context& context = p.module().context();
  std::vector<InstrId> parameters;
  std::vector<std::pair<InstrId, HloSharding>> marks;
  int64_t devices = 1;
  const auto mark = [&](InstrId id, absl::string_view bytes, absl::string_view what) {
    if (bytes.empty()) return absl::OkStatus();
    SHARDCALL_ASSIGN_OR_RETURN(HloSharding s, ReadShardingProto(bytes, what));
    devices = std::max(devices, DevicesOf(s));
    if (s.kind != HloSharding::Kind::kUnknown) marks.emplace_back(id, std::move(s));
    return absl::OkStatus();
  };
  const auto shape_of = [&](absl::string_view bytes,
                            absl::string_view what) -> absl::StatusOr<const Shape*> {
    SHARDCALL_ASSIGN_OR_RETURN(const Shape* read,
                               ReadShapeProto(bytes, p.module().shared_context(), what));
    return Plain(target, context, read);
  };
  for (size_t k = 0; k < q.shapes.size(); ++k) {
    const std::string what = absl::StrCat("operand ", k);
    SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, shape_of(q.shapes[k], what));
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId x, p.Parameter(shape));
    SHARDCALL_RETURN_IF_ERROR(mark(x, q.shardings[k], what));
    parameters.push_back(x);
  }
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* result, shape_of(q.result_shape, "the result"));
  CustomCallAttrs attrs;
  attrs.target = target.name;
  attrs.api_version = target.api_version;
  if (attrs.api_version == 0) {
    if (q.config.empty() || q.config[0] != '{') {
      return Wrong(target, "it is not known which ABI a call has that is not of the typed FFI",
                   "an API version of 1 to 3 with its registration", "none",
                   "register its function with the API version that its calls have");
    }
    attrs.api_version = kTypedFfiCall;
  }
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId call,
                             p.builder().CustomCall(attrs, parameters, result, q.config));
  SHARDCALL_RETURN_IF_ERROR(mark(call, q.result_sharding, "the result"));
  for (auto& [id, sharding] : marks) {
    // XLA's sharding may be a tuple of one element for an array; take the element.
    if (sharding.kind == HloSharding::Kind::kTuple && !p.module().instr(id).shape->IsTuple() &&
        sharding.tuple.size() == 1) {
      HloSharding element = sharding.tuple[0];
      sharding = std::move(element);
    }
    p.module().mutable_instr(id).sharding = InternHloSharding(context, std::move(sharding));
  }
  p.module().header.num_partitions = devices;
  p.module().header.has_num_partitions = true;
  SHARDCALL_ASSIGN_OR_RETURN(Module module, std::move(p).Build(call));
  OneCall out(std::move(module));
  out.num_partitions = devices;
  return out;
}

InstrId CallIn(const Module& module, absl::string_view target) {
  for (InstrId id : module.comp(module.entry()).instructions) {
    const Instruction& i = module.instr(id);
    if (i.opcode == Opcode::kCustomCall && i.as<CustomCallAttrs>().target == target) return id;
  }
  return InstrId();
}

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
  SHARDCALL_ASSIGN_OR_RETURN(OneCall call, MakeCall(target, q));
  const int64_t n = call.num_partitions;
  // The operand shardings that the rule needs. XLA reshards to them, since it knows the program
  // around the call.
  std::vector<HloSharding> wanted;
  SHARDCALL_ASSIGN_OR_RETURN(std::unique_ptr<PartitionedProgram> program,
                             run(std::move(call.module), n));
  const Module& global = program->global->program.module;
  const InstrId id = CallIn(global, target.name);
  if (id.valid() && program->plan.ops[id.value].kind == PlanKind::kRule) {
    SHARDCALL_ASSIGN_OR_RETURN(OneCall again, MakeCall(target, q));
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
  SHARDCALL_ASSIGN_OR_RETURN(const std::optional<Module> for_xla, ForXla(program->local.module));
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
  SHARDCALL_ASSIGN_OR_RETURN(OneCall call, MakeCall(target, q));
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
  SHARDCALL_ASSIGN_OR_RETURN(OneCall call, MakeCall(target, q));
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

}  // namespace shardcall::inline internal
