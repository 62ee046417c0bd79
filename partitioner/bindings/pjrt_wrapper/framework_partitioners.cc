// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt_wrapper/framework_partitioners.h"

#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/python_traceback.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/convert/convert.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

Shardcall_PjrtString ToC(const std::string& s) { return {s.data(), s.size()}; }

// Where axes are manual, a framework is shown shardings over the devices that differ in the others
// alone, numbered from 0, as XLA does it.
class FreeMesh {
 public:
  explicit FreeMesh(const CustomCallView& call) : call_(call), free_(call) {
    if (call.manual_axes.empty()) return;
    parts_ = call.free_axes();
    std::vector<int64_t> sizes;
    for (AxisRef part : parts_) sizes.push_back(part.size);
    free_.mesh = InternBaseMesh(*call.context, sizes, DeviceOrder::Identity(AxesSize(parts_)));
    free_.manual_axes = {};
  }

  absl::StatusOr<HloSharding> ToHlo(const Sharding* s) const {
    if (s == nullptr) return HloSharding();  // a token
    if (call_.manual_axes.empty()) return ToHloShardingOrV3(*s);
    ShardingBuilder b(free_.mesh, s->rank());
    for (int d = 0; d < s->rank(); ++d) b.dims[d] = ToFree(s->dim(d));
    b.partial = ToFree(s->partial());
    b.partial_op = s->partial_op();
    return ToHloShardingOrV3(*b.Intern(*call_.context));
  }

  // Also what is said of all devices, as by a callback that names its own shardings.
  absl::StatusOr<const Sharding*> FromHlo(const HloSharding& sharding, int rank) const {
    const std::string text = sharding.Print();
    if (call_.manual_axes.empty()) return call_.ParseSharding(text, rank);
    const absl::StatusOr<const Sharding*> s = free_.ParseSharding(text, rank);
    if (!s.ok()) return call_.ParseSharding(text, rank);
    ShardingBuilder b(call_.mesh, rank);
    for (int d = 0; d < rank; ++d) b.dims[d] = FromFree((*s)->dim(d));
    b.partial = FromFree((*s)->partial());
    b.partial_op = (*s)->partial_op();
    b.manual.assign(call_.manual_axes.begin(), call_.manual_axes.end());
    return b.Intern(*call_.context);
  }

 private:
  AxisList ToFree(absl::Span<const AxisRef> axes) const {
    AxisList out;
    for (AxisRef a : axes) {
      for (size_t k = 0; k < parts_.size(); ++k) {
        const AxisRef& p = parts_[k];
        if (a.axis != p.axis || a.pre_size < p.pre_size ||
            int64_t{a.pre_size} * a.size > int64_t{p.pre_size} * p.size) {
          continue;
        }
        out.push_back({static_cast<uint16_t>(k), a.pre_size / p.pre_size, a.size});
      }
    }
    return out;
  }
  AxisList FromFree(absl::Span<const AxisRef> axes) const {
    AxisList out;
    for (AxisRef a : axes) {
      const AxisRef& p = parts_[a.axis];
      out.push_back({p.axis, p.pre_size * a.pre_size, a.size});
    }
    return Canonical(*call_.mesh, out);
  }

  const CustomCallView& call_;
  CustomCallView free_;  // over the mesh of the free axes, with none that is manual
  AxisList parts_;       // of the call's mesh, by axis of the free mesh
};

// The sharding of a value, made of those of its leaves.
absl::StatusOr<std::string> Joined(const CustomCallView& call,
                                   absl::Span<const Sharding* const> leaves) {
  const FreeMesh mesh(call);
  HloSharding all;
  all.kind = HloSharding::Kind::kTuple;
  for (const Sharding* s : leaves) {
    SHARDCALL_ASSIGN_OR_RETURN(all.tuple.emplace_back(), mesh.ToHlo(s));
  }
  return WriteShardingProto(leaves.size() == 1 ? all.tuple[0] : all);
}

// Parses the sharding of leaf `index` from an answer of the framework. Null: unknown.
absl::StatusOr<const Sharding*> Read(const CustomCallView& call, absl::string_view bytes,
                                     size_t index, const Shape* shape, absl::string_view what) {
  SHARDCALL_ASSIGN_OR_RETURN(HloSharding read, ReadShardingProto(bytes, what));
  if (read.kind == HloSharding::Kind::kTuple) {
    if (index >= read.tuple.size()) {
      return call.Misfit(absl::StrCat(what, " has too few shardings"),
                         absl::StrCat(index + 1, " or more"), absl::StrCat(read.tuple.size()));
    }
    HloSharding element = std::move(read.tuple[index]);
    read = std::move(element);
  }
  if (read.kind == HloSharding::Kind::kUnknown || !shape->IsArray()) return nullptr;
  return FreeMesh(call).FromHlo(read, shape->rank());
}

