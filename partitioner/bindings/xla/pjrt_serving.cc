// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/xla/pjrt_serving.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/bindings/xla/asked_call.h"
#include "shardcall/partitioner/bindings/xla/pjrt_answers.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

// The memory that an answer points into until XLA has read it.
struct Answer {
  std::string error;
  std::vector<std::string> texts;
  std::vector<Shardcall_PjrtString> operands;
};
Shardcall_PjrtString Keep(Answer* answer, std::string text) {
  answer->texts.push_back(std::move(text));
  return {answer->texts.back().data(), answer->texts.back().size()};
}

// Runs `body(answer)`; no exception leaves it.
template <typename Body>
absl::Status Answering(Shardcall_PjrtHeader* header, Body&& body) {
  auto* const answer = new Answer;
  answer->texts.reserve(64);
  header->data = answer;
  header->cleanup_fn = [](void* data) { delete static_cast<Answer*>(data); };
  header->has_error = false;
  header->code = 0;
  header->error = {nullptr, 0};
  try {
    return body(answer);
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("a callback threw: ", e.what()));
  } catch (...) {
    return absl::InternalError("a callback threw");
  }
}

struct Served {
  Shardcall_PjrtCallbacks callbacks;  // first: a pointer to it is one to this
  PjrtTarget target;
};
const PjrtTarget& TargetOf(Shardcall_PjrtCallbacks* c) {
  return static_cast<Served*>(c->private_data)->target;
}

PjrtQuestion Read(size_t num_args, const Shardcall_PjrtAval* args,
                  const Shardcall_PjrtString& config) {
  PjrtQuestion q;
  for (size_t k = 0; k < num_args; ++k) {
    q.shapes.push_back(View(args[k].shape));
    q.shardings.push_back(args[k].has_sharding ? View(args[k].sharding) : absl::string_view());
  }
  q.config = View(config);
  return q;
}

bool IsManual(const HloSharding& s) {
  if (s.kind != HloSharding::Kind::kTuple) return s.kind == HloSharding::Kind::kManual;
  return !s.tuple.empty() && std::all_of(s.tuple.begin(), s.tuple.end(), IsManual);
}
bool IsManual(absl::string_view sharding) {
  const absl::StatusOr<HloSharding> s = ReadShardingProto(sharding, "a sharding");
  return s.ok() && IsManual(*s);
}

// XLA also asks about calls in a manual computation. Their operands are shards already, so the call
// is partitioned as if replicated, and its shardings are returned unchanged.
absl::StatusOr<PjrtPartitioned> AnswerManual(const PjrtTarget& target, PjrtQuestion q) {
  SHARDCALL_ASSIGN_OR_RETURN(const HloSharding result,
                             ReadShardingProto(q.result_sharding, "the result"));
  HloSharding whole;
  if (result.kind == HloSharding::Kind::kTuple) {
    whole.kind = HloSharding::Kind::kTuple;
    whole.tuple.assign(result.tuple.size(), HloSharding());
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::string replicated, WriteShardingProto(HloSharding()));
  SHARDCALL_ASSIGN_OR_RETURN(const std::string whole_result, WriteShardingProto(whole));
  for (absl::string_view& sharding : q.shardings) sharding = replicated;
  q.result_sharding = whole_result;
  SHARDCALL_ASSIGN_OR_RETURN(PjrtPartitioned made, AnswerPjrtPartition(target, q));
  made.result = result;
  for (HloSharding& operand : made.operands) operand = {.kind = HloSharding::Kind::kManual};
  return made;
}

void ServePartition(Shardcall_PjrtCallbacks* c, Shardcall_PjrtPartitionArgs* args) {
  const absl::Status status = Answering(&args->header, [&](Answer* answer) {
    PjrtQuestion q = Read(args->num_args, args->op_args, args->backend_config);
    q.result_shape = View(args->op_result.shape);
    if (args->op_result.has_sharding) q.result_sharding = View(args->op_result.sharding);
    SHARDCALL_ASSIGN_OR_RETURN(PjrtPartitioned made, IsManual(q.result_sharding)
                                                         ? AnswerManual(TargetOf(c), q)
                                                         : AnswerPjrtPartition(TargetOf(c), q));
    answer->texts.reserve(args->num_args + 2);
    answer->operands.resize(args->num_args);
    args->args_sharding = answer->operands.data();
    SHARDCALL_ASSIGN_OR_RETURN(std::string result, WriteShardingProto(made.result));
    args->result_sharding = Keep(answer, std::move(result));
    for (size_t k = 0; k < args->num_args; ++k) {
      SHARDCALL_ASSIGN_OR_RETURN(std::string operand, WriteShardingProto(made.operands.at(k)));
      answer->operands[k] = Keep(answer, std::move(operand));
    }
    args->mlir_module = Keep(answer, std::move(made.module));
    return absl::OkStatus();
  });
  if (status.ok()) return;
  auto* const answer = static_cast<Answer*>(args->header.data);
  answer->error = std::string(status.message());
  args->header.has_error = true;
  args->header.code = static_cast<int32_t>(status.code());
  args->header.error = {answer->error.data(), answer->error.size()};
}

