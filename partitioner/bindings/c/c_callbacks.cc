// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/c/c_callbacks.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/guard/running_call.h"
#include "shardcall/partitioner/bindings/c/c_call_view.h"
#include "shardcall/partitioner/bindings/c/c_internal.h"
#include "shardcall/partitioner/bindings/manifest/partial_op_names.h"
#include "shardcall/partitioner/ir/shapes/shape_inference.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int32_t kMostValues = 1 << 16;

using Context = const Shardcall_PartitionContext*;
using Handle = const Shardcall_Sharding*;
using Names = const char* const*;

// Shardcall_PartitionContext::reserved
struct Partitioning {
  PartitionContext& context;
  CCallView view;
  explicit Partitioning(PartitionContext& c) : context(c), view(c.call()) {}
};
Partitioning& Of(Context c) { return *static_cast<Partitioning*>(c->reserved); }

constexpr int kNoContext = static_cast<int>(absl::StatusCode::kInvalidArgument);

// Runs `body`, which returns a Status, for a callback that may be C: no exception leaves it.
template <typename Body>
int Done(Context c, Body&& body) {
  if (c == nullptr) return kNoContext;
  Partitioning& p = Of(c);
  absl::Status status;
  try {
    status = body(p);
  } catch (...) {
    status = ThrownStatus("a partition callback");
  }
  return status.ok() ? 0 : p.view.Fail(std::move(status));
}
// The same for a StatusOr<LocalValue>, whose value goes to `out`.
template <typename Body>
int Give(Context c, Shardcall_Value* out, Body&& body) {
  return Done(c, [&](Partitioning& p) -> absl::Status {
    if (out == nullptr) return p.view.call().Misfit("a value has no place", "a pointer", "null");
    SHARDCALL_ASSIGN_OR_RETURN(const LocalValue value, body(p));
    out->id = value.id.value;
    return absl::OkStatus();
  });
}

LocalValue ValueOf(Shardcall_Value v) { return {InstrId(v.id)}; }

absl::StatusOr<PartialOp> OpOf(Partitioning& p, const char* name) {
  PartialOp op;
  if (name != nullptr && PartialOpFromName(name, &op)) return op;
  return p.view.call().Misfit("there is no such reduction", std::string(kPartialOpNames),
                              name == nullptr ? "null" : name);
}

absl::StatusOr<std::vector<LocalValue>> ValuesOf(Partitioning& p, const Shardcall_Value* values,
                                                 int32_t n) {
  if (n < 0 || n > kMostValues || (n > 0 && values == nullptr)) {
    return p.view.call().Misfit("a list of values is wrong", "as many values as are said",
                                absl::StrCat(n, values == nullptr ? " at null" : ""));
  }
  std::vector<LocalValue> out;
  for (int32_t k = 0; k < n; ++k) out.push_back(ValueOf(values[k]));
  return out;
}

