// SPDX-License-Identifier: Apache-2.0
// Calls that are ended before they are done, and processes that exit while programs run.
#include "shardcall/sharding/base/stop.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/runtime/execute/watched_threads.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/steady_time.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;

// Counts without an end on every device. `reduced`: and sums over the devices each time.
std::string Endless(bool reduced) {
  return absl::StrCat(R"(HloModule endless, num_partitions=4
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
condition {
  p = f32[8] parameter(0)
  ROOT t = pred[] constant(true)
}
body {
  p = f32[8] parameter(0)
  s = f32[8] sine(p)
)",
                      reduced ? R"(  z = f32[] constant(0)
  r = f32[] reduce(s, z), dimensions={0}, to_apply=add
  ROOT b = f32[8] broadcast(r), dimensions={}
})"
                              : "  ROOT b = f32[8] cosine(s)\n}",
                      R"(
ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  ROOT w = f32[8] while(x), condition=condition, body=body
}
)");
}

constexpr char kProduct[] = R"(HloModule product, num_partitions=4
ENTRY e {
  x = f32[512,512] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT d = f32[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";

Module Parsed(absl::string_view text) {
  absl::StatusOr<Module> module = ParseModule(std::make_shared<const std::string>(text),
                                              std::make_shared<Context>(), "test.hlo");
  EXPECT_TRUE(module.ok()) << module.status();
  return *std::move(module);
}

std::unique_ptr<PartitionedProgram> Partitioned(absl::string_view text) {
  absl::StatusOr<std::unique_ptr<PartitionedProgram>> made = Partition(Parsed(text), {});
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

Tensor Input(int64_t n) { return Tensor::Zeros(ElementType::kF32, {n}); }

// Asks to stop 50 ms from now.
class Later {
 public:
  explicit Later(StopSource* source)
      : thread_([source] {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          source->Request();
        }) {}
  ~Later() { thread_.join(); }

 private:
  std::thread thread_;
};

TEST(Stop, ARunThatWouldNotEndIsStoppedAndSaysWhereItWas) {
  for (const bool reduced : {false, true}) {
    const auto program = Partitioned(Endless(reduced));
    StopSource source;
    const StopScope scope({.source = &source});
    const Later later(&source);
    const absl::Status status = RunPartitioned(*program, {Input(8)}, {}, nullptr).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    EXPECT_EQ(DiagnosticCode(status), "E346");
    EXPECT_THAT(status.message(), HasSubstr(" of %w on device "));
  }
}

TEST(Stop, ARunEndsAtItsLimit) {
  for (const bool reduced : {false, true}) {
    const auto program = Partitioned(Endless(reduced));
    const StopScope scope({.limit = absl::Milliseconds(100)});
    RunOptions options;
    options.deadline = absl::Seconds(1);
    const absl::Status status = RunPartitioned(*program, {Input(8)}, options, nullptr).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_EQ(DiagnosticCode(status), "E346");
    EXPECT_THAT(status.message(), HasSubstr(" of %w on device "));
  }
}

// The kernel's own deadline is far beyond the limit, so nothing is won by waiting for it.
TEST(Stop, ARunEndsAtItsLimitWhileAKernelIsUnderWay) {
  const auto program = Partitioned(R"(HloModule m, num_partitions=2
ENTRY e {
  x = f32[8] parameter(0), sharding={replicated}
  ROOT y = f32[8] custom-call(x), custom_call_target="waits", sharding={replicated}
}
)");
  std::atomic<bool> released = false;
  HandlerRegistry handlers;
  HandlerEntry entry;
  entry.target = "waits";
  entry.host = [&](const HandlerContext&, absl::Span<const BufferView>,
                   absl::Span<const BufferView>) {
    while (!released) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return absl::OkStatus();
  };
  ASSERT_TRUE(handlers.Register(std::move(entry)).ok());
  RunOptions options;
  options.handlers = &handlers;
  options.deadline = absl::Minutes(10);
  const absl::Duration began = SteadyNow();
  absl::Status status;
  {
    const StopScope scope({.limit = absl::Milliseconds(100)});
    status = RunPartitioned(*program, {Input(8)}, options, nullptr).status();
  }
  EXPECT_EQ(DiagnosticCode(status), "E346") << status;
  EXPECT_LT(SteadyNow() - began, absl::Minutes(5));
  released = true;
  while (ThreadsLeftBehind() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

TEST(Stop, TheEvaluatorOfOneDeviceStopsWithAndWithoutAThreadOfItsOwn) {
  const Module module = Parsed(Endless(false));
  for (const bool own : {false, true}) {
    const StopScope scope({.limit = absl::Milliseconds(100)});
    const absl::Status status =
        own ? EvaluateWithin(module, {Input(8)}, nullptr, absl::Seconds(20)).status()
            : Evaluate(module, {Input(8)}, nullptr).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(status.message(), HasSubstr(" of %w on device 0"));
  }
}

TEST(Stop, NoStageOfThePartitionerGoesOnAfterARequest) {
  StopSource source;
  source.Request();
  Module module = Parsed(kProduct);
  const StopScope scope({.source = &source});
  EXPECT_EQ(DiagnosticCode(PropagateShardings(Parsed(kProduct), {}).status()), "E346");
  // A request that comes during any stage ends it.
  int stages = 0;
  for (const char* stage : {"import", "propagate", "plan", "localize"}) {
    StopSource own;
    PartitionOptions options;
    options.observe = [&](absl::string_view done) {
      if (done == stage) own.Request();
    };
    std::thread([&] {
      const StopScope inner({.source = &own});
      const absl::Status status = Partition(Parsed(kProduct), options).status();
      EXPECT_EQ(DiagnosticCode(status), "E346") << stage << status;
      ++stages;
    }).join();
  }
  EXPECT_EQ(stages, 4);
}

TEST(Stop, ARunThatEndsInTimeHasItsResults) {
  const auto program = Partitioned(kProduct);
  const Tensor x = Tensor::Zeros(ElementType::kF32, {512, 512});
  const auto plain = RunPartitioned(*program, {x}, {}, nullptr);
  const StopScope scope({.limit = absl::Hours(1)});
  const auto out = RunPartitioned(*program, {x}, {}, nullptr);
  ASSERT_TRUE(plain.ok() && out.ok()) << plain.status() << out.status();
  EXPECT_TRUE((*out)[0].data<float>()[511] == (*plain)[0].data<float>()[511]);
}

// Runs a program again and again on threads of its own, until the process is gone.
void RunAlways(absl::string_view text, int64_t rows, int threads) {
  for (int t = 0; t < threads; ++t) {
    std::thread([text = std::string(text), rows] {
      const auto program = Partitioned(text);
      const Tensor x = rows == 0 ? Input(8) : Tensor::Zeros(ElementType::kF32, {rows, rows});
      while (true) (void)RunPartitioned(*program, {x}, {}, nullptr);
    }).detach();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

using ExitDeathTest = ::testing::Test;

TEST(ExitDeathTest, AProcessExitsWithItsStatusWhileOtherThreadsRunPrograms) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        RunAlways(kProduct, 512, 3);
        std::exit(7);
      },
      ::testing::ExitedWithCode(7), "^$");
  EXPECT_EXIT(
      {
        RunAlways(Endless(true), 0, 2);
        std::exit(8);
      },
      ::testing::ExitedWithCode(8), "^$");
}

TEST(ExitDeathTest, TheThreadThatExitsMayStillRunPrograms) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static std::unique_ptr<PartitionedProgram> program = Partitioned(kProduct);
        std::atexit([] {
          const Tensor x = Tensor::Zeros(ElementType::kF32, {512, 512});
          const auto out = RunPartitioned(*program, {x}, {}, nullptr);
          std::fputs(out.ok() ? "ran" : std::string(out.status().message()).c_str(), stderr);
        });
        RunAlways(kProduct, 512, 2);
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "^ran$");
}

TEST(ExitDeathTest, AForkedChildExitsWithoutTheRunsOfItsParent) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        RunAlways(kProduct, 512, 2);
        const absl::Duration start = SteadyNow();
        const pid_t child = fork();
        if (child == 0) {
          const auto program = Partitioned(kProduct);
          const Tensor x = Tensor::Zeros(ElementType::kF32, {512, 512});
          std::exit(RunPartitioned(*program, {x}, {}, nullptr).ok() ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        const bool soon = SteadyNow() - start < absl::Seconds(4);
        std::exit(WIFEXITED(status) && soon ? WEXITSTATUS(status) : 9);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace shardcall
