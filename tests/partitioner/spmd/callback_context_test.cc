// SPDX-License-Identifier: Apache-2.0
// What partition callbacks see and build, and what becomes of their mistakes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "tests/partitioner/spmd/callback_testing.h"

namespace shardcall {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(CallbackCollectives, AllGatherGivesTheWholeValue) {
  EXPECT_EQ(Verified([](PartitionContext& c) -> absl::Status {
              const Sharding* rows = ShardingOf(c, R"([{"x0"}, {}])");
              SHARDCALL_ASSIGN_OR_RETURN(LocalValue x, c.Operand(0, rows));
              SHARDCALL_ASSIGN_OR_RETURN(x, c.AllGather(x, 0, rows->dim(0)));
              return c.SetResult(0, x, c.call().Replicated(2));
            }),
            "");
}

TEST(CallbackCollectives, AllToAllMovesAnAxisBetweenDimensions) {
  for (const bool back : {false, true}) {
    EXPECT_EQ(Verified([back](PartitionContext& c) -> absl::Status {
                const Sharding* rows = ShardingOf(c, R"([{"x0"}, {}])");
                const Sharding* columns = ShardingOf(c, R"([{}, {"x0"}])");
                if (back) std::swap(rows, columns);
                SHARDCALL_ASSIGN_OR_RETURN(LocalValue x, c.Operand(0, rows));
                SHARDCALL_ASSIGN_OR_RETURN(
                    x, c.AllToAll(x, back ? 0 : 1, back ? 1 : 0, c.call().free_axes()));
                return c.SetResult(0, x, columns);
              }),
              "");
  }
}

TEST(CallbackCollectives, AllToAllWithinOneDimensionTwiceIsTheValue) {
  EXPECT_EQ(Verified([](PartitionContext& c) -> absl::Status {
              const Sharding* columns = c.call().Replicated(2);
              SHARDCALL_ASSIGN_OR_RETURN(LocalValue x, c.Operand(0, columns));
              for (int k = 0; k < 2; ++k) {
                SHARDCALL_ASSIGN_OR_RETURN(x, c.AllToAll(x, 1, 1, c.call().free_axes()));
              }
              return c.SetResult(0, x, columns);
            }),
            "");
}

TEST(CallbackCollectives, PermutesGoRoundAndBack) {
  EXPECT_EQ(Verified([](PartitionContext& c) -> absl::Status {
              const Sharding* rows = ShardingOf(c, R"([{"x0"}, {}])");
              SHARDCALL_ASSIGN_OR_RETURN(LocalValue x, c.Operand(0, rows));
              for (int64_t by : {1, 3}) {
                std::vector<std::pair<int64_t, int64_t>> pairs;
                for (int64_t k = 0; k < 4; ++k) pairs.push_back({k, (k + by) % 4});
                SHARDCALL_ASSIGN_OR_RETURN(x, c.CollectivePermute(x, rows->dim(0), pairs));
              }
              return c.SetResult(0, x, rows);
            }),
            "");
}

// The operand on the device with coordinate 0, zeros elsewhere.
absl::StatusOr<LocalValue> OnFirst(PartitionContext& c) {
  SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, c.Operand(0, c.call().Replicated(2)));
  SHARDCALL_ASSIGN_OR_RETURN(const LocalValue at, c.AxisIndex(c.call().free_axes()));
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, c.ShapeOf(x));
  CheckedBuilder& b = c.builder();
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId zero, b.ConstantInt(ElementType::kS32, 0));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId first, b.Compare(Direction::kEq, at.id, zero));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId mask, b.BroadcastScalar(first, shape));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId zeros, b.BroadcastScalar(zero, shape));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId y, b.Add(Opcode::kSelect, {mask, x.id, zeros}));
  return LocalValue{y};
}

