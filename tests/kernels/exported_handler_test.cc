// SPDX-License-Identifier: Apache-2.0
// Handlers that another runtime calls: here ours is that other one, too, so that what
// goes out by exported_handler.h comes in by typed_handler.h.
#include "shardcall/kernels/ffi/exported_handler.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "absl/strings/match.h"
#include "shardcall/collectives/in_process/in_process.h"
#include "shardcall/kernels/ffi/staged_call.h"
#include "tests/kernels/fake_device.h"
#include "tests/kernels/ffi_test_util.h"

namespace shardcall {
namespace {

HandlerEntry Entry(std::string target, HostHandler host) {
  HandlerEntry entry;
  entry.target = std::move(target);
  entry.source = "test";
  entry.host = std::move(host);
  return entry;
}

HandlerEntry ThroughTheAbi(const HandlerEntry& entry, const ExportedCall& call = {}) {
  const auto exported = ExportHandler(entry, call);
  EXPECT_TRUE(exported.ok()) << exported.status();
  abi::HandlerBundle bundle = {};
  bundle.execute = exported->function;
  auto typed = MakeTypedEntry(entry.target, "Host", bundle, "exported");
  EXPECT_TRUE(typed.ok()) << typed.status();
  return *std::move(typed);
}

TEST(ExportedHandlerTest, OperandsResultsAndAttributesComeThroughAsTheyAre) {
  std::vector<float> x = {1, 2, 3}, y(3);
  Attribute::Dictionary seen;
  const HandlerEntry entry =
      ThroughTheAbi(Entry("adds",
                          [&](const HandlerContext& context, absl::Span<const BufferView> operands,
                              absl::Span<const BufferView> results) {
                            seen = context.attribute_map().entries();
                            EXPECT_EQ(context.target, "adds");
                            EXPECT_EQ(context.num_devices, 4);
                            EXPECT_EQ(context.communicator, nullptr);
                            EXPECT_EQ(operands[0].ToString(), "f32[3]");
                            for (int k = 0; k < 3; ++k) {
                              static_cast<float*>(results[0].data)[k] =
                                  static_cast<const float*>(operands[0].data)[k] + 1;
                            }
                            return absl::OkStatus();
                          }),
                    {.num_devices = 4, .backend_config = {}});
  const std::string text =
      "{a = -3 : i8, b = 7 : ui16, c = true, d = 1.500000e+00 : bf16, e = 2.500000e+00 : f64,"
      " f = array<i64: -1, 2>, g = array<f32: 0.5, -2.0>, h = \"words\", i = {j = -9 : i64}}";
  TestCall call(text);
  ASSERT_TRUE(call.Run(entry, {F32(x)}, {F32(y)}).ok());
  EXPECT_EQ(y, (std::vector<float>{2, 3, 4}));
  const AttributeMapView map(std::move(seen));
  EXPECT_EQ(*map.GetInt("a", 0), -3);
  EXPECT_EQ(*map.GetInt("b", 0), 7);
  EXPECT_TRUE(*map.GetBool("c", false));
  EXPECT_EQ(*map.GetFloat("d", 0), 1.5);
  EXPECT_EQ(*map.GetFloat("e", 0), 2.5);
  EXPECT_EQ(*map.GetInts("f", {}), (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(*map.GetString("h", ""), "words");
  const auto* floats = absl::get_if<AttributeArray>(&map.Find("g")->value);
  ASSERT_NE(floats, nullptr);
  EXPECT_EQ(floats->floats, (std::vector<double>{0.5, -2}));
  const auto* nested = absl::get_if<Attribute::Dictionary>(&map.Find("i")->value);
  ASSERT_NE(nested, nullptr);
  EXPECT_EQ(*AttributeMapView(*nested).GetInt("j", 0), -9);
}

// Numbers devices backwards, and has a communicator with nobody.
class Backwards : public SiteDevices {
 public:
  explicit Backwards(Communicator* communicator) : communicator_(communicator) {}
  absl::StatusOr<Device> Enter(int ordinal, int64_t run_id) override {
    if (run_id != 7) return absl::NotFoundError("no such run");
    return Device{3 - ordinal, communicator_, nullptr};
  }

 private:
  Communicator* const communicator_;
};

TEST(ExportedHandlerTest, ACallWithASiteHasItsDeviceAndItsCommunicator) {
  InProcessWorld world(1, absl::Seconds(5));
  const std::unique_ptr<Communicator> communicator = world.Rank(0);
  AddExportedSite({.number = 42,
                   .instruction = "there",
                   .num_devices = 4,
                   .mesh = nullptr,
                   .devices = std::make_shared<Backwards>(communicator.get())});
  const HandlerEntry entry = ThroughTheAbi(
      Entry("sited",
            [&](const HandlerContext& context, absl::Span<const BufferView>,
                absl::Span<const BufferView>) -> absl::Status {
              EXPECT_EQ(context.attribute_map().entries().size(), 1u);  // without its site
              EXPECT_EQ(context.instruction, "there");
              EXPECT_EQ(context.num_devices, 4);
              EXPECT_EQ(context.device_ordinal, 2);
              EXPECT_EQ(context.communicator, communicator.get());
              if (*context.attribute_map().GetBool("fails", false))
                return absl::InternalError("no");
              return context.communicator->Barrier({0}, {"%there"});
            }));
  for (const bool fails : {false, true}) {
    TestCall call(fails ? "{fails = true, shardcall.site = 42 : i64}"
                        : "{fails = false, shardcall.site = 42 : i64}");
    call.context.device_ordinal = 1;
    call.context.run_id = 7;
    EXPECT_EQ(call.Run(entry, {}, {}).ok(), !fails);
  }
  // The others do not wait for a device that failed.
  EXPECT_TRUE(absl::IsAborted(communicator->Barrier({0}, {"%later"})));
  TestCall other_run("{fails = false, shardcall.site = 42 : i64}");
  EXPECT_FALSE(other_run.Run(entry, {}, {}).ok());
  TestCall unknown("{fails = false, shardcall.site = 43 : i64}");
  unknown.context.run_id = 7;
  const absl::Status status = unknown.Run(entry, {}, {});
  EXPECT_TRUE(absl::StrContains(status.message(), "E312")) << status;
}

// An entry for CUDA, whose frames have the fake device's stream and memory.
HandlerEntry OnDevice(HostHandler handler) {
  HandlerEntry entry = Entry("staged", std::move(handler));
  entry.platform = "CUDA";
  ExportedCall call;
  call.opener = [](int, void* stream) -> absl::StatusOr<std::shared_ptr<HandlerDevice>> {
    return std::shared_ptr<HandlerDevice>(std::shared_ptr<void>(), &FakeDevice::Of(stream));
  };
  const auto exported = ExportHandler(entry, call);
  EXPECT_TRUE(exported.ok()) << exported.status();
  abi::HandlerBundle bundle = {};
  bundle.execute = exported->function;
  auto typed = MakeTypedEntry(entry.target, "CUDA", bundle, "exported");
  EXPECT_TRUE(typed.ok()) << typed.status();
  return *std::move(typed);
}

TEST(ExportedHandlerTest, AHandlerForADeviceHasTheStreamAndTheMemoryOfItsFrame) {
  const auto fake = std::make_shared<FakeDevice>();
  std::vector<void*> kept;
  const HandlerEntry entry =
      OnDevice([&](const HandlerContext& context, absl::Span<const BufferView> operands,
                   absl::Span<const BufferView> results) -> absl::Status {
        HandlerDevice& device = *context.device;
        EXPECT_EQ(device.stream(), fake.get());
        EXPECT_TRUE(FakeDevice::IsDevicePointer(operands[0].data));
        const int64_t bytes = operands[0].byte_size();
        SHARDCALL_ASSIGN_OR_RETURN(void* const scratch, device.Allocate(bytes));
        EXPECT_TRUE(FakeDevice::IsDevicePointer(scratch));
        EXPECT_EQ(reinterpret_cast<uintptr_t>(scratch) % 256, 0u);
        SHARDCALL_RETURN_IF_ERROR(device.CopyWithin(scratch, operands[0].data, bytes));
        SHARDCALL_RETURN_IF_ERROR(device.CopyWithin(results[0].data, scratch, bytes));
        device.Free(scratch);
        SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<void> state, device.kept().GetOrMake(&kept, [] {
          return absl::StatusOr<std::shared_ptr<void>>(std::make_shared<int>(1));
        }));
        kept.push_back(state.get());
        return absl::OkStatus();
      });
  for (int call = 0; call < 2; ++call) {
    std::vector<float> x = {1, 2, 3}, y(3);
    TestCall made;
    ASSERT_TRUE(CallStaged(entry, fake, made.context, {F32(x)}, {F32(y)}).ok());
    EXPECT_EQ(y, x);
  }
  // The scratch memory of all calls went back, and is one piece.
  EXPECT_EQ(fake->allocations(), 3);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0], kept[1]);
}

TEST(ExportedHandlerTest, AHandlerForADeviceWithoutAStreamOrWithPackedElementsIsAnError) {
  const HandlerEntry entry =
      OnDevice([](const HandlerContext&, absl::Span<const BufferView>,
                  absl::Span<const BufferView>) { return absl::OkStatus(); });
  std::vector<float> x(3);
  TestCall call;
  const absl::Status on_host = call.Run(entry, {F32(x)}, {F32(x)});
  EXPECT_TRUE(absl::StrContains(on_host.message(), "E312")) << on_host;
  const auto fake = std::make_shared<FakeDevice>();
  std::vector<char> packed(3);
  const absl::Status four_bits =
      CallStaged(entry, fake, call.context, {{ElementType::kS4, {3}, packed.data(), true}}, {});
  EXPECT_TRUE(absl::StrContains(four_bits.message(), "E140")) << four_bits;
}

TEST(ExportedHandlerTest, ErrorsAndThrowsAreErrorsOfTheCall) {
  TestCall call;
  const absl::Status failed = call.Run(
      ThroughTheAbi(Entry(
          "fails", [](const HandlerContext&, absl::Span<const BufferView>,
                      absl::Span<const BufferView>) { return absl::OutOfRangeError("too far"); })),
      {}, {});
  EXPECT_TRUE(absl::IsOutOfRange(failed)) << failed;
  EXPECT_TRUE(absl::StrContains(failed.message(), "too far")) << failed;
  const absl::Status threw =
      call.Run(ThroughTheAbi(Entry("throws",
                                   [](const HandlerContext&, absl::Span<const BufferView>,
                                      absl::Span<const BufferView>) -> absl::Status {
                                     throw std::runtime_error("by itself");
                                   })),
               {}, {});
  EXPECT_TRUE(absl::StrContains(threw.message(), "by itself")) << threw;
}

TEST(ExportedHandlerTest, ATargetHasOneFunctionForEachTextOfUntypedCalls) {
  const auto says = [](std::string* out) {
    return [out](const HandlerContext& context, absl::Span<const BufferView>,
                 absl::Span<const BufferView>) {
      *out = absl::StrCat(context.api_version, " ", context.backend_config);
      return absl::OkStatus();
    };
  };
  std::string first, second;
  const auto function = [&](const HandlerEntry& entry, const ExportedCall& call) {
    return ExportHandler(entry, call)->function;
  };
  const HandlerEntry entry = Entry("untyped", says(&first));
  EXPECT_EQ(function(entry, {}), function(entry, {}));
  EXPECT_NE(function(entry, {.api_version = 2, .backend_config = "a"}),
            function(entry, {.api_version = 2, .backend_config = "b"}));
  TestCall call;
  ASSERT_TRUE(
      call.Run(ThroughTheAbi(entry, {.api_version = 2, .backend_config = "b"}), {}, {}).ok());
  EXPECT_EQ(first, "2 b");
  // The entry that was exported last is called.
  const HandlerEntry old = ThroughTheAbi(entry);
  ThroughTheAbi(Entry("untyped", says(&second)));
  ASSERT_TRUE(call.Run(old, {}, {}).ok());
  EXPECT_EQ(second, "4 ");
}

}  // namespace
}  // namespace shardcall
