// SPDX-License-Identifier: Apache-2.0
// Many threads register, look up, partition and run at once, with the registries of each kind.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/executable.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/bindings/xla/registration.h"
#include "shardcall/partitioner/custom_call/derive/lowering.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/context.h"

namespace shardcall {
namespace {

constexpr int kThreads = 8;
constexpr int kRounds = 240;
constexpr int kRoundsOfPrograms = 10;

constexpr char kProgram[] = R"(HloModule twice, num_partitions=2
ENTRY main {
  x = f32[4,6] parameter(0), sharding={devices=[2,1]<=[2]}
  y = f32[4,6] custom-call(x), custom_call_target="twice", api_version=API_VERSION_TYPED_FFI
  ROOT z = f32[4,6] add(y, x), sharding={devices=[2,1]<=[2]}
})";

// Runs `body(thread)` on all threads, which begin together.
void OnThreads(const std::function<void(int)>& body) {
  std::atomic<int> waiting{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (--waiting; waiting > 0;) std::this_thread::yield();
      body(t);
    });
  }
  for (std::thread& t : threads) t.join();
}

HandlerEntry Twice(const std::string& target) {
  HandlerEntry entry;
  entry.target = target;
  entry.host = [](const HandlerContext&, absl::Span<const BufferView> operands,
                  absl::Span<const BufferView> results) {
    const auto* in = static_cast<const float*>(operands[0].data);
    auto* out = static_cast<float*>(results[0].data);
    for (int64_t i = 0; i < results[0].num_elements(); ++i) out[i] = 2 * in[i];
    return absl::OkStatus();
  };
  return entry;
}

absl::StatusOr<Module> Program() {
  return ParseModule(std::make_shared<const std::string>(kProgram), std::make_shared<Context>(),
                     "twice");
}

std::string Name(int thread, int round) { return absl::StrCat("t", thread, "_", round); }

TEST(ConcurrentUse, TargetsAreRegisteredLookedUpAndCopied) {
  TargetRegistry targets;
  ASSERT_TRUE(targets.RegisterRule("shared", {.rule = "b d -> b d"}).ok());
  std::atomic<int> added{0};
  OnThreads([&](int t) {
    for (int k = 0; k < kRounds; ++k) {
      EXPECT_TRUE(targets.RegisterRule(Name(t, k), {.rule = "b d -> b d"}).ok());
      // One thread has its way, the others are told.
      const absl::Status contended =
          targets.RegisterRule(Name(-1, k), {.rule = "b d -> b d", .blocked = {t % 2 ? "b" : "d"}});
      if (contended.ok()) {
        ++added;
      } else {
        EXPECT_EQ(DiagnosticCode(contended), "E105");
      }
      EXPECT_TRUE(targets.RegisterBatching("shared", {BatchingSpec::Kind::kLeading}).ok());
      const TargetRule* const found = targets.Find("shared", "");
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->num_given, 1u);
      EXPECT_EQ(found->alternatives[0].text.rule, "b d -> b d");
      const TargetFacts* const facts = targets.Facts("shared");
      ASSERT_NE(facts, nullptr);
      EXPECT_TRUE(facts->batching.has_value());
      if (k % 20 == 0) {
        const TargetRegistry copy = targets;
        EXPECT_NE(copy.Find(Name(t, k), ""), nullptr);
      }
      EXPECT_GE(targets.List().size(), static_cast<size_t>(k));
      EXPECT_FALSE(targets.NamesLike("sharde").empty());
    }
  });
  EXPECT_GE(added, kRounds);
  EXPECT_EQ(targets.List().size(), 1u + kThreads * kRounds + kRounds);
}

TEST(ConcurrentUse, HandlersAndLoweringsAreRegisteredLookedUpAndCopied) {
  HandlerRegistry handlers;
  LoweringRegistry lowerings;
  std::atomic<int> told{0};
  ASSERT_TRUE(handlers
                  .Watch("Host",
                         [&](const HandlerEntry&) {
                           ++told;
                           return absl::OkStatus();
                         })
                  .ok());
  OnThreads([&](int t) {
    for (int k = 0; k < kRounds; ++k) {
      EXPECT_TRUE(handlers.Register(Twice(Name(t, k))).ok());
      EXPECT_TRUE(
          lowerings.Register(Name(t, k), "Host", [](const LoweringRequest&) { return Skip(); })
              .ok());
      const auto found = handlers.Find(Name(t, k), "Host");
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_EQ((*found)->target, Name(t, k));
      EXPECT_EQ(DiagnosticCode(handlers.Find("absent", "Host").status()), "E140");
      const std::string name = Name(t, k);
      EXPECT_TRUE(lowerings.Ask({.name = name, .platform = "Host"}).ok());
      EXPECT_TRUE(lowerings.Knows(name));
      if (k % 20 == 0) {
        EXPECT_TRUE(LoweringRegistry(lowerings).Knows(name));
        EXPECT_GE(HandlerRegistry(handlers).size(), static_cast<size_t>(k));
      }
    }
  });
  EXPECT_EQ(told, kThreads * kRounds);
  EXPECT_EQ(handlers.List().size(), static_cast<size_t>(kThreads * kRounds));
}

