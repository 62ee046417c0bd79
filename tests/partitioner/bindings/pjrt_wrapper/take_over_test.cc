// SPDX-License-Identifier: Apache-2.0
// A framework's programs on their way through the wrapper, over a backend of the test's.
#include "shardcall/partitioner/bindings/pjrt_wrapper/take_over.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/bindings/pjrt/compile_options.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_client.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/own_errors.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/wrapper_settings.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/sharding/base/status.h"
#include "tests/partitioner/bindings/pjrt/fake_backend.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

using ::testing::HasSubstr;

constexpr absl::string_view kRows = R"(HloModule rows, num_partitions=4
ENTRY e {
  x = f32[8,6] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT y = f32[8,6] add(x, x), sharding={devices=[4,1]<=[4]}
}
)";

class TakeOverTest : public testing::Test {
 protected:
  TakeOverTest() {
    backend_.devices = 8;
    plugin_ = *Plugin::FromApi(backend_.api(), "fake.so");
    client_ = *Client::Create(plugin_, 4);
    SHARDCALL_CHECK(FillRegistry({}, &registry_).ok());
    converter_ = std::make_unique<Converter>(plugin_.get(), "cpu", client_->handle(), nullptr);
  }

  static std::string Proto(absl::string_view text) {
    const auto module = ParseModule(std::make_shared<const std::string>(text),
                                    std::make_shared<Context>(), "t.hlo");
    EXPECT_TRUE(module.ok()) << module.status();
    return *WriteModuleProto(*module);
  }

  absl::StatusOr<absl::variant<PassedThrough, Replacement>> Take(absl::string_view format,
                                                                 absl::string_view code,
                                                                 absl::string_view options) {
    return TakeOver({.format = format, .code = code, .options = options},
                    {.plugin = plugin_.get(),
                     .converter = converter_.get(),
                     .platform = "cpu",
                     .registry = &registry_,
                     .allow_replicate = {},
                     .framework_handlers = {}});
  }
  std::string PassedThroughFor(absl::string_view format, absl::string_view options) {
    const auto taken = Take(format, Proto(kRows), options);
    if (!taken.ok()) return std::string(taken.status().message());
    const auto* passed = absl::get_if<PassedThrough>(&*taken);
    return passed == nullptr ? "taken over" : passed->why;
  }
  // The per-device module that takes the program's place, as text.
  std::string Local(absl::string_view text, absl::string_view options) {
    const auto taken = Take("hlo", Proto(text), options);
    if (!taken.ok()) return std::string(taken.status().message());
    replaced_ = absl::get<Replacement>(*taken).options;
    const auto module =
        ReadModuleProto(absl::get<Replacement>(*taken).code, std::make_shared<Context>(), "local");
    return module.ok() ? PrintModule(*module) : std::string(module.status().message());
  }

  FakeBackend backend_;
  std::shared_ptr<const Plugin> plugin_;
  std::shared_ptr<const Client> client_;
  std::unique_ptr<Converter> converter_;
  Registry registry_;
  std::string replaced_;
};

// {3: {field: 1}}: appended, it overrides what stands before, since protobuf merges.
std::string With(std::string options, char field, char value = 1) {
  return options + std::string({0x1a, 0x02, static_cast<char>(field << 3), value});
}

TEST_F(TakeOverTest, AProgramForSeveralPartitionsIsPartitioned) {
  const std::string local = Local(kRows, PlainOptions(4, /*shardy=*/false, /*spmd=*/true));
  EXPECT_THAT(local, HasSubstr("f32[2,6]"));
  // XLA must not partition again, and nothing is open.
  EXPECT_THAT(replaced_, HasSubstr("sharding-propagation,shardy-xla,spmd-partitioning"));
  const auto options = ReadOptions(replaced_);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->spmd);
  EXPECT_EQ(options->num_partitions, 4);
  EXPECT_TRUE(options->open_results.empty() && options->open_parameters.empty());
}

TEST_F(TakeOverTest, OtherProgramsGoOnAndSayWhy) {
  EXPECT_EQ(PassedThroughFor("hlo", PlainOptions(1, false, true)), "");
  const std::string four = PlainOptions(4, false, true);
  EXPECT_EQ(PassedThroughFor("hlo", With(four, 4, 2)), "it has 2 replicas");
  EXPECT_EQ(PassedThroughFor("hlo", With(four, 7)), "XLA is to choose its shardings");
  EXPECT_EQ(PassedThroughFor("hlo", PlainOptions(4, false, false)), "it is not to be partitioned");
  EXPECT_EQ(PassedThroughFor("hlo_with_config", four),
            "it comes in the format \"hlo_with_config\"");
  EXPECT_EQ(PassedThroughFor("hlo", four), "taken over");
}

