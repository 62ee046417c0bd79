// SPDX-License-Identifier: Apache-2.0
// Partitioning with callbacks that do anything.
#include "shardcall/partitioner/api/derived_calls.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/check_sharding.h"
#include "tests/fuzz/misuse/misuse.h"
#include "tests/fuzz/require.h"

namespace shardcall::misuse {
namespace {

class Answers {
 public:
  explicit Answers(Caller& c) : c_(c) {}

  PartitionerCallbacks Callbacks() {
    PartitionerCallbacks out;
    if (c_.Chance(70)) {
      out.propagate_user_sharding = [this](
                                        const CustomCallView& call, int,
                                        const Sharding* user) -> absl::StatusOr<const Sharding*> {
        if (!c_.MayThrow()) return absl::NotFoundError("");
        return c_.Chance(60) ? user : AnySharding(call, user == nullptr ? 0 : user->rank());
      };
    }
    if (c_.Chance(70)) {
      out.infer_sharding_from_operands =
          [this](
              const CustomCallView& call,
              absl::Span<const Sharding* const>) -> absl::StatusOr<std::vector<const Sharding*>> {
        if (!c_.MayThrow()) return absl::InternalError("not today");
        std::vector<const Sharding*> answer(c_.Chance(90) ? call.results.size() : c_.Int(0, 5));
        for (size_t k = 0; k < answer.size(); ++k) {
          answer[k] = AnySharding(call, k < call.results.size() ? call.results[k]->rank() : 1);
        }
        return answer;
      };
    }
    if (c_.Chance(95)) out.partition = [this](PartitionContext& p) { return Partition(p); };
    out.version = static_cast<int>(c_.Number());
    out.can_side_effecting_have_replicated_sharding = c_.Chance(30);
    return out;
  }

 private:
  const Sharding* AnySharding(const CustomCallView& call, int rank) {
    if (c_.Chance(5)) return nullptr;
    if (c_.Chance(5)) rank = static_cast<int>(c_.Int(0, 4));
    if (c_.Chance(50)) {
      const auto made = call.ParseSharding(c_.ShardingText(), rank);
      return c_.Ok(made) ? *made : call.Replicated(rank);
    }
    if (c_.Chance(30)) return call.Replicated(rank);
    ShardingBuilder b(call.mesh, rank);
    for (AxisList& d : b.dims) {
      if (c_.Chance(40)) d = c_.Chance(80) ? call.free_axes() : AxisList{Axis()};
    }
    if (c_.Chance(10)) b.partial = {Axis()};
    if (c_.Chance(5)) b.maximal_device = c_.Int(0, 9);
    const bool fits = c_.Ok(CheckSharding(b));
    const Sharding* made = b.Intern(*call.context);
    FuzzRequire(fits == (made != nullptr), "what CheckSharding refuses is no sharding", "");
    return made;
  }
  AxisRef Axis() {
    return {static_cast<uint16_t>(c_.Int(0, 2)), static_cast<uint32_t>(c_.Int(0, 4)),
            static_cast<uint32_t>(c_.Int(0, 4))};
  }
  AxisList Axes(const CustomCallView& call) {
    AxisList out = c_.Chance(80) ? call.free_axes() : AxisList{Axis()};
    if (c_.Chance(5)) out.push_back(Axis());
    return out;
  }
  LocalValue Value() { return {c_.Instr(values_)}; }
  void Keep(const absl::StatusOr<LocalValue>& made) {
    if (c_.Ok(made)) values_.push_back(made->id);
  }
  std::vector<LocalValue> Values(size_t n) {
    std::vector<LocalValue> out(c_.Chance(95) ? n : c_.Int(0, 4));
    for (LocalValue& v : out) v = Value();
    return out;
  }
  std::vector<const Shape*> Shapes(const CustomCallView& call) {
    std::vector<const Shape*> out;
    for (const Shape* s : call.results) {
      out.push_back(c_.Chance(90) ? LocalShape(*call.context, s, AnySharding(call, s->rank()))
                                  : nullptr);
    }
    if (c_.Chance(3)) out.push_back(nullptr);
    return out;
  }

  absl::Status Partition(PartitionContext& p) {
    const CustomCallView& call = p.call();
    values_.clear();
    for (size_t k = 0; k < call.operands.size() && k < 4; ++k) {
      Keep(p.Operand(static_cast<int>(k), p.operand_sharding(static_cast<int>(k))));
    }
    const int64_t steps = c_.Int(0, 25);
    for (int64_t k = 0; k < steps; ++k) Step(p);
    // Most set the results as they should, so that what was built is kept.
    for (size_t k = 0; k < call.results.size() && c_.Chance(95); ++k) {
      const Sharding* s = c_.Chance(60) ? p.result_sharding(static_cast<int>(k))
                                        : AnySharding(call, call.results[k]->rank());
      const auto made = p.CallTarget(Values(call.operands.size()), Shapes(call));
      LocalValue value = Value();
      if (c_.Ok(made) && k < made->size()) value = (*made)[k];
      c_.Ok(p.SetResult(static_cast<int>(k), value, s));
    }
    return c_.MayThrow() ? absl::OkStatus() : absl::UnknownError("");
  }

