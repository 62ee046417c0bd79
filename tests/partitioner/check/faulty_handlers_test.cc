// SPDX-License-Identifier: Apache-2.0
// Handlers that do not return, throw, or return too late: what the library gives to
// whoever runs a program with them, and that nothing goes wrong afterwards.
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/collectives/in_process/in_process.h"
#include "shardcall/partitioner/api/executable.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/api/verify.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/runtime/execute/executor.h"
#include "shardcall/partitioner/runtime/execute/watched_threads.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Views = absl::Span<const BufferView>;
using Body = std::function<absl::Status(const HandlerContext& context, Views in, Views out)>;

constexpr char kProgram[] = R"(HloModule m, num_partitions=4
ENTRY main {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  c = f32[8] custom-call(x), custom_call_target="k"
  d = f32[8] custom-call(c), custom_call_target="k"
  ROOT r = f32[8] add(d, d), sharding={replicated}
}
)";

absl::StatusOr<Module> Parse(const char* text) {
  return ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(), "t");
}

std::vector<Tensor> Input() {
  return {Tensor::From(ElementType::kF32, {8}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8})};
}

absl::Status Copy(Views in, Views out) {
  std::memcpy(out[0].data, in[0].data, in[0].byte_size());
  return absl::OkStatus();
}

// A run whose registries, program and inputs are gone when it is over.
absl::StatusOr<std::vector<Tensor>> RunOnce(Body body, absl::Duration deadline, int devices = 4) {
  TargetRegistry targets;
  HandlerRegistry handlers;
  EXPECT_TRUE(targets.RegisterRule("k", {.rule = "i -> i"}).ok());
  HandlerEntry entry;
  entry.target = "k";
  entry.host = std::move(body);
  EXPECT_TRUE(handlers.Register(std::move(entry)).ok());
  RunOptions options;
  options.deadline = deadline;
  options.handlers = &handlers;
  options.partition.targets = &targets;
  options.partition.num_partitions = devices;
  SHARDCALL_ASSIGN_OR_RETURN(Module module, Parse(kProgram));
  SHARDCALL_ASSIGN_OR_RETURN(const Executable program, Compile(std::move(module), options));
  return program.Execute(Input());
}

void AwaitAll() {
  for (int k = 0; k < 2000 && ThreadsLeftBehind() > 0; ++k) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_EQ(ThreadsLeftBehind(), 0);
}

TEST(FaultyHandlers, OneThatDoesNotReturnIsNamedAndLeftBehind) {
  for (int devices : {4, 1}) {
    auto go_on = std::make_shared<std::atomic<bool>>(false);
    auto returned = std::make_shared<std::atomic<int>>(0);
    const absl::Time start = absl::Now();
    const auto result = RunOnce(
        [go_on, returned, devices](const HandlerContext& context, Views in, Views out) {
          if (context.device_ordinal == devices - 1) {
            while (!*go_on) absl::SleepFor(absl::Milliseconds(1));
          }
          const absl::Status status = Copy(in, out);
          ++*returned;
          return status;
        },
        absl::Milliseconds(200), devices);
    EXPECT_LT(absl::Now() - start, absl::Seconds(60));
    EXPECT_THAT(std::string(result.status().message()),
                AllOf(HasSubstr("E319 the handler of \"k\" has not returned within 200ms"),
                      HasSubstr("on device " + std::to_string(devices - 1)), HasSubstr("%c")));
    EXPECT_EQ(ThreadsLeftBehind(), 1);
    // It goes on in memory that is still its own, and ends.
    *go_on = true;
    AwaitAll();
    EXPECT_GE(*returned, 1);
  }
}

// One process of a run over NCCL: what it calls is any communicator's.
TEST(FaultyHandlers, OneOfARunOverNcclHasTheDeadlineToo) {
  auto go_on = std::make_shared<std::atomic<bool>>(false);
  TargetRegistry targets;
  ASSERT_TRUE(targets.RegisterRule("k", {.rule = "i -> i"}).ok());
  const auto run = [&](bool returns) -> absl::StatusOr<std::vector<Tensor>> {
    HandlerRegistry handlers;
    EXPECT_TRUE(handlers
                    .Register({.target = "k",
                               .host =
                                   [=](const HandlerContext&, Views in, Views out) {
                                     for (int k = 0; k < 5000 && !returns && !*go_on; ++k) {
                                       absl::SleepFor(absl::Milliseconds(1));
                                     }
                                     return Copy(in, out);
                                   }})
                    .ok());
    RunOptions options;
    options.backend = Backend::kNccl;
    options.deadline = absl::Milliseconds(200);
    options.handlers = &handlers;
    options.partition.targets = &targets;
    options.partition.num_partitions = 1;
    SHARDCALL_ASSIGN_OR_RETURN(Module module,
                               Parse("HloModule m\nENTRY main { x = f32[8] parameter(0)\n"
                                     "ROOT c = f32[8] custom-call(x), custom_call_target=\"k\" }"));
    SHARDCALL_ASSIGN_OR_RETURN(const auto program, Partition(std::move(module), options.partition));
    InProcessWorld world(1, absl::Seconds(10));
    static auto* const kept = new std::vector<std::unique_ptr<Communicator>>;  // it must stay
    kept->push_back(world.Rank(0));
    return RunPartitioned(*program, Input(), options, kept->back().get());
  };
  const auto outputs = run(true);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0].dims(), Input()[0].dims());
  EXPECT_THAT(std::string(run(false).status().message()),
              HasSubstr("E319 the handler of \"k\" has not returned within 200ms"));
  *go_on = true;
  AwaitAll();
}