TEST_F(TakeOverTest, OpenResultsAreShardedWherePartsAreEqual) {
  constexpr absl::string_view kOpen = R"(HloModule open, num_partitions=4
ENTRY e {
  x = f32[8,6] parameter(0), sharding={devices=[4,1]<=[4]}
  y = f32[8,6] add(x, x)
  z = f32[6,6] slice(y), slice={[0:6], [0:6]}
  ROOT r = (f32[8,6], f32[6,6]) tuple(y, z)
}
)";
  std::string options = PlainOptions(4, false, true);
  const std::string closed = Local(kOpen, options);
  EXPECT_THAT(closed, HasSubstr("->(f32[8,6]{1,0}, f32[6,6]{1,0})"));
  options = With(std::move(options), 12);
  EXPECT_THAT(Local(kOpen, options), HasSubstr("->(f32[2,6]{1,0}, f32[6,6]{1,0})"));
}

TEST_F(TakeOverTest, ShardingsOfParametersAndResultsStandInTheModule) {
  const auto taken = Take("hlo", Proto(kRows), PlainOptions(4, false, true));
  ASSERT_TRUE(taken.ok()) << taken.status();
  // HloModuleProto's fields 12 and 14, an OpSharding {3: tiled} of dimensions [4, 1] each.
  const std::string& code = absl::get<Replacement>(*taken).code;
  EXPECT_THAT(code, HasSubstr(std::string("\x08\x03\x1a\x02\x04\x01", 6)));
}

TEST_F(TakeOverTest, WhatCannotBePartitionedIsOurError) {
  constexpr absl::string_view kUnknown = R"(HloModule no_rule, num_partitions=4
ENTRY e {
  x = f32[8,6] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT y = f32[8,6] custom-call(x), custom_call_target="nobody"
}
)";
  const std::string options = PlainOptions(4, false, true);
  EXPECT_THAT(Local(kUnknown, options), HasSubstr("E101"));
  EXPECT_EQ(DiagnosticCode(Take("hlo", "no message", options).status()), "E030");
  EXPECT_EQ(DiagnosticCode(Take("hlo", Proto(kRows), "\xff\xff").status()), "E339");
}

TEST_F(TakeOverTest, APluginThatDoesNotConvertIsToldAndLeavesNothing) {
  const std::string options = PlainOptions(4, true, true);
  EXPECT_EQ(DiagnosticCode(Take("mlir", "module {}", options).status()), "E340");
  backend_.fails = abi::Function::kClientCompile;
  const absl::Status refused = Take("mlir", "module {}", options).status();
  EXPECT_EQ(DiagnosticCode(refused), "E334");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("says the backend"));
  backend_.fails = absl::nullopt;
  EXPECT_EQ(backend_.executables, 0);
  EXPECT_EQ(backend_.errors, 0);
}

TEST(OwnErrors, AreToldFromOthersByTheirAddress) {
  OwnErrors errors;
  EXPECT_EQ(errors.Make(absl::OkStatus()), nullptr);
  abi::Error* const own = errors.Make(absl::NotFoundError("E000 it is not there"));
  abi::Error* const other = reinterpret_cast<abi::Error*>(&errors);
  ASSERT_NE(errors.Find(own), nullptr);
  EXPECT_EQ(errors.Find(own)->code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(errors.Find(other), nullptr);
  EXPECT_FALSE(errors.Destroy(other));
  EXPECT_TRUE(errors.Destroy(own));
  EXPECT_FALSE(errors.Destroy(own));
  EXPECT_EQ(errors.Find(nullptr), nullptr);
}

TEST(RulesVersion, TellsSettingsApartThatChangeWhatAProgramBecomes) {
  WrapperSettings settings;
  const std::string plain = RulesVersion(settings);
  settings.report = "somewhere";
  EXPECT_EQ(RulesVersion(settings), plain);
  settings.allow_replicate = {"a", "b"};
  const std::string two = RulesVersion(settings);
  settings.allow_replicate = {"ab"};
  EXPECT_NE(two, plain);
  EXPECT_NE(RulesVersion(settings), two);
}

}  // namespace
}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
