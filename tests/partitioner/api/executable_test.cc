// SPDX-License-Identifier: Apache-2.0
// Build, compile, execute from C++.
#include "shardcall/partitioner/api/executable.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/kernels/ffi/untyped_handler.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/ir/build/program_builder.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/runtime/program.h"
#include "shardcall/sharding/base/status.h"
#include "tests/support/test_targets.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;

void Subtract(void* out, const void** in) {
  *static_cast<float*>(out) = *static_cast<const float*>(in[0]) - *static_cast<const float*>(in[1]);
}

absl::StatusOr<Module> SubtractProgram() {
  ProgramBuilder p("subtract");
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* f32, p.Array(ElementType::kF32, {}, {}));
  SHARDCALL_ASSIGN_OR_RETURN(InstrId x, p.Parameter(f32));
  SHARDCALL_ASSIGN_OR_RETURN(InstrId y, p.Parameter(f32));
  CustomCallAttrs call;
  call.target = "test_subtract_f32";
  SHARDCALL_ASSIGN_OR_RETURN(InstrId z, p.builder().CustomCall(call, {x, y}, f32));
  return std::move(p).Build(z);
}

Tensor Scalar(float v) { return Tensor::From<float>(ElementType::kF32, {}, {v}); }

TEST(Executable, RunsWhatWasBuiltAndRegistered) {
  HandlerRegistry handlers;
  ASSERT_TRUE(handlers
                  .Register(*MakeUntypedEntry("test_subtract_f32", "Host",
                                              reinterpret_cast<void*>(Subtract), 0, "test"))
                  .ok());
  absl::StatusOr<Module> module = SubtractProgram();
  ASSERT_TRUE(module.ok()) << module.status();
  const auto program = Compile(*std::move(module), {.handlers = &handlers});
  ASSERT_TRUE(program.ok()) << program.status();
  for (int round = 0; round < 3; ++round) {
    const auto out = program->Execute({Scalar(1.25), Scalar(0.5)});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(*(*out)[0].data<float>(), 0.75f);
  }
  EXPECT_EQ(DiagnosticCode(program->Execute({Scalar(1)}).status()), "E313");
  EXPECT_EQ(
      DiagnosticCode(program->Execute({Scalar(1), Tensor::Zeros(ElementType::kF32, {2})}).status()),
      "E313");
}

TEST(Executable, WhatWasMovedFromIsRefused) {
  ProgramBuilder p("same");
  const InstrId x = *p.Parameter(ElementType::kF32, {});
  absl::StatusOr<Module> module = std::move(p).Build(x);
  ASSERT_TRUE(module.ok()) << module.status();
  absl::StatusOr<Executable> program = Compile(*std::move(module), {});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(DiagnosticCode(Compile(*std::move(module), {}).status()), "E028");
  EXPECT_EQ(DiagnosticCode(Evaluate(*module, {Scalar(1)}, nullptr).status()), "E028");
  EXPECT_EQ(DiagnosticCode(Partition(*std::move(module), {}).status()), "E028");
  const Executable taken = *std::move(program);
  EXPECT_TRUE(taken.Execute({Scalar(1)}).ok());
  EXPECT_EQ(DiagnosticCode(program->Execute({Scalar(1)}).status()), "E311");
}

TEST(Executable, WithoutTheTargetCompilingSaysWhatIsRegistered) {
  HandlerRegistry handlers;
  auto refusal = [&](const HandlerRegistry* registry) {
    return std::string(Compile(*SubtractProgram(), {.handlers = registry}).status().message());
  };
  for (const HandlerRegistry* registry : {static_cast<const HandlerRegistry*>(nullptr),
                                          static_cast<const HandlerRegistry*>(&handlers)}) {
    EXPECT_THAT(refusal(registry),
                testing::AllOf(HasSubstr("E140"), HasSubstr("test_subtract_f32"),
                               HasSubstr("Requested: Host"), HasSubstr("Registered: nothing")));
  }
  ASSERT_TRUE(handlers
                  .Register(*MakeUntypedEntry("test_subtract_f64", "Host",
                                              reinterpret_cast<void*>(Subtract), 0, "test"))
                  .ok());
  EXPECT_THAT(refusal(&handlers), testing::AllOf(HasSubstr("Registered: test_subtract_f64"),
                                                 HasSubstr("Near names: test_subtract_f64")));
  HandlerRegistry elsewhere;
  HandlerEntry cuda;
  cuda.target = "test_subtract_f32";
  cuda.platform = "CUDA";
  cuda.host = [](const HandlerContext&, absl::Span<const BufferView>,
                 absl::Span<const BufferView>) { return absl::OkStatus(); };
  ASSERT_TRUE(elsewhere.Register(std::move(cuda)).ok());
  EXPECT_THAT(refusal(&elsewhere),
              testing::AllOf(HasSubstr("is registered for: CUDA"), HasSubstr("Requested: Host")));
}

