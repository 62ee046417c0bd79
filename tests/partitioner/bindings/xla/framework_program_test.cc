// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/xla/framework_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string Proto(absl::string_view text) {
  const auto module = ParseModule(std::make_shared<const std::string>(text),
                                  std::make_shared<Context>(), "test.hlo");
  EXPECT_TRUE(module.ok()) << module.status();
  const auto bytes = WriteModuleProto(*module);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return *bytes;
}

class FrameworkProgramTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<PartitionedProgram>> Made(absl::string_view text,
                                                           std::vector<bool> open_parameters,
                                                           std::vector<bool> open_results) {
    return PartitionForFramework(Proto(text), {.num_partitions = 4,
                                               .open_parameters = std::move(open_parameters),
                                               .open_results = std::move(open_results),
                                               .platform = "cpu",
                                               .registry = &registry_});
  }
  // Of the parameters, then of the result.
  std::vector<std::string> Held(const PartitionedProgram& program) {
    const auto held = ShardingsHeld(program.local);
    EXPECT_TRUE(held.ok()) << held.status();
    std::vector<std::string> out;
    for (const HloSharding& s : held->parameters) out.push_back(s.Print());
    out.push_back(held->result.Print());
    return out;
  }
  Registry registry_;
};

constexpr char kDouble[] = R"(HloModule double

ENTRY main {
  x = f32[SIZE] parameter(0), sharding={devices=[4]<=[4]}
  ROOT y = f32[SIZE] add(x, x)
}
)";

std::string OfSize(std::string text, int size) {
  for (size_t at; (at = text.find("SIZE")) != std::string::npos;) {
    text.replace(at, 4, std::to_string(size));
  }
  return text;
}

Tensor Counting(absl::Span<const int64_t> dims) {
  Tensor t(ElementType::kF32, dims);
  for (int64_t k = 0; k < t.num_elements(); ++k) {
    t.MutableData<float>()[k] = static_cast<float>(k % 5 - 2);
  }
  return t;
}

TEST_F(FrameworkProgramTest, AnOpenResultIsShardedWhereThatIsEvenAndWholeElsewhere) {
  const auto even = Made(OfSize(kDouble, 8), {false}, {true});
  ASSERT_TRUE(even.ok()) << even.status();
  EXPECT_THAT(Held(**even), ElementsAre("{devices=[4]<=[4]}", "{devices=[4]<=[4]}"));
  EXPECT_THAT(TotalsByOpcode((*even)->local), IsEmpty());
  const auto closed = Made(OfSize(kDouble, 8), {false}, {false});
  ASSERT_TRUE(closed.ok()) << closed.status();
  EXPECT_THAT(Held(**closed), ElementsAre("{devices=[4]<=[4]}", "{replicated}"));
  const auto uneven = Made(OfSize(kDouble, 6), {false}, {true});
  ASSERT_TRUE(uneven.ok()) << uneven.status();
  EXPECT_EQ(Held(**uneven)[1], "{replicated}");
}

// The value is over half of an axis in one dimension, and over the other half in the other one.
constexpr char kReshaped[] =
    R"(HloModule reshaped, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=4]>}}

ENTRY main {
  x = f32[SIZE] parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"a\"}]>"}
  y = f32[2,16] reshape(x)
  z = f32[SIZE] reshape(y)
  ROOT r = (f32[2,16], f32[SIZE]) tuple(y, z)
}
)";

TEST_F(FrameworkProgramTest, AnOpenResultIsOverWholeAxesThoughItsValueIsNot) {
  const auto made = Made(OfSize(kReshaped, 32), {false}, {true});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(Held(**made)[1], "{{replicated}, {devices=[4]<=[4]}}");
  // Only the first result is gathered.
  const auto totals = TotalsByOpcode((*made)->local);
  ASSERT_EQ(totals.size(), 1u);
  EXPECT_EQ(totals.begin()->second.bytes, 128 * 3 / 4);
}

