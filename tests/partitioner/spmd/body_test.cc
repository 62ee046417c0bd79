// SPDX-License-Identifier: Apache-2.0
// Targets with a rule and a body: the body is a strategy of its call, which is compared with others
// by what it sends.
#include <gtest/gtest.h>

#include <stdexcept>

#include "shardcall/partitioner/custom_call/rule_callbacks.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "tests/partitioner/spmd/callback_testing.h"
#include "tests/support/charged.h"

namespace shardcall {
namespace {

// Target "same", whose result is its operand, with this body under the rule `rows columns -> rows
// columns`.
struct BodyRig {
  explicit BodyRig(LocalBody body) {
    RuleAlternative rule;
    rule.text.rule = "r c -> r c";
    EXPECT_TRUE(RegisterRuleWithBody(targets, "same", {rule}, std::move(body)).ok());
    RegisterSame(&handlers);
    options.targets = &targets;
    options.handlers = &handlers;
  }
  std::unique_ptr<PartitionedProgram> Partitioned(const std::string& text) {
    auto p = PartitionText(text, options);
    EXPECT_TRUE(p.ok()) << p.status();
    return p.ok() ? *std::move(p) : nullptr;
  }
  TargetRegistry targets;
  HandlerRegistry handlers;
  TextOptions options;
};

// A call of rows x columns of which dimension 0 is sharded over 4 devices, and its result alike.
std::string Call(int64_t rows, int64_t columns) {
  const std::string shape = absl::StrCat("f32[", rows, ",", columns, "]");
  return absl::StrCat("HloModule m, num_partitions=4\n\nENTRY e {\n  x = ", shape,
                      " parameter(0), sharding={devices=[4,1]<=[4]}\n  ROOT c = ", shape,
                      " custom-call(x), custom_call_target=\"same\", "
                      "sharding={devices=[4,1]<=[4]}\n}\n");
}

const Decision& DecisionOfCall(const PartitionedProgram& p) {
  const Module& m = p.global->program.module;
  for (int k = 0; k < m.num_instructions(); ++k) {
    if (m.instr(InstrId(k)).opcode == Opcode::kCustomCall) return *p.plan.ops[k].decision;
  }
  ADD_FAILURE() << "no call";
  static const Decision none;
  return none;
}

// Adds to the shard of rows what an all-reduce makes of its first element, or of all of it, several
// times over.
LocalBody AddsSums(bool of_all, int times) {
  return
      [of_all, times](LocalCall& call,
                      absl::Span<const InstrId> operands) -> absl::StatusOr<std::vector<InstrId>> {
        if (!call.IsSharded("r")) return call.CallTarget(operands);
        CheckedBuilder& b = call.builder();
        InstrId x = operands[0];
        for (int k = 0; k < times; ++k) {
          InstrId sum = x;
          if (!of_all) {
            SHARDCALL_ASSIGN_OR_RETURN(sum, b.Slice(sum, {0, 0}, {1, 1}));
            SHARDCALL_ASSIGN_OR_RETURN(sum, b.Reshape(sum, {}));
          }
          SHARDCALL_ASSIGN_OR_RETURN(sum, call.AllReduce(sum, PartialOp::kSum, "r"));
          if (!of_all) {
            SHARDCALL_ASSIGN_OR_RETURN(sum, b.BroadcastScalar(sum, b.shape(x)));
          }
          SHARDCALL_ASSIGN_OR_RETURN(x, b.Add(Opcode::kAdd, {x, sum}));
        }
        return call.CallTarget({x});
      };
}

TEST(Body, IsChargedForWhatItSends) {
  BodyRig rig(AddsSums(/*of_all=*/false, 1));
  const auto p = rig.Partitioned(Call(1024, 1024));
  ASSERT_TRUE(p != nullptr);
  const Decision& d = DecisionOfCall(*p);
  EXPECT_EQ(d.strategy, &kBodyStrategy);
  EXPECT_EQ(CountOpcode(*p, Opcode::kAllReduce), 1);
  EXPECT_EQ(d.bytes, 2 * 0.75 * 4);  // the all-reduce of a float over 4 devices
  EXPECT_EQ(WhyChargedOtherwise(*p, rig.options.spmd), "");
}

TEST(Body, ThatSendsMoreThanTheWholeOperandRunsOnThat) {
  constexpr double kShard = 1024 * 1024, kGather = 3 * kShard, kAllReduce = 1.5 * kShard;
  for (const int times : {1, 3}) {
    BodyRig rig(AddsSums(/*of_all=*/true, times));
    const auto p = rig.Partitioned(Call(1024, 1024));
    ASSERT_TRUE(p != nullptr);
    EXPECT_EQ(CountOpcode(*p, Opcode::kAllReduce), times == 1 ? 1 : 0);
    EXPECT_EQ(CountOpcode(*p, Opcode::kAllGather), times == 1 ? 0 : 1);
    EXPECT_EQ(DecisionOfCall(*p).bytes, times == 1 ? kAllReduce : kGather);
    EXPECT_EQ(WhyChargedOtherwise(*p, rig.options.spmd), "");
  }
}

TEST(Body, MayTakeAnOperandInAnotherState) {
  BodyRig rig([](LocalCall& call,
                 absl::Span<const InstrId> operands) -> absl::StatusOr<std::vector<InstrId>> {
    if (!call.IsSharded("r")) return call.CallTarget(operands);
    CheckedBuilder& b = call.builder();
    SHARDCALL_ASSIGN_OR_RETURN(const LocalValue whole,
                               call.context().Operand(0, call.call().Replicated(2)));
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId start, call.Start("r"));
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId zero, b.ConstantInt(ElementType::kS32, 0));
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId own,
                               b.DynamicSlice(whole.id, {start, zero}, {call.Tile("r"), 12}));
    return call.CallTarget({own});
  });
  rig.options.spmd.cost.memory_rate = 1;  // sharding pays in any case
  const auto p = rig.Partitioned(Call(8, 12));
  ASSERT_TRUE(p != nullptr);
  EXPECT_EQ(CountOpcode(*p, Opcode::kAllGather), 1);
  EXPECT_EQ(DecisionOfCall(*p).bytes, 3 * 2 * 12 * 4);
  EXPECT_EQ(WhyChargedOtherwise(*p, rig.options.spmd), "");
  EXPECT_EQ(WhyNotEqual(Call(8, 12), rig.options), "");
}