// Nothing but registrations, so that they meet often.
TEST(ConcurrentUse, OfManyRegistrationsAtOnceAllAreKept) {
  constexpr int kMany = 1500;
  TargetRegistry targets;
  HandlerRegistry handlers;
  LoweringRegistry lowerings;
  const HandlerEntry entry = Twice("");
  OnThreads([&](int t) {
    for (int k = 0; k < kMany; ++k) {
      HandlerEntry mine = entry;
      mine.target = Name(t, k);
      EXPECT_TRUE(handlers.Register(std::move(mine)).ok());
      EXPECT_TRUE(
          lowerings.Register(Name(t, k), "Host", [](const LoweringRequest&) { return Skip(); })
              .ok());
      EXPECT_TRUE(targets.RegisterBatchPartitionable(Name(t, k), 1).ok());
    }
  });
  EXPECT_EQ(targets.List().size(), static_cast<size_t>(kThreads * kMany));
  EXPECT_EQ(handlers.List().size(), static_cast<size_t>(kThreads * kMany));
  EXPECT_EQ(lowerings.List().size(), static_cast<size_t>(kThreads * kMany));
}

TEST(ConcurrentUse, ProgramsArePartitionedAndRunWhileOthersRegister) {
  Registry registry;
  ASSERT_TRUE(registry.rules.RegisterRule("twice", {.rule = "b d -> b d"}).ok());
  ASSERT_TRUE(registry.handlers.Register(Twice("twice")).ok());
  RunOptions options;
  options.partition.targets = &registry.rules;
  options.handlers = &registry.handlers;
  std::vector<float> numbers(24);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i) - 7;
  const Tensor x = Tensor::From<float>(ElementType::kF32, {4, 6}, numbers);
  std::vector<float> thrice = numbers;
  for (float& v : thrice) v *= 3;
  const Tensor want = Tensor::From<float>(ElementType::kF32, {4, 6}, thrice);
  absl::StatusOr<Module> module = Program();
  ASSERT_TRUE(module.ok()) << module.status();
  const auto once = Compile(*std::move(module), options);
  ASSERT_TRUE(once.ok()) << once.status();
  OnThreads([&](int t) {
    for (int k = 0; k < kRoundsOfPrograms; ++k) {
      EXPECT_TRUE(registry.rules.RegisterRule(Name(t, k), {.rule = "b d -> b d"}).ok());
      EXPECT_TRUE(registry.handlers.Register(Twice(Name(t, k))).ok());
      const auto shared = once->Execute({x});
      ASSERT_TRUE(shared.ok()) << shared.status();
      EXPECT_TRUE(BitwiseEqual((*shared)[0], want));
      absl::StatusOr<Module> mine = Program();
      ASSERT_TRUE(mine.ok()) << mine.status();
      const auto program = Partition(*std::move(mine), options.partition);
      ASSERT_TRUE(program.ok()) << program.status();
      const auto got = RunPartitioned(**program, {x}, options, nullptr);
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_TRUE(BitwiseEqual((*got)[0], want));
      EXPECT_EQ(PrintModule((*program)->local.module),
                PrintModule(once->partitioned()->local.module));
    }
  });
}

TEST(ConcurrentUse, TheRegistryOfTheProcessGivesStatesThatDoNotChange) {
  SharedRegistry shared;
  OnThreads([&](int t) {
    for (int k = 0; k < kRoundsOfPrograms; ++k) {
      const auto before = shared.Snapshot();
      EXPECT_EQ(before->rules.Find(Name(t, k), ""), nullptr);
      EXPECT_TRUE(shared
                      .Change([&](Registry& r) {
                        return r.rules.RegisterRule(Name(t, k), {.rule = "b d -> b d"});
                      })
                      .ok());
      EXPECT_EQ(before->rules.Find(Name(t, k), ""), nullptr);
      EXPECT_NE(shared.Snapshot()->rules.Find(Name(t, k), ""), nullptr);
    }
  });
}

}  // namespace
}  // namespace shardcall