TEST(CallbackCollectives, ReduceScatterAllReduceAndPartialResultsAddUp) {
  EXPECT_EQ(Verified([](PartitionContext& c) -> absl::Status {
              SHARDCALL_ASSIGN_OR_RETURN(LocalValue x, OnFirst(c));
              SHARDCALL_ASSIGN_OR_RETURN(
                  x, c.ReduceScatter(x, 0, PartialOp::kSum, c.call().free_axes()));
              return c.SetResult(0, x, ShardingOf(c, R"([{"x0"}, {}])"));
            }),
            "");
  EXPECT_EQ(Verified([](PartitionContext& c) -> absl::Status {
              SHARDCALL_ASSIGN_OR_RETURN(LocalValue x, OnFirst(c));
              SHARDCALL_ASSIGN_OR_RETURN(x, c.AllReduce(x, PartialOp::kSum, c.call().free_axes()));
              return c.SetResult(0, x, c.call().Replicated(2));
            }),
            "");
  EXPECT_EQ(Verified([](PartitionContext& c) -> absl::Status {
              SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, OnFirst(c));
              ShardingBuilder partial(*c.call().Replicated(2));
              partial.partial = c.call().free_axes();
              return c.SetResult(0, x, partial.Intern(*c.call().context));
            }),
            "");
}

TEST(CallbackCollectives, ReshardTakesTheCheapestWay) {
  EXPECT_EQ(Verified([](PartitionContext& c) -> absl::Status {
              const Sharding* rows = ShardingOf(c, "{devices=[4,1]<=[4]}");
              const Sharding* columns = ShardingOf(c, "{devices=[1,4]<=[4]}");
              SHARDCALL_ASSIGN_OR_RETURN(LocalValue x, c.Operand(0, rows));
              SHARDCALL_ASSIGN_OR_RETURN(x, c.Reshard(x, c.call().operands[0], rows, columns));
              return c.SetResult(0, x, columns);
            }),
            "");
}

constexpr char kNamed[] =
    R"(HloModule m, num_partitions=8, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["data"=4, "model"=2]>}}

ENTRY e {
  x = s32[8,12]{1,0} parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"data\"}, {\"model\"}]>"}
  c = s32[8,12]{1,0} custom-call(x), custom_call_target="same", api_version=API_VERSION_TYPED_FFI, backend_config={k = 3 : i64}, frontend_attributes={kind="test"}, output_to_operand_aliasing={{}: (0, {})}, operand_layout_constraints={s32[8,12]{1,0}}
  ROOT r = s32[8,12]{1,0} add(c, x)
}
)";

TEST(CallbackView, NamesAttributesLayoutsAndAliasesAreThoseOfTheCall) {
  int seen = 0;
  EXPECT_EQ(Verified(
                [&](PartitionContext& c) -> absl::Status {
                  ++seen;
                  const CustomCallView& v = c.call();
                  EXPECT_EQ(v.axes().size(), 2);
                  EXPECT_EQ(v.axes()[0].name, "data");
                  EXPECT_EQ(v.axes()[1].size, 2);
                  EXPECT_FALSE(v.axes()[1].manual);
                  EXPECT_EQ(v.target, "same");
                  EXPECT_EQ(v.api_version, 4);
                  EXPECT_EQ(v.backend_config, "{k = 3 : i64}");
                  EXPECT_EQ(v.frontend->Find("kind"), "test");
                  EXPECT_EQ(v.operand_layouts.size(), 1);
                  EXPECT_EQ(v.aliases.size(), 1);
                  EXPECT_EQ(c.operand_sharding(1), nullptr);
                  const Sharding* s = c.operand_sharding(0);
                  EXPECT_EQ(s->ToString(), R"([{"data"}, {"model"}])");
                  EXPECT_EQ(ShardingOf(c, s->ToString()), s);
                  EXPECT_EQ(ShardingOf(c, "{devices=[4,2]<=[8]}"), s);
                  EXPECT_EQ(ShardingOf(c, R"([{"data":(1)2}, {"model"}])")->num_shards(0), 2);
                  EXPECT_EQ(*v.AxesNamed({"data"}), AxisList(s->dim(0).begin(), s->dim(0).end()));
                  SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, c.Operand(0, s));
                  const Shape* local = LocalShape(*v.context, v.results[0], s);
                  SHARDCALL_ASSIGN_OR_RETURN(const auto y, c.CallTarget({x}, {local}));
                  return c.SetResult(0, y[0], s);
                },
                kNamed),
            "");
  EXPECT_GT(seen, 0);
}