// Axes that divide are kept, from the major one on.
TEST_F(FrameworkProgramTest, AnOpenEdgeKeepsTheAxesThatDivideIt) {
  const std::string text =
      R"(HloModule two, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=2, "b"=2]>}}

ENTRY main {
  x = f32[SIZE] parameter(0)
  y = f32[SIZE] custom-call(x), custom_call_target="Sharding", frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{\"a\", \"b\"}]>]>"}
  ROOT z = f32[SIZE] negate(y)
}
)";
  const auto even = Made(OfSize(text, 8), {true}, {true});
  ASSERT_TRUE(even.ok()) << even.status();
  EXPECT_THAT(Held(**even), ElementsAre("{devices=[4]<=[4]}", "{devices=[4]<=[4]}"));
  const auto half = Made(OfSize(text, 6), {true}, {true});
  ASSERT_TRUE(half.ok()) << half.status();
  const std::string kept = "{devices=[2,2]<=[4] last_tile_dim_replicate}";
  EXPECT_THAT(Held(**half), ElementsAre(kept, kept));
  const auto none = Made(OfSize(text, 5), {true}, {true});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(Held(**none), ElementsAre("{replicated}", "{replicated}"));
  for (const auto* program : {&even, &half, &none}) {
    Tensor x = Counting({(**program)->local.parameter_shapes[0]->dim(0)});
    const auto run = RunPartitioned(***program, {x}, {}, nullptr);
    ASSERT_TRUE(run.ok()) << run.status();
    const auto expected = Evaluate((**program)->global->program.module, {x}, nullptr);
    EXPECT_TRUE(BitwiseEqual((*run)[0], (*expected)[0]));
  }
}

// Sums over the axis that the operands are sharded on: of all four devices, or of two.
constexpr char kSums[] = R"(HloModule sums, num_partitions=4

ENTRY main {
  x = f32[4,2] parameter(0), sharding={devices=[1,2,2]<=[4] last_tile_dim_replicate}
  y = f32[2,4] parameter(1), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}
  z = f32[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[4,4] custom-call(z), custom_call_target="Sharding", sharding=RESULT
}
)";

constexpr char kTold[] =
    R"(HloModule told, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=4]>}}

ENTRY main {
  x = f32[SIZE] parameter(0)
  y = f32[SIZE] add(x, x)
  t = f32[SIZE] custom-call(y), custom_call_target="Sharding", frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{\"a\"}]>]>"}
  z = f32[SIZE] negate(t)
  ROOT r = (f32[SIZE], f32[SIZE]) tuple(t, z)
}
)";

TEST_F(FrameworkProgramTest, AnOpenResultWhoseValueIsToldAnUnevenShardingIsWhole) {
  const auto even = Made(OfSize(kTold, 8), {false}, {true});
  ASSERT_TRUE(even.ok()) << even.status();
  EXPECT_EQ(Held(**even)[1], "{{devices=[4]<=[4]}, {devices=[4]<=[4]}}");
  const auto uneven = Made(OfSize(kTold, 6), {false}, {true});
  ASSERT_TRUE(uneven.ok()) << uneven.status();
  EXPECT_EQ(Held(**uneven)[1], "{{replicated}, {replicated}}");
  // Within the program the annotation holds.
  EXPECT_THAT(TotalsByOpcode((*uneven)->local), testing::SizeIs(1));
  const size_t begin = std::string(kTold).find("  z ");
  const auto alone = Made(OfSize(std::string(kTold).substr(0, begin) + R"(  z = f32[SIZE] negate(t)
  ROOT r = f32[SIZE] custom-call(z), custom_call_target="Sharding", frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{\"a\"}]>]>"}
}
)",
                                 6),
                          {false}, {true});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(Held(**alone)[1], "{replicated}");
  EXPECT_THAT(TotalsByOpcode((*alone)->local), testing::SizeIs(1));
}

TEST_F(FrameworkProgramTest, WhatTheProgramLeavesUnreducedIsNotReduced) {
  const std::vector<Tensor> inputs = {Counting({4, 2}), Counting({2, 4})};
  for (const auto& [sharding, reductions] : std::vector<std::pair<std::string, size_t>>{
           {"{replicated}", 1},
           {"{devices=[1,1,2,2]<=[4] last_tile_dims={unreduced, replicated}}", 0}}) {
    std::string text = kSums;
    text.replace(text.find("RESULT"), 6, sharding);
    const auto program = Made(text, {false, false}, {false});
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(Held(**program)[2], sharding);
    EXPECT_EQ(TotalsByOpcode((*program)->local).size(), reductions) << sharding;
    const auto whole = RunPartitioned(**program, inputs, {}, nullptr);
    ASSERT_TRUE(whole.ok()) << whole.status();
    const auto expected = Evaluate((*program)->global->program.module, inputs, nullptr);
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_TRUE(BitwiseEqual((*whole)[0], (*expected)[0])) << sharding;
  }
}

TEST_F(FrameworkProgramTest, WhatIsNoProgramIsRefused) {
  EXPECT_FALSE(
      PartitionForFramework("nothing", {.num_partitions = 4, .registry = &registry_}).ok());
  const absl::Status status =
      PartitionForFramework(Proto(OfSize(kDouble, 8)),
                            {.num_partitions = 4, .platform = "", .registry = &registry_})
          .status();
  EXPECT_EQ(DiagnosticCode(status), "E141") << status;
}

}  // namespace
}  // namespace shardcall