TEST(Executable, EveryTargetWithoutAHandlerIsNamedOnceWithItsCall) {
  auto module = ParseModule(std::make_shared<const std::string>(R"(HloModule m
ENTRY main {
  x = f32[4] parameter(0)
  one = f32[4] custom-call(x), custom_call_target="target_a"
  again = f32[4] custom-call(one), custom_call_target="target_a"
  ROOT two = f32[4] custom-call(again), custom_call_target="target_b"
})"),
                            std::make_shared<Context>(), "m.hlo");
  ASSERT_TRUE(module.ok()) << module.status();
  HandlerRegistry handlers;
  const std::string message(
      Compile(*std::move(module), {.handlers = &handlers}).status().message());
  EXPECT_THAT(message, testing::ContainsRegex("E140 target \"target_a\" at %one .*\n"
                                              "E140 target \"target_b\" at %two "));
  EXPECT_THAT(message, testing::Not(HasSubstr("%again")));
}

TEST(Executable, SeveralDevicesAreThreads) {
  auto module = ParseModule(std::make_shared<const std::string>(R"(HloModule m, num_partitions=4
ENTRY main {
  x = f32[8,6] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT c = f32[8,6] custom-call(x), custom_call_target="test_negate", api_version=API_VERSION_TYPED_FFI
}
)"),
                            std::make_shared<Context>(), "t");
  ASSERT_TRUE(module.ok()) << module.status();
  RunOptions options;
  options.partition.targets = &TestTargets();
  options.handlers = &TestHandlers();
  const auto program = Compile(*std::move(module), options);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->num_devices(), 4);
  std::vector<float> x(48);
  for (int k = 0; k < 48; ++k) x[k] = static_cast<float>(k);
  const auto out = program->Execute({Tensor::From(ElementType::kF32, {8, 6}, x)});
  ASSERT_TRUE(out.ok()) << out.status();
  for (int k = 0; k < 48; ++k) EXPECT_EQ((*out)[0].data<float>()[k], -x[k]);
  EXPECT_EQ(DiagnosticCode(program->Execute({}).status()), "E313");
  EXPECT_EQ(DiagnosticCode(program->Execute({Tensor::Zeros(ElementType::kF32, {8})}).status()),
            "E313");
}

TEST(ProgramBuilder, RefusesWhatDoesNotVerify) {
  ProgramBuilder p("bad");
  EXPECT_FALSE(std::move(p).Build(InstrId()).ok());
}

// Gradients of small layers: all are reduced before any is read.
TEST(Executable, SmallReductionsOverTheSameDevicesRunAsOne) {
  const std::string text = R"(HloModule m, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[512,4] parameter(0), sharding={devices=[4,1]<=[4]}
  y = f32[512,6] parameter(1), sharding={devices=[4,1]<=[4]}
  zero = f32[] constant(0)
  p = f32[4] reduce(x, zero), dimensions={0}, to_apply=add
  q = f32[6] reduce(y, zero), dimensions={0}, to_apply=add
  p2 = f32[4] add(p, p)
  q2 = f32[6] add(q, q)
  ROOT r = (f32[4], f32[6]) tuple(p2, q2)
}
)";
  absl::StatusOr<Module> module =
      ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(), "test");
  ASSERT_TRUE(module.ok()) << module.status();
  const auto program = Partition(*std::move(module), {});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ((*program)->local.collectives.size(), 2);
  for (const bool overlap : {true, false}) {
    const RunOptions options{.overlap = overlap};
    const auto lowered = LowerLocal(**program, options);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    int reductions = 0;
    for (const ProgramComputation& c : (*lowered)->computations) {
      for (const Step& step : c.steps) reductions += step.opcode == Opcode::kAllReduce ? 1 : 0;
    }
    EXPECT_EQ(reductions, 1);
    std::vector<float> x(512 * 4), y(512 * 6);
    for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k % 4);
    for (size_t k = 0; k < y.size(); ++k) y[k] = static_cast<float>(k % 6);
    const auto out = RunLowered(**program, *lowered,
                                {Tensor::FromBytes(ElementType::kF32, {512, 4}, x.data()),
                                 Tensor::FromBytes(ElementType::kF32, {512, 6}, y.data())},
                                options);
    ASSERT_TRUE(out.ok()) << out.status();
    for (int k = 0; k < 4; ++k) EXPECT_EQ((*out)[0].data<float>()[k], 1024 * k);
    for (int k = 0; k < 6; ++k) EXPECT_EQ((*out)[1].data<float>()[k], 1024 * k);
  }
}

}  // namespace
}  // namespace shardcall