TEST(CallbackView, WhatAnEngineDoesNotUnderstandSurvives) {
  CallbackRig rig([](PartitionContext& c) -> absl::Status {
    const Sharding* s = c.operand_sharding(0);
    SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, c.Operand(0, s));
    SHARDCALL_ASSIGN_OR_RETURN(
        const auto y, c.CallTarget({x}, {LocalShape(*c.call().context, c.call().results[0], s)}));
    return c.SetResult(0, y[0], s);
  });
  const auto p = PartitionText(kNamed, rig.options);
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_THAT(LocalText(**p), AllOf(HasSubstr("output_to_operand_aliasing={{}: (0, {})}"),
                                    HasSubstr("operand_layout_constraints={s32[2,6]{1,0}}"),
                                    HasSubstr("frontend_attributes={kind=\"test\"}"),
                                    HasSubstr("backend_config={k = 3 : i64}")));
}

TEST(CallbackView, TuplesGoInAndOutAsLeaves) {
  constexpr char kTuples[] = R"(HloModule m, num_partitions=4

ENTRY e {
  x = s32[8,12] parameter(0), sharding={devices=[4,1]<=[4]}
  y = s32[8] parameter(1), sharding={devices=[4]<=[4]}
  t = (s32[8]) tuple(y)
  in = (s32[8,12], (s32[8])) tuple(x, t)
  ROOT c = ((s32[8,12]), s32[8]) custom-call(in), custom_call_target="same"
}
)";
  EXPECT_EQ(Verified(
                [](PartitionContext& c) -> absl::Status {
                  std::vector<LocalValue> in;
                  std::vector<const Shape*> shapes;
                  std::vector<const Sharding*> s;
                  for (int k = 0; k < 2; ++k) {
                    s.push_back(c.operand_sharding(k));
                    SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, c.Operand(k, s[k]));
                    in.push_back(x);
                    shapes.push_back(LocalShape(*c.call().context, c.call().results[k], s[k]));
                  }
                  SHARDCALL_ASSIGN_OR_RETURN(const auto out, c.CallTarget(in, shapes));
                  for (int k = 0; k < 2; ++k) {
                    SHARDCALL_RETURN_IF_ERROR(c.SetResult(k, out[k], s[k]));
                  }
                  return absl::OkStatus();
                },
                kTuples),
            "");
}

TEST(CallbackView, TokensPassThrough) {
  constexpr char kTokens[] = R"(HloModule m, num_partitions=4

ENTRY e {
  x = s32[8,12] parameter(0), sharding={devices=[4,1]<=[4]}
  t = token[] after-all()
  c = (s32[8,12], token[]) custom-call(x, t), custom_call_target="same"
  ROOT r = s32[8,12] get-tuple-element(c), index=0
}
)";
  EXPECT_EQ(Verified(
                [](PartitionContext& c) -> absl::Status {
                  const Sharding* s = c.operand_sharding(0);
                  EXPECT_EQ(c.operand_sharding(1), nullptr);
                  SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, c.Operand(0, s));
                  SHARDCALL_ASSIGN_OR_RETURN(const LocalValue t, c.Operand(1, nullptr));
                  const CustomCallView& v = c.call();
                  SHARDCALL_ASSIGN_OR_RETURN(
                      const auto y, c.CallTarget({x, t}, {LocalShape(*v.context, v.results[0], s),
                                                          v.results[1]}));
                  SHARDCALL_RETURN_IF_ERROR(c.SetResult(0, y[0], s));
                  return c.SetResult(1, y[1], nullptr);
                },
                kTokens),
            "");
}

