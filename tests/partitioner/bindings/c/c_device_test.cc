// SPDX-License-Identifier: Apache-2.0
// Handlers in C with mesh and collectives, and calls of a target whose attributes are
// those of a shard.
#include <string>

#include "absl/strings/substitute.h"
#include "shardcall/partitioner/bindings/c/plugin.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CDevice : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Status status =
        LoadPlugin(SHARDCALL_PLUGIN_DIR "/libdevice_plugin.so", &targets_, &handlers_);
    ASSERT_TRUE(status.ok()) << status;
    options_.targets = &targets_;
    options_.handlers = &handlers_;
  }
  TargetRegistry targets_;
  HandlerRegistry handlers_;
  TextOptions options_;
};

// A manual region over axes data and model; $0 is the target.
constexpr char kManual[] =
    R"(HloModule shard_map, num_partitions=4, frontend_attributes={xla.sdy.meshes="{mesh = #sdy.mesh<[\"data\"=2, \"model\"=2]>}"}
ENTRY main {
  x = f32[4,6] parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"data\"}, {\"model\"}]>"}
  local = f32[2,3] custom-call(x), custom_call_target="xla.sdy.GlobalToLocalShape", frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"data\"}, {\"model\"}]>]>", xla.sdy.manual_axes="#sdy<manual_axes{\"data\", \"model\"}>"}
  sum = f32[2,3] custom-call(local), custom_call_target="$0", api_version=API_VERSION_TYPED_FFI
  ROOT y = f32[4,6] custom-call(sum), custom_call_target="xla.sdy.LocalToGlobalShape", frontend_attributes={xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\"data\"}, {\"model\"}]>]>", xla.sdy.manual_axes="#sdy<manual_axes{\"data\", \"model\"}>"}
})";

TEST_F(CDevice, AHandlerHasMeshAndCollectives) {
  const auto program = PartitionText(absl::Substitute(kManual, "sum_over_c"), options_);
  ASSERT_TRUE(program.ok()) << program.status();
  std::vector<float> x(24), want(24);
  for (int k = 0; k < 24; ++k) x[k] = static_cast<float>(k);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 6; ++j) {
      want[i * 6 + j] = x[i * 6 + j % 3] + x[i * 6 + j % 3 + 3] + 100 * (i / 2);
    }
  }
  const RunOptions run = ToRunOptions(options_);
  const auto out =
      RunPartitioned(**program, {Tensor::From(ElementType::kF32, {4, 6}, x)}, run, nullptr);
  ASSERT_TRUE(out.ok()) << out.status();
  const float* y = reinterpret_cast<const float*>((*out)[0].data());
  EXPECT_EQ(std::vector<float>(y, y + 24), want);
}

TEST_F(CDevice, WhatTheDeviceSaysOfAFailureIsTheReason) {
  const auto program = PartitionText(absl::Substitute(kManual, "fails_by_device"), options_);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto out = RunPartitioned(
      **program, {Tensor::From(ElementType::kF32, {4, 6}, std::vector<float>(24, 1))},
      ToRunOptions(options_), nullptr);
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(std::string(out.status().message()),
              HasSubstr("a group lists devices of the program"));
}

// Two calls alike, even and uneven shards: each device's call says its own rows.
std::string Counted(const std::string& target, int rows) {
  return absl::Substitute(R"(HloModule m, num_partitions=4
ENTRY e { x = f32[$1,6] parameter(0), sharding={devices=[4,1]<=[4]}
  a = f32[$1,6] custom-call(x), custom_call_target="$0", api_version=API_VERSION_TYPED_FFI, sharding={devices=[4,1]<=[4]}, backend_config={rows = $1 : i64}
  ROOT b = f32[$1,6] custom-call(a), custom_call_target="$0", api_version=API_VERSION_TYPED_FFI, backend_config={rows = $1 : i64}
})",
                          target, rows);
}

TEST_F(CDevice, ACallOfTheTargetMayHaveAttributesOfTheShard) {
  for (int rows : {8, 12, 7}) {
    EXPECT_EQ(WhyNotEqual(Counted("counted", rows), options_), "") << rows;
  }
  const std::string local = LocalText(**PartitionText(Counted("counted", 12), options_));
  EXPECT_THAT(local, AllOf(HasSubstr("backend_config={rows = 3 : i64}"),
                           testing::Not(HasSubstr("rows = 12"))));
}

TEST_F(CDevice, AttributesOfATypedCallAreADictionary) {
  EXPECT_THAT(PartitionText(Counted("counted_wrong", 8), options_),
              Fails("E120", "backend_config that is no dictionary"));
}

}  // namespace
}  // namespace shardcall
