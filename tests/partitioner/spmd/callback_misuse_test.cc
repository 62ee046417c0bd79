// SPDX-License-Identifier: Apache-2.0
// What a partition callback does wrong with the builder and the shardings that it is
// given is an error of the callback, never a program that does not verify.
#include <gtest/gtest.h>

#include "shardcall/sharding/check_sharding.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using PartitionFn = std::function<absl::Status(PartitionContext&)>;

constexpr char kProgram[] = R"(HloModule m, num_partitions=4

ENTRY e {
  x = s32[8,12] parameter(0), sharding={devices=[4,1]<=[4]}
  c = s32[8,12] custom-call(x), custom_call_target="same"
  ROOT r = s32[8,12] add(c, x)
}
)";

// What partitioning says when the callback does `misuse`, then all that it must.
absl::Status After(const std::function<absl::Status(PartitionContext&)>& misuse) {
  TargetRegistry targets;
  PartitionerCallbacks callbacks;
  callbacks.partition = [&](PartitionContext& c) -> absl::Status {
    SHARDCALL_RETURN_IF_ERROR(misuse(c));
    const Sharding* s = c.operand_sharding(0);
    SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, c.Operand(0, s));
    SHARDCALL_ASSIGN_OR_RETURN(
        const auto y, c.CallTarget({x}, {LocalShape(*c.call().context, c.call().results[0], s)}));
    return c.SetResult(0, y[0], s);
  };
  EXPECT_TRUE(targets.RegisterCustomCallPartitioner("same", callbacks).ok());
  TextOptions options;
  options.targets = &targets;
  return PartitionText(kProgram, options).status();
}

const Shape* Scalar(PartitionContext& c) { return c.call().context->MakeScalar(ElementType::kF32); }

TEST(CallbackMisuse, NothingWrongIsNoError) {
  EXPECT_TRUE(After([](PartitionContext&) { return absl::OkStatus(); }).ok());
}

TEST(CallbackMisuse, TheProgramHasItsParametersAndItsRoot) {
  EXPECT_THAT(
      After([](PartitionContext& c) { return c.builder().Parameter(1, Scalar(c)).status(); }),
      Fails("E022", "take operands with Operand"));
  EXPECT_THAT(
      After([](PartitionContext& c) { return c.builder().Parameter(0, Scalar(c)).status(); }),
      Fails("E022", "parameter"));
  EXPECT_THAT(After([](PartitionContext& c) -> absl::Status {
                ParameterAttrs a;
                a.number = 1;
                return c.builder()
                    .Add(Opcode::kParameter, {}, InternAttributes(*c.call().context, a), Scalar(c))
                    .status();
              }),
              Fails("E022", "parameter"));
  EXPECT_THAT(After([](PartitionContext& c) -> absl::Status {
                SHARDCALL_ASSIGN_OR_RETURN(const InstrId one,
                                           c.builder().ConstantInt(ElementType::kS32, 1));
                return c.builder().SetRoot(one);
              }),
              Fails("E028", "SetResult"));
  // Also where the callback does not pass the error on.
  EXPECT_TRUE(After([](PartitionContext& c) {
                c.builder().Parameter(1, Scalar(c)).status().IgnoreError();
                c.builder().SetRoot(InstrId(0)).IgnoreError();
                return absl::OkStatus();
              }).ok());
}

TEST(CallbackMisuse, AComputationThatCallsItselfIsAnErrorOfTheCallback) {
  EXPECT_THAT(After([](PartitionContext& c) {
                return c.builder().Call(c.builder().computation(), {}).status();
              }),
              Fails("E024", "itself"));
  // By way of another one.
  EXPECT_THAT(After([](PartitionContext& c) -> absl::Status {
                Module& m = c.builder().module();
                MonoidTable monoids(&m);
                const CompId a = m.AddComputation("a"), b = m.AddComputation("b");
                for (const auto& [comp, callee] : {std::pair(a, b), std::pair(b, a)}) {
                  CheckedBuilder body(&m, comp, &monoids);
                  SHARDCALL_ASSIGN_OR_RETURN(const InstrId one,
                                             body.ConstantInt(ElementType::kS32, 1));
                  SHARDCALL_RETURN_IF_ERROR(body.SetRoot(one));
                  if (comp == b) SHARDCALL_RETURN_IF_ERROR(body.Call(callee, {}).status());
                }
                CheckedBuilder body(&m, a, &monoids);
                SHARDCALL_RETURN_IF_ERROR(body.Call(b, {}).status());
                return c.builder().Call(a, {}).status();
              }),
              Fails("E120", "cycle"));
}

TEST(CallbackMisuse, AModuleThatTheCallbackBreaksIsToldAsItsOwn) {
  EXPECT_THAT(After([](PartitionContext& c) {
                Module& m = c.builder().module();
                m.AddComputation("without_root");
                return absl::OkStatus();
              }),
              Fails("E120", "\"same\""));
}

TEST(CallbackMisuse, AShardingWithAnAxisTwiceIsNone) {
  for (const bool partial : {false, true}) {
    EXPECT_THAT(After([partial](PartitionContext& c) -> absl::Status {
                  ShardingBuilder b(c.call().mesh, 2);
                  b.dims[0] = c.call().free_axes();
                  (partial ? b.partial : b.dims[1]) = c.call().free_axes();
                  EXPECT_EQ(DiagnosticCode(CheckSharding(b)), "E162") << CheckSharding(b);
                  const Sharding* s = b.Intern(*c.call().context);
                  EXPECT_EQ(s, nullptr);
                  return c.Operand(0, s).status();
                }),
                Fails("E120", "operand 0 has no sharding"));
  }
}

TEST(CallbackMisuse, AReductionThatTheTypeDoesNotHaveIsRefused) {
  for (const bool scatter : {false, true}) {
    EXPECT_THAT(After([scatter](PartitionContext& c) -> absl::Status {
                  SHARDCALL_ASSIGN_OR_RETURN(LocalValue x, c.Operand(0, c.call().Replicated(2)));
                  SHARDCALL_ASSIGN_OR_RETURN(x.id, c.builder().Convert(x.id, ElementType::kF32));
                  const AxisList axes = c.call().free_axes();
                  return scatter ? c.ReduceScatter(x, 0, PartialOp::kAnd, axes).status()
                                 : c.AllReduce(x, PartialOp::kAnd, axes).status();
                }),
                Fails("E120", "no such reduction"));
  }
}

TEST(CallbackMisuse, AShardingOverAnAxisThatIsNotThereIsNone) {
  for (const AxisRef axis : {AxisRef{7, 1, 2}, AxisRef{0, 1, 3}, AxisRef{0, 8, 2}}) {
    EXPECT_THAT(After([axis](PartitionContext& c) -> absl::Status {
                  ShardingBuilder b(c.call().mesh, 2);
                  b.dims[0] = {axis};
                  EXPECT_EQ(DiagnosticCode(CheckSharding(b)), "E162") << CheckSharding(b);
                  return c.Operand(0, b.Intern(*c.call().context)).status();
                }),
                Fails("E120", "operand 0"));
  }
}

}  // namespace
}  // namespace shardcall