// Every mistake is E120 that names target and instruction.
TEST(CallbackMistakes, AreDiagnosticsWithTargetAndInstruction) {
  const std::vector<std::pair<const char*, PartitionFn>> cases = {
      {"no operand 1", [](PartitionContext& c) { return c.Operand(1, nullptr).status(); }},
      {"no operand -1", [](PartitionContext& c) { return c.Operand(-1, nullptr).status(); }},
      {"operand 0 has no sharding",
       [](PartitionContext& c) { return c.Operand(0, nullptr).status(); }},
      {"expected rank 2, found rank 1",
       [](PartitionContext& c) { return c.Operand(0, c.call().Replicated(1)).status(); }},
      {"does not lie on the call's mesh",
       [](PartitionContext& c) {
         const BaseMesh* other =
             InternBaseMesh(*c.call().context, {2, 2}, DeviceOrder::Identity(4));
         return c.Operand(0, ReplicatedSharding(*c.call().context, other, 2)).status();
       }},
      {"asked for as partial",
       [](PartitionContext& c) {
         ShardingBuilder b(*c.call().Replicated(2));
         b.partial = c.call().free_axes();
         return c.Operand(0, b.Intern(*c.call().context)).status();
       }},
      {"not made here", [](PartitionContext& c) { return c.ShapeOf({}).status(); }},
      {"not made here",
       [](PartitionContext& c) { return c.ShapeOf({InstrId(1u << 30)}).status(); }},
      {"set no result 0", [](PartitionContext&) { return absl::OkStatus(); }},
      {"no result 5", [](PartitionContext& c) { return c.SetResult(5, c.PartitionId(), nullptr); }},
      {"result 0 has no sharding",
       [](PartitionContext& c) { return c.SetResult(0, c.PartitionId(), nullptr); }},
      {"expected the local shape s32[8,12], found s32[2,12]",
       [](PartitionContext& c) -> absl::Status {
         SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, c.Operand(0, c.operand_sharding(0)));
         return c.SetResult(0, x, c.call().Replicated(2));
       }},
      {"dims 0 and 1 are swapped",
       [](PartitionContext& c) -> absl::Status {
         SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, c.Operand(0, c.operand_sharding(0)));
         SHARDCALL_ASSIGN_OR_RETURN(const InstrId t, c.builder().Transpose(x.id, {1, 0}));
         return c.SetResult(0, {t}, c.operand_sharding(0));
       }},
      {"another number of operands or results",
       [](PartitionContext& c) { return c.CallTarget({}, {}).status(); }},
      {"called with another operand 0",
       [](PartitionContext& c) {
         return c.CallTarget({c.PartitionId()}, {c.call().results[0]}).status();
       }},
      {"called with another result 0",
       [](PartitionContext& c) -> absl::Status {
         SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, c.Operand(0, c.operand_sharding(0)));
         return c.CallTarget({x}, {nullptr}).status();
       }},
      {"names an axis",
       [](PartitionContext& c) { return c.AxisIndex({AxisRef{7, 1, 2}}).status(); }},
      {"names an axis",
       [](PartitionContext& c) {
         const AxisList all = c.call().free_axes();
         return c.AxisIndex({all[0], all[0]}).status();
       }},
      {"a dimension that the value does not have",
       [](PartitionContext& c) -> absl::Status {
         SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, c.Operand(0, c.call().Replicated(2)));
         return c.AllGather(x, 2, c.call().free_axes()).status();
       }},
      {"a dimension that the value does not have: expected a dimension of s32[8,12], found -1",
       [](PartitionContext& c) -> absl::Status {
         SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, c.Operand(0, c.call().Replicated(2)));
         return c.AllToAll(x, 0, -1, c.call().free_axes()).status();
       }},
      {"expected a multiple of 4, found 2",
       [](PartitionContext& c) -> absl::Status {
         SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, c.Operand(0, c.operand_sharding(0)));
         return c.ReduceScatter(x, 0, PartialOp::kSum, c.call().free_axes()).status();
       }},
      {"does not exist, or twice",
       [](PartitionContext& c) -> absl::Status {
         SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, c.Operand(0, c.operand_sharding(0)));
         return c.CollectivePermute(x, c.call().free_axes(), {{0, 1}, {2, 1}}).status();
       }},
      {"cannot be read",
       [](PartitionContext& c) { return c.call().ParseSharding("[{", 2).status(); }},
      {"cannot be read",
       [](PartitionContext& c) { return c.call().ParseSharding(R"([{"nope"}, {}])", 2).status(); }},
      {"cannot be read",
       [](PartitionContext& c) { return c.call().ParseSharding(R"([{"x0"}, {}])", 3).status(); }},
      {"does not lie on the mesh",
       [](PartitionContext& c) {
         return c.call().ParseSharding("{maximal device=0}", 2).status();
       }},
      {"free axes: x0, found nope",
       [](PartitionContext& c) { return c.call().AxesNamed({"nope"}).status(); }},
  };
  for (const auto& [part, partition] : cases) {
    SCOPED_TRACE(part);
    const absl::Status s = Refused(partition);
    EXPECT_THAT(s, Fails("E120", part));
    EXPECT_THAT(s, Fails("E120", "same"));
    EXPECT_THAT(s, Fails("E120", "%c"));
  }
  EXPECT_THAT(Refused([](PartitionContext&) -> absl::Status { throw std::runtime_error("no!"); }),
              Fails("E121", "partition callback of \"same\" (%c) threw: no!"));
  EXPECT_THAT(Refused([](PartitionContext&) -> absl::Status { throw 3; }), Fails("E121", "threw"));
  EXPECT_THAT(Refused([](PartitionContext&) { return absl::NotFoundError("not today"); }),
              Fails("E121", "failed: not today"));
}