// The values of a call as PJRT structs, which point into this object.
class Values {
 public:
  Values(const CustomCallView& call, absl::Span<const Sharding* const> operands) {
    for (size_t k = 0; k < call.operands.size(); ++k) {
      texts_.push_back(WriteShapeProto(call.operands[k]));
      absl::StatusOr<std::string> sharding = Joined(call, {operands.data() + k, 1});
      has_.push_back(sharding.ok());
      texts_.push_back(sharding.ok() ? *std::move(sharding) : "");
    }
    result_ = WriteShapeProto(call.results.size() == 1 ? call.results[0]
                                                       : call.context->MakeTuple(call.results));
    for (size_t k = 0; k < call.operands.size(); ++k) {
      operands_.push_back({ToC(texts_[2 * k]), has_[k], ToC(texts_[2 * k + 1])});
    }
  }
  size_t size() const { return operands_.size(); }
  Shardcall_PjrtAval* operands() { return operands_.data(); }
  Shardcall_PjrtString result_shape() const { return ToC(result_); }

 private:
  std::vector<std::string> texts_;
  std::vector<bool> has_;
  std::string result_;
  std::vector<Shardcall_PjrtAval> operands_;
};

// Calls the framework, then `read` with its answer, which is freed afterwards.
template <typename Args, typename Read>
auto Ask(const CustomCallView& call, Shardcall_PjrtCallbacks* c,
         void (*function)(Shardcall_PjrtCallbacks*, Args*), Args* args, const Read& read)
    -> decltype(read()) {
  function(c, args);
  const absl::Cleanup cleanup = [args] {
    if (args->header.cleanup_fn != nullptr) args->header.cleanup_fn(args->header.data);
  };
  if (!args->header.has_error) return read();
  if (!DiagnosticCode(View(args->header.error)).empty()) {  // one of ours
    return In(absl::InvalidArgumentError(View(args->header.error)),
              absl::StrCat("%", call.instruction));
  }
  const PythonTraceback said = ReadTraceback(View(args->header.error));
  return ToStatus({.code = "E121",
                   .message = absl::StrCat("the framework's partitioner of \"", call.target, "\" ",
                                           FailedText(said.raised)),
                   .where = absl::StrCat("%", call.instruction),
                   .fix = said.frames.empty() ? "See what it says"
                                              : "Correct the functions that it was made of",
                   .excerpt = said.frames});
}