Handle OperandSharding(Context c, int32_t i) {
  return c == nullptr ? nullptr : Of(c).view.Give(Of(c).context.operand_sharding(i));
}
Handle ResultSharding(Context c, int32_t i) {
  return c == nullptr ? nullptr : Of(c).view.Give(Of(c).context.result_sharding(i));
}
int Operand(Context c, int32_t i, Handle sharding, Shardcall_Value* value) {
  return Give(c, value, [&](Partitioning& p) -> absl::StatusOr<LocalValue> {
    SHARDCALL_ASSIGN_OR_RETURN(const Sharding* s, p.view.Take(sharding));
    return p.context.Operand(i, s);
  });
}
int ShapeOf(Context c, Shardcall_Value value, Shardcall_Shape* shape) {
  return Done(c, [&](Partitioning& p) -> absl::Status {
    SHARDCALL_ASSIGN_OR_RETURN(const Shape* const s, p.context.ShapeOf(ValueOf(value)));
    if (shape == nullptr || !s->IsArray()) {
      return p.view.call().Misfit("a shape has no place", "an array's value, and a pointer",
                                  s->ToString(false));
    }
    *shape = SHARDCALL_INIT(Shardcall_Shape);
    shape->type = static_cast<int32_t>(s->element_type());
    shape->rank = s->rank();
    shape->dims = s->dims().data();
    return absl::OkStatus();
  });
}
// `config`: that of the call if null.
int CallTargetBy(Context c, const absl::string_view* config, const Shardcall_Value* operands,
                 const Handle* shardings, Shardcall_Value* results) {
  return Done(c, [&](Partitioning& p) -> absl::Status {
    const CustomCallView& call = p.view.call();
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<LocalValue> in,
                               ValuesOf(p, operands, static_cast<int32_t>(call.operands.size())));
    if (!call.results.empty() && (shardings == nullptr || results == nullptr)) {
      return call.Misfit("the target is called without shardings or a place for its results",
                         "num_results of each", "null");
    }
    std::vector<const Shape*> shapes;
    for (size_t k = 0; k < call.results.size(); ++k) {
      const Shape* shape = call.results[k];
      if (shape->IsArray()) {
        SHARDCALL_ASSIGN_OR_RETURN(const Sharding* s, p.view.Take(shardings[k]));
        SHARDCALL_ASSIGN_OR_RETURN(s, call.Checked(s, shape, absl::StrCat("result ", k)));
        shape = LocalShape(*call.context, shape, s);
      }
      shapes.push_back(shape);
    }
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<LocalValue> out,
                               config == nullptr ? p.context.CallTarget(in, shapes)
                                                 : p.context.CallTargetWith(*config, in, shapes));
    for (size_t k = 0; k < out.size(); ++k) results[k].id = out[k].id.value;
    return absl::OkStatus();
  });
}
int CallTarget(Context c, const Shardcall_Value* operands, const Handle* shardings,
               Shardcall_Value* results) {
  return CallTargetBy(c, nullptr, operands, shardings, results);
}
int CallTargetWith(Context c, const char* config, size_t size, const Shardcall_Value* operands,
                   const Handle* shardings, Shardcall_Value* results) {
  const absl::string_view given(config, config == nullptr ? 0 : size);
  return CallTargetBy(c, config == nullptr ? nullptr : &given, operands, shardings, results);
}
int AddProgram(Context c, const char* hlo, size_t size, const Shardcall_Value* operands,
               int32_t num_operands, Shardcall_Value* results, int32_t num_results) {
  return Done(c, [&](Partitioning& p) -> absl::Status {
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<LocalValue> in,
                               ValuesOf(p, operands, num_operands));
    SHARDCALL_RETURN_IF_ERROR(ValuesOf(p, results, num_results).status());
    if (hlo == nullptr) return p.view.call().Misfit("a program is null", "HLO text", "null");
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<LocalValue> out,
                               p.context.AddProgram(absl::string_view(hlo, size), in));
    if (out.size() != num_results) {
      return p.view.call().Misfit("a program gives another number of results",
                                  absl::StrCat(num_results), absl::StrCat(out.size()));
    }
    for (size_t k = 0; k < out.size(); ++k) results[k].id = out[k].id.value;
    return absl::OkStatus();
  });
}
int PartitionId(Context c, Shardcall_Value* id) {
  return Give(c, id, [&](Partitioning& p) -> absl::StatusOr<LocalValue> {
    return p.context.PartitionId();
  });
}
int AxisIndex(Context c, Names axes, Shardcall_Value* index) {
  return Give(c, index, [&](Partitioning& p) -> absl::StatusOr<LocalValue> {
    SHARDCALL_ASSIGN_OR_RETURN(const AxisList list, p.view.Axes(axes));
    return p.context.AxisIndex(list);
  });
}
int AllReduce(Context c, Shardcall_Value x, const char* op, Names axes, Shardcall_Value* result) {
  return Give(c, result, [&](Partitioning& p) -> absl::StatusOr<LocalValue> {
    SHARDCALL_ASSIGN_OR_RETURN(const PartialOp reduction, OpOf(p, op));
    SHARDCALL_ASSIGN_OR_RETURN(const AxisList list, p.view.Axes(axes));
    return p.context.AllReduce(ValueOf(x), reduction, list);
  });
}
int AllGather(Context c, Shardcall_Value x, int32_t dim, Names axes, Shardcall_Value* result) {
  return Give(c, result, [&](Partitioning& p) -> absl::StatusOr<LocalValue> {
    SHARDCALL_ASSIGN_OR_RETURN(const AxisList list, p.view.Axes(axes));
    return p.context.AllGather(ValueOf(x), dim, list);
  });
}
int ReduceScatter(Context c, Shardcall_Value x, int32_t dim, const char* op, Names axes,
                  Shardcall_Value* result) {
  return Give(c, result, [&](Partitioning& p) -> absl::StatusOr<LocalValue> {
    SHARDCALL_ASSIGN_OR_RETURN(const PartialOp reduction, OpOf(p, op));
    SHARDCALL_ASSIGN_OR_RETURN(const AxisList list, p.view.Axes(axes));
    return p.context.ReduceScatter(ValueOf(x), dim, reduction, list);
  });
}
int AllToAll(Context c, Shardcall_Value x, int32_t split, int32_t join, Names axes,
             Shardcall_Value* result) {
  return Give(c, result, [&](Partitioning& p) -> absl::StatusOr<LocalValue> {
    SHARDCALL_ASSIGN_OR_RETURN(const AxisList list, p.view.Axes(axes));
    return p.context.AllToAll(ValueOf(x), split, join, list);
  });
}
int CollectivePermute(Context c, Shardcall_Value x, Names axes, const int64_t* sources,
                      const int64_t* targets, int32_t num_pairs, Shardcall_Value* result) {
  return Give(c, result, [&](Partitioning& p) -> absl::StatusOr<LocalValue> {
    if (num_pairs < 0 || (num_pairs > 0 && (sources == nullptr || targets == nullptr))) {
      return p.view.call().Misfit("a permutation is wrong", "as many pairs as are said",
                                  absl::StrCat(num_pairs));
    }
    std::vector<std::pair<int64_t, int64_t>> pairs;
    for (int32_t k = 0; k < num_pairs; ++k) pairs.push_back({sources[k], targets[k]});
    SHARDCALL_ASSIGN_OR_RETURN(const AxisList list, p.view.Axes(axes));
    return p.context.CollectivePermute(ValueOf(x), list, pairs);
  });
}
int Reshard(Context c, Shardcall_Value x, const Shardcall_Shape* global, Handle from, Handle to,
            Shardcall_Value* result) {
  return Give(c, result, [&](Partitioning& p) -> absl::StatusOr<LocalValue> {
    SHARDCALL_ASSIGN_OR_RETURN(const Shape* local, p.context.ShapeOf(ValueOf(x)));
    if (global == nullptr || (global->rank > 0 && global->dims == nullptr) || !local->IsArray()) {
      return p.view.call().Misfit("a reshard is asked for without a global shape", "an array's",
                                  "none");
    }
    if (global->rank < 0 || global->rank > kMaxRank) {
      return p.view.call().Misfit("a reshard is asked for with an impossible number of dimensions",
                                  absl::StrCat("0 to ", kMaxRank), absl::StrCat(global->rank));
    }
    for (int32_t d = 0; d < global->rank; ++d) {
      if (global->dims[d] >= 0 && global->dims[d] < (int64_t{1} << 40)) continue;
      return p.view.call().Misfit("a reshard is asked for with an impossible dimension",
                                  "0 or more", absl::StrCat(global->dims[d]));
    }
    const Shape* shape = p.view.call().context->MakeArray(
        local->element_type(), absl::MakeConstSpan(global->dims, global->rank));
    SHARDCALL_ASSIGN_OR_RETURN(const Sharding* a, p.view.Take(from));
    SHARDCALL_ASSIGN_OR_RETURN(const Sharding* b, p.view.Take(to));
    return p.context.Reshard(ValueOf(x), p.view.call().context->WithDefaultLayout(shape), a, b);
  });
}
int SetResult(Context c, int32_t i, Shardcall_Value value, Handle sharding) {
  return Done(c, [&](Partitioning& p) -> absl::Status {
    SHARDCALL_ASSIGN_OR_RETURN(const Sharding* const s, p.view.Take(sharding));
    return p.context.SetResult(i, ValueOf(value), s);
  });
}