constexpr char kManual[] =
    R"(HloModule m, num_partitions=8, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["data"=4, "model"=2]>}}

ENTRY e {
  x = s32[8,12]{1,0} parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"data\"}, {\"model\"}]>"}
  l = s32[2,12]{1,0} custom-call(x), custom_call_target="xla.sdy.GlobalToLocalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"data\"}, {}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\"data\"}>"}
  c = s32[2,12]{1,0} custom-call(l), custom_call_target="same"
  ROOT g = s32[8,12]{1,0} custom-call(c), custom_call_target="xla.sdy.LocalToGlobalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\"data\"}, {}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\"data\"}>"}
}
)";

TEST(CallbackView, ManualAxesAreNotTheCallbacks) {
  auto good = [](PartitionContext& c) -> absl::Status {
    EXPECT_TRUE(c.call().axes()[0].manual);
    EXPECT_FALSE(c.call().axes()[1].manual);
    EXPECT_EQ(AxesSize(c.call().free_axes()), 2);
    // Without the manual axes, which are in force anyway.
    ShardingBuilder b(c.call().mesh, 2);
    b.dims[1] = c.call().axes()[1].refs;
    const Sharding* s = b.Intern(*c.call().context);
    SHARDCALL_ASSIGN_OR_RETURN(LocalValue x, c.Operand(0, s));
    SHARDCALL_ASSIGN_OR_RETURN(x, c.AllGather(x, 1, c.call().axes()[1].refs));
    return c.SetResult(0, x, c.call().Replicated(2));
  };
  EXPECT_EQ(Verified(good, kManual), "");
  EXPECT_THAT(Refused(
                  [](PartitionContext& c) {
                    return c.call().ParseSharding(R"([{"data"}, {}])", 2).status();
                  },
                  kManual),
              Fails("E120", "manual"));
  EXPECT_THAT(
      Refused([](PartitionContext& c) { return c.call().AxesNamed({"data"}).status(); }, kManual),
      Fails("E120", "free axes: model, found data"));
  EXPECT_THAT(
      Refused([](PartitionContext& c) { return c.AxisIndex(c.call().axes()[0].refs).status(); },
              kManual),
      Fails("E120", "manual"));
}

TEST(CallbackMemo, InferIsAskedOncePerKindOfCall) {
  CallbackRig rig([](PartitionContext& c) -> absl::Status {
    const Sharding* s = c.operand_sharding(0);
    SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, c.Operand(0, s));
    return c.SetResult(0, x, s);
  });
  TargetRegistry targets;
  int asked = 0;
  PartitionerCallbacks c = rig.targets.Find("same", "")->callbacks;
  c.infer_sharding_from_operands = [&](const CustomCallView&,
                                       absl::Span<const Sharding* const> operands)
      -> absl::StatusOr<std::vector<const Sharding*>> {
    ++asked;
    return std::vector<const Sharding*>{operands[0]};
  };
  ASSERT_TRUE(targets.RegisterCustomCallPartitioner("same", c).ok());
  std::string text = R"(HloModule m, num_partitions=4