  void Step(PartitionContext& p) {
    const CustomCallView& call = p.call();
    CheckedBuilder& b = p.builder();
    const int n = static_cast<int>(c_.Number());
    const Shape* global = c_.Chance(90) && !call.operands.empty() ? call.operands[0] : nullptr;
    const int rank = global == nullptr ? 2 : global->rank();
    switch (c_.Int(0, 24)) {
      case 0: return Keep(p.Operand(n, AnySharding(call, rank)));
      case 1: c_.Ok(p.ShapeOf(Value())); return;
      case 2: return Keep(p.TileStart(global, AnySharding(call, rank), n));
      case 3: return Keep(p.MaskPadding(Value(), global, AnySharding(call, rank), {n}, Value()));
      case 4: {
        const auto made = p.CallTargetWith(c_.Name(), Values(call.operands.size()), Shapes(call));
        if (c_.Ok(made))
          for (LocalValue v : *made) values_.push_back(v.id);
        return;
      }
      case 5: {
        const auto made = p.AddProgram(c_.Program("t"), Values(2));
        if (c_.Ok(made))
          for (LocalValue v : *made) values_.push_back(v.id);
        return;
      }
      case 6: values_.push_back(p.PartitionId().id); return;
      case 7: return Keep(p.AxisIndex(Axes(call)));
      case 8: return Keep(p.AllReduce(Value(), static_cast<PartialOp>(c_.Int(0, 6)), Axes(call)));
      case 9: return Keep(p.AllGather(Value(), n, Axes(call)));
      case 10:
        return Keep(p.ReduceScatter(Value(), n, static_cast<PartialOp>(c_.Int(0, 6)), Axes(call)));
      case 11: return Keep(p.AllToAll(Value(), n, static_cast<int>(c_.Number()), Axes(call)));
      case 12: return Keep(p.CollectivePermute(Value(), Axes(call), {{c_.Number(), c_.Number()}}));
      case 13:
        return Keep(p.Reshard(Value(), global, AnySharding(call, rank), AnySharding(call, rank)));
      case 14: c_.Ok(p.SetResult(n, Value(), AnySharding(call, rank))); return;
      case 15: c_.Ok(b.Parameter(c_.Number(), call.context->MakeScalar(c_.Type()))); return;
      case 16: c_.Ok(b.SetRoot(Value().id)); return;
      case 17: return Made(b.Add(static_cast<Opcode>(c_.Int(0, 255)), {Value().id, Value().id}));
      case 18: return Made(b.ConstantInt(c_.Type(), c_.Number()));
      case 19: return Made(b.Reduce(Value().id, Value().id, c_.Numbers(2), Opcode::kAdd));
      case 20: return Made(b.Call(c_.Computation(b.module()), {Value().id}));
      case 21: return Made(b.Reshape(Value().id, c_.Dims()));
      case 22: c_.Ok(call.AxesNamed({c_.Name()})); return;
      case 23: c_.Ok(call.Checked(AnySharding(call, rank), global, c_.Name())); return;
      default:
        if (c_.Chance(10)) b.module().AddComputation(call.context->Intern(c_.Name()));
        return Made(b.BroadcastScalar(Value().id, global));
    }
  }
  void Made(const absl::StatusOr<InstrId>& made) {
    if (c_.Ok(made)) values_.push_back(*made);
  }

  Caller& c_;
  std::vector<InstrId> values_;
};

}  // namespace

void MisuseCallbacks(Caller& c) {
  Answers answers(c);
  TargetRegistry targets;
  const std::string target = c.Chance(95) ? "same" : c.Name();
  if (!c.Ok(targets.RegisterCustomCallPartitioner(target, answers.Callbacks()))) return;
  auto module = ParseModule(std::make_shared<const std::string>(c.Program(target)),
                            std::make_shared<Context>(), "program");
  if (!c.Ok(module) || !c.Ok(VerifyModule(*module, "program", &targets))) return;
  PartitionOptions options;
  options.targets = c.Chance(97) ? &targets : nullptr;
  options.num_partitions = c.Chance(90) ? 4 : c.Int(0, 5);
  options.propagate = c.Chance(90);
  const auto program = Partition(*std::move(module), options);
  if (!c.Ok(program)) return;
  const absl::Status verified = VerifyModule((*program)->local.module, "partitioned");
  FuzzRequire(verified.ok(), "what is partitioned verifies", verified.ToString());
  DemandRoundTrip((*program)->local.module);
}

}  // namespace shardcall::misuse