absl::Status Partition(Shardcall_PjrtCallbacks* c, const HloOfStablehlo& to_hlo,
                       PartitionContext& context) {
  const CustomCallView& call = context.call();
  std::vector<const Sharding*> operands, results;
  for (size_t k = 0; k < call.operands.size(); ++k) {
    operands.push_back(context.operand_sharding(static_cast<int>(k)));
  }
  for (size_t k = 0; k < call.results.size(); ++k) {
    results.push_back(context.result_sharding(static_cast<int>(k)));
  }
  Values values(call, operands);
  SHARDCALL_ASSIGN_OR_RETURN(const std::string wanted, Joined(call, results));
  Shardcall_PjrtPartitionArgs args = {};
  args.num_args = values.size();
  args.op_args = values.operands();
  args.op_result = {values.result_shape(), true, ToC(wanted)};
  args.backend_config = {call.backend_config.data(), call.backend_config.size()};
  return Ask(call, c, c->partition, &args, [&]() -> absl::Status {
    SHARDCALL_ASSIGN_OR_RETURN(const std::string hlo, to_hlo(View(args.mlir_module)));
    SHARDCALL_ASSIGN_OR_RETURN(const Module module,
                               ReadModuleProto(hlo, std::make_shared<Context>(), call.target));
    std::vector<LocalValue> given;
    for (size_t k = 0; k < call.operands.size(); ++k) {
      SHARDCALL_ASSIGN_OR_RETURN(const Sharding* s,
                                 Read(call, View(args.args_sharding[k]), 0, call.operands[k],
                                      absl::StrCat("operand ", k)));
      if (s == nullptr && call.operands[k]->IsArray()) s = operands[k];
      SHARDCALL_ASSIGN_OR_RETURN(given.emplace_back(), context.Operand(static_cast<int>(k), s));
    }
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<LocalValue> made,
                               context.AddProgram(PrintModule(module), given));
    if (made.size() != call.results.size()) {
      return call.Misfit("a local computation has another number of results",
                         absl::StrCat(call.results.size()), absl::StrCat(made.size()));
    }
    for (size_t k = 0; k < made.size(); ++k) {
      SHARDCALL_ASSIGN_OR_RETURN(
          const Sharding* s,
          Read(call, View(args.result_sharding), k, call.results[k], absl::StrCat("result ", k)));
      if (s == nullptr && call.results[k]->IsArray()) s = results[k];
      SHARDCALL_RETURN_IF_ERROR(context.SetResult(static_cast<int>(k), made[k], s));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<const Sharding*>> Infer(Shardcall_PjrtCallbacks* c,
                                                   const CustomCallView& call,
                                                   absl::Span<const Sharding* const> operands) {
  Values values(call, operands);
  Shardcall_PjrtInferArgs args = {};
  args.num_args = values.size();
  args.op_args = values.operands();
  args.result_shape = values.result_shape();
  args.backend_config = {call.backend_config.data(), call.backend_config.size()};
  using Results = absl::StatusOr<std::vector<const Sharding*>>;
  return Ask(call, c, c->infer_sharding, &args, [&]() -> Results {
    std::vector<const Sharding*> results;
    for (size_t k = 0; k < call.results.size(); ++k) {
      const Shape* const shape = call.results[k];
      const Sharding* s = nullptr;
      if (args.has_result_sharding) {
        SHARDCALL_ASSIGN_OR_RETURN(
            s, Read(call, View(args.result_sharding), k, shape, absl::StrCat("result ", k)));
      }
      if (s == nullptr && shape->IsArray()) s = call.Replicated(shape->rank());
      results.push_back(s);
    }
    return results;
  });
}

absl::StatusOr<const Sharding*> Propagate(Shardcall_PjrtCallbacks* c, const CustomCallView& call,
                                          int index, const Sharding* user) {
  const Values values(call, std::vector<const Sharding*>(call.operands.size(), nullptr));
  std::vector<const Sharding*> results;
  for (const Shape* shape : call.results) {
    results.push_back(shape->IsArray() ? call.Replicated(shape->rank()) : nullptr);
  }
  results[index] = user;
  SHARDCALL_ASSIGN_OR_RETURN(const std::string wanted, Joined(call, results));
  Shardcall_PjrtPropagateArgs args = {};
  args.backend_config = {call.backend_config.data(), call.backend_config.size()};
  args.result_shape = values.result_shape();
  args.result_sharding = ToC(wanted);
  return Ask(call, c, c->propagate_user_sharding, &args, [&]() -> absl::StatusOr<const Sharding*> {
    SHARDCALL_ASSIGN_OR_RETURN(const Sharding* s,
                               Read(call, View(args.result_sharding), index, call.results[index],
                                    absl::StrCat("result ", index)));
    return s == nullptr ? user : s;
  });
}

}  // namespace

PartitionerCallbacks CallbacksOfFramework(std::shared_ptr<Shardcall_PjrtCallbacks> framework,
                                          HloOfStablehlo to_hlo) {
  PartitionerCallbacks callbacks;
  callbacks.identity = {framework.get()};
  callbacks.can_side_effecting_have_replicated_sharding =
      framework->can_side_effecting_have_replicated_sharding;
  callbacks.propagate_reads_result_alone = true;
  if (framework->propagate_user_sharding != nullptr) {
    callbacks.propagate_user_sharding =
        [framework](const CustomCallView& call, int index,
                    const Sharding* user) -> absl::StatusOr<const Sharding*> {
      // XLA asks this question less often, so the framework may not support it. If it fails, the
      // result counts as replicated, and `partition` reports what is wrong.
      const absl::StatusOr<const Sharding*> answer = Propagate(framework.get(), call, index, user);
      const Shape* const shape = call.results[index];
      return answer.ok() || !shape->IsArray() ? answer : call.Replicated(shape->rank());
    };
  }
  if (framework->infer_sharding != nullptr) {
    callbacks.infer_sharding_from_operands =
        [framework](const CustomCallView& call, absl::Span<const Sharding* const> operands) {
          return Infer(framework.get(), call, operands);
        };
  }
  if (framework->partition != nullptr) {
    callbacks.partition = [framework, to_hlo = std::move(to_hlo)](PartitionContext& context) {
      return Partition(framework.get(), to_hlo, context);
    };
  }
  return callbacks;
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