void ServeInfer(Shardcall_PjrtCallbacks* c, Shardcall_PjrtInferArgs* args) {
  args->has_result_sharding = false;
  args->result_sharding = {nullptr, 0};
  // An error here would abort XLA's process. So nothing is propagated, and `partition` reports it.
  (void)Answering(&args->header, [&](Answer* answer) {
    PjrtQuestion q = Read(args->num_args, args->op_args, args->backend_config);
    q.result_shape = View(args->result_shape);
    for (absl::string_view sharding : q.shardings) {
      if (!IsManual(sharding)) continue;
      args->has_result_sharding = true;
      args->result_sharding = Keep(answer, std::string(sharding));
      return absl::OkStatus();
    }
    SHARDCALL_ASSIGN_OR_RETURN(std::string result, AnswerPjrtInfer(TargetOf(c), q));
    if (result.empty()) return absl::OkStatus();
    args->has_result_sharding = true;
    args->result_sharding = Keep(answer, std::move(result));
    return absl::OkStatus();
  });
}

void ServePropagate(Shardcall_PjrtCallbacks* c, Shardcall_PjrtPropagateArgs* args) {
  // For the same reason, an error leaves the given sharding unchanged.
  (void)Answering(&args->header, [&](Answer* answer) {
    PjrtQuestion q;
    q.config = View(args->backend_config);
    q.result_shape = View(args->result_shape);
    q.result_sharding = View(args->result_sharding);
    if (IsManual(q.result_sharding)) return absl::OkStatus();
    SHARDCALL_ASSIGN_OR_RETURN(std::string result, AnswerPjrtPropagate(TargetOf(c), q));
    args->result_sharding = Keep(answer, std::move(result));
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<Shardcall_PjrtCallbacks*> NewPjrtCallbacks(PjrtTarget target) {
  bool side_effects = false, found = false, by_call = false;
  for (const TargetRule* rule : target.rules->List()) {
    if (rule->target != target.name) continue;
    found = true;
    by_call = by_call || (rule->level == RuleLevel::kBatchDims && rule->batch_dims < 0);
    side_effects = side_effects || rule->callbacks.can_side_effecting_have_replicated_sharding;
  }
  if (!found || by_call) {
    return ToStatus({.code = "E101",
                     .message = absl::StrCat("target \"", target.name, "\" has no rule that ",
                                             "a PJRT plugin could ask"),
                     .found = by_call ? "calls that say their batch dims" : "no rule",
                     .fix = by_call ? "Register it as batch partitionable with the plugin"
                                    : "Register a rule, batch_dims or a partitioner first"},
                    absl::StatusCode::kFailedPrecondition);
  }
  if (target.like != nullptr) {
    const InstrId like = CallIn(*target.like, target.name);
    if (!like.valid()) {
      return ToStatus({.code = "E147",
                       .message = absl::StrCat("what calls of target \"", target.name,
                                               "\" are like is not said"),
                       .expected = "a program whose entry computation calls it",
                       .found = "none of its calls",
                       .fix = "Give such a program as PjrtTarget::like, or none"});
    }
    side_effects = side_effects || target.like->instr(like).as<CustomCallAttrs>().has_side_effect;
  }
  auto* const served = new Served{{}, std::move(target)};
  served->callbacks.private_data = served;
  served->callbacks.dtor = [](Shardcall_PjrtCallbacks* c) {
    delete static_cast<Served*>(c->private_data);
  };
  served->callbacks.partition = ServePartition;
  served->callbacks.infer_sharding = ServeInfer;
  served->callbacks.propagate_user_sharding = ServePropagate;
  served->callbacks.can_side_effecting_have_replicated_sharding = side_effects;
  return &served->callbacks;
}

}  // namespace shardcall