absl::Status Partition(const Shardcall_Partitioner& callbacks, PartitionContext& context) {
  Partitioning p(context);
  Shardcall_PartitionContext c = SHARDCALL_INIT(Shardcall_PartitionContext);
  c.call = p.view.c();
  c.operand_sharding = OperandSharding;
  c.result_sharding = ResultSharding;
  c.operand = Operand;
  c.shape = ShapeOf;
  c.call_target = CallTarget;
  c.add_program = AddProgram;
  c.partition_id = PartitionId;
  c.axis_index = AxisIndex;
  c.all_reduce = AllReduce;
  c.all_gather = AllGather;
  c.reduce_scatter = ReduceScatter;
  c.all_to_all = AllToAll;
  c.collective_permute = CollectivePermute;
  c.reshard = Reshard;
  c.set_result = SetResult;
  c.call_target_with = CallTargetWith;
  c.reserved = &p;
  const RunningCall running("the partition callback", context.call().target,
                            context.call().instruction);
  return p.view.Returned(callbacks.partition(&c, callbacks.data));
}

}  // namespace

// The size in version 0.2.
constexpr size_t kFirstPartitionerSize =
    offsetof(Shardcall_Partitioner, propagate_reads_result_alone);

absl::StatusOr<PartitionerCallbacks> MakeCCallbacks(const Shardcall_Partitioner& partitioner,
                                                    std::shared_ptr<const void> library) {
  Shardcall_Partitioner c;
  SHARDCALL_RETURN_IF_ERROR(
      ReadStruct("a Shardcall_Partitioner", &partitioner, kFirstPartitionerSize, &c));
  PartitionerCallbacks out;
  out.version = c.version == 0 ? 1 : c.version;
  out.can_side_effecting_have_replicated_sharding =
      c.can_side_effecting_have_replicated_sharding != 0;
  out.propagate_reads_result_alone = c.propagate_reads_result_alone != 0;
  out.identity = {reinterpret_cast<const void*>(c.propagate_user_sharding),
                  reinterpret_cast<const void*>(c.infer_sharding_from_operands),
                  reinterpret_cast<const void*>(c.partition), c.data};
  if (c.propagate_user_sharding != nullptr) {
    out.propagate_user_sharding = [c, library](
                                      const CustomCallView& call, int index,
                                      const Sharding* user) -> absl::StatusOr<const Sharding*> {
      CCallView view(call);
      Handle answer = nullptr;
      const RunningCall running("propagate_user_sharding", call.target, call.instruction);
      SHARDCALL_RETURN_IF_ERROR(view.Returned(
          c.propagate_user_sharding(view.c(), index, view.Give(user), &answer, c.data)));
      return view.Take(answer);
    };
  }
  if (c.infer_sharding_from_operands != nullptr) {
    out.infer_sharding_from_operands = [c, library](const CustomCallView& call,
                                                    absl::Span<const Sharding* const> operands)
        -> absl::StatusOr<std::vector<const Sharding*>> {
      CCallView view(call);
      std::vector<Handle> in, answers(call.results.size());
      for (const Sharding* s : operands) in.push_back(view.Give(s));
      const RunningCall running("infer_sharding_from_operands", call.target, call.instruction);
      SHARDCALL_RETURN_IF_ERROR(view.Returned(
          c.infer_sharding_from_operands(view.c(), in.data(), answers.data(), c.data)));
      std::vector<const Sharding*> shardings;
      for (Handle answer : answers) {
        SHARDCALL_ASSIGN_OR_RETURN(const Sharding* s, view.Take(answer));
        shardings.push_back(s);
      }
      return shardings;
    };
  }
  if (c.partition != nullptr) {
    out.partition = [c, library](PartitionContext& context) { return Partition(c, context); };
  }
  return out;
}

}  // namespace internal
}  // namespace shardcall