TEST(FaultyHandlers, AllOfThemAtOnce) {
  auto go_on = std::make_shared<std::atomic<bool>>(false);
  const auto result = RunOnce(
      [go_on](const HandlerContext&, Views in, Views out) {
        while (!*go_on) absl::SleepFor(absl::Milliseconds(1));
        return Copy(in, out);
      },
      absl::Milliseconds(100));
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("E319"));
  EXPECT_EQ(ThreadsLeftBehind(), 4);
  *go_on = true;
  AwaitAll();
}

TEST(FaultyHandlers, OneThatIsSlowHasItsDeadlineEachTime) {
  const auto result = RunOnce(
      [](const HandlerContext&, Views in, Views out) {
        absl::SleepFor(absl::Milliseconds(300));
        return Copy(in, out);
      },
      absl::Milliseconds(500));
  ASSERT_TRUE(result.ok()) << result.status();  // 600 ms in two calls
  EXPECT_EQ((*result)[0].data<float>()[7], 16);
}

TEST(FaultyHandlers, WhatTheyThrowIsAStatusOnEveryDevice) {
  for (int devices : {4, 1}) {
    EXPECT_THAT(
        std::string(RunOnce([](const HandlerContext&, Views,
                               Views) -> absl::Status { throw std::runtime_error("bad table"); },
                            absl::Seconds(5), devices)
                        .status()
                        .message()),
        AllOf(HasSubstr("E317"), HasSubstr("bad table")));
    EXPECT_THAT(
        std::string(RunOnce([](const HandlerContext&, Views, Views) -> absl::Status { throw 7; },
                            absl::Seconds(5), devices)
                        .status()
                        .message()),
        HasSubstr("E317"));
    EXPECT_THAT(std::string(RunOnce(
                                [](const HandlerContext&, Views, Views) -> absl::Status {
                                  std::vector<char> all(size_t{1} << 62);
                                  return absl::OkStatus();
                                },
                                absl::Seconds(5), devices)
                                .status()
                                .message()),
                HasSubstr("E317"));
  }
}

TEST(FaultyHandlers, ProgramsWithoutHandlersHaveNoThreadOfTheirOwn) {
  auto module = Parse(
      "HloModule m\nENTRY main {\n  x = f32[8] parameter(0)\n"
      "  ROOT r = f32[8] add(x, x)\n}\n");
  ASSERT_TRUE(module.ok());
  const auto out = EvaluateWithin(*module, Input(), nullptr, absl::Seconds(1));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].data<float>()[0], 2);
}

TEST(OutOfMemory, SizesThatNoMachineHasAreAStatus) {
  for (const char* dims : {"[1048576,262144]", "[4194304,4194304]"}) {
    const std::string shape = std::string("f32") + dims;
    const std::string text =
        "HloModule far_too_large, num_partitions=2\nENTRY main {\n  x = " + shape +
        " iota(), iota_dimension=0\n  ROOT r = " + shape +
        " negate(x), sharding={devices=[2,1]<=[2]}\n}\n";
    for (int devices : {1, 2}) {
      auto module = Parse(text.c_str());
      ASSERT_TRUE(module.ok()) << module.status();
      RunOptions options;
      options.partition.num_partitions = devices;
      const auto program = Compile(*std::move(module), options);
      ASSERT_TRUE(program.ok()) << program.status();
      EXPECT_THAT(std::string(program->Execute({}).status().message()),
                  AllOf(HasSubstr("E314"), HasSubstr("bytes) were asked for")));
    }
    auto module = Parse(text.c_str());
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_THAT(
        std::string(Verify(*std::move(module), {}, /*seed=*/1, {}, nullptr).status().message()),
        AllOf(HasSubstr("E314"), HasSubstr("at far_too_large")));
  }
}

}  // namespace
}  // namespace shardcall