TEST(Body, RunsWhereTheShardsAreInAnotherOrderOfDevices) {
  BodyRig rig([](LocalCall& call, absl::Span<const InstrId> operands) {
    SHARDCALL_CHECK(call.Start("r").ok());
    return call.CallTarget(operands);
  });
  EXPECT_EQ(WhyNotEqual(R"(HloModule m, num_partitions=4

ENTRY e {
  x = f32[8,12] parameter(0), sharding={devices=[4,1]<=[4]}
  p = f32[8,12] copy(x), sharding={devices=[4,1]3,1,0,2}
  c = f32[8,12] custom-call(p), custom_call_target="same", sharding={devices=[4,1]3,1,0,2}
  ROOT r = f32[8,12] negate(c), sharding={devices=[4,1]3,1,0,2}
}
)",
                        rig.options),
            "");
}

TEST(Body, ErrorsNameTheTargetAndTheCall) {
  const auto after = [](LocalBody body) {
    BodyRig rig(std::move(body));
    return PartitionText(Call(8, 12), rig.options).status();
  };
  using Made = absl::StatusOr<std::vector<InstrId>>;
  EXPECT_THAT(after([](LocalCall&, absl::Span<const InstrId>) -> Made {
                return absl::InvalidArgumentError("the rows are too few");
              }),
              Fails("E121", "body of \"same\" (%c) failed: the rows are too few"));
  EXPECT_THAT(after([](LocalCall&, absl::Span<const InstrId>) -> Made {
                throw std::runtime_error("no more");
              }),
              Fails("E121", "body of \"same\" (%c) threw: no more"));
  EXPECT_THAT(
      after([](LocalCall&, absl::Span<const InstrId>) -> Made { return std::vector<InstrId>(); }),
      Fails("E121", "its body made 0 of 1 results"));
  EXPECT_THAT(after([](LocalCall& call, absl::Span<const InstrId>) -> Made {
                SHARDCALL_ASSIGN_OR_RETURN(const InstrId one,
                                           call.builder().ConstantInt(ElementType::kF32, 1));
                return std::vector<InstrId>{one};
              }),
              Fails("E120", "partition(\"same\") result 0"));
}

}  // namespace
}  // namespace shardcall