ENTRY e {
  x0 = s32[8,12] parameter(0), sharding={devices=[4,1]<=[4]}
)";
  for (int k = 0; k < 50; ++k) {
    absl::StrAppend(&text, k == 49 ? "  ROOT x" : "  x", k + 1, " = s32[8,12] custom-call(x", k,
                    "), custom_call_target=\"same\"\n");
  }
  absl::StrAppend(&text, "}\n");
  rig.options.targets = &targets;
  EXPECT_EQ(WhyNotEqual(text, rig.options), "");
  asked = 0;
  EXPECT_TRUE(PartitionText(text, rig.options).ok());
  EXPECT_EQ(asked, 1);
}

TEST(CallbackMemo, PartitionIsAskedOncePerKindOfCallAndShardings) {
  int asked = 0;
  CallbackRig rig([&](PartitionContext& c) -> absl::Status {
    ++asked;
    const Sharding* rows = ShardingOf(c, R"([{"x0"}, {}])");
    SHARDCALL_ASSIGN_OR_RETURN(LocalValue x, c.Operand(0, rows));
    SHARDCALL_ASSIGN_OR_RETURN(x, c.AllToAll(x, 1, 0, c.call().free_axes()));
    SHARDCALL_ASSIGN_OR_RETURN(const auto y,
                               c.CallTarget({x}, {LocalShape(*c.call().context, c.call().results[0],
                                                             ShardingOf(c, R"([{}, {"x0"}])"))}));
    return c.SetResult(0, y[0], ShardingOf(c, R"([{}, {"x0"}])"));
  });
  const std::string text = R"(HloModule m, num_partitions=4

ENTRY e {
  x = s32[8,12] parameter(0), sharding={devices=[4,1]<=[4]}
  a = s32[8,12] custom-call(x), custom_call_target="same", metadata={op_name="first"}
  n = s32[8,12] negate(x)
  b = s32[8,12] custom-call(n), custom_call_target="same", metadata={op_name="second"}
  c = s32[8,12] custom-call(n), custom_call_target="same", backend_config="other"
  s = s32[8,12] add(a, b)
  ROOT r = s32[8,12] subtract(s, c)
}
)";
  const auto p = PartitionText(text, rig.options);
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_EQ(asked, 2);  // a and b are alike
  EXPECT_EQ(WhyNotEqual(text, rig.options), "");
  int permuted = 0;
  std::vector<int64_t> channels;
  for (const CollectiveRecord& r : (*p)->local.collectives) {
    if (r.cause.kind != CollectiveCause::Kind::kCallback) continue;
    ++permuted;
    const Instruction& i = (*p)->local.module.instr(r.local);
    channels.push_back(i.as<CollectiveAttrs>().channel_id);
    if (permuted == 2) {
      EXPECT_EQ(i.metadata->op_name, "second");
      EXPECT_EQ((*p)->global->program.module.instr(r.cause.consumer).name, "b");
    }
  }
  EXPECT_EQ(permuted, 3);
  std::sort(channels.begin(), channels.end());
  EXPECT_EQ(std::unique(channels.begin(), channels.end()), channels.end());
}

TEST(CallbackMistakes, InferThatGivesAnotherRank) {
  TargetRegistry targets;
  PartitionerCallbacks c;
  c.partition = [](PartitionContext&) { return absl::OkStatus(); };
  c.infer_sharding_from_operands =
      [](const CustomCallView& v,
         absl::Span<const Sharding* const>) -> absl::StatusOr<std::vector<const Sharding*>> {
    return std::vector<const Sharding*>{v.Replicated(3)};
  };
  ASSERT_TRUE(targets.RegisterCustomCallPartitioner("same", c).ok());
  TextOptions options;
  options.targets = &targets;
  EXPECT_THAT(PartitionText(kProgram, options),
              Fails("E120", "infer_sharding_from_operands: result 0 is given"));
}

}  // namespace
}  // namespace shardcall
