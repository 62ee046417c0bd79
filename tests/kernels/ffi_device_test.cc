// SPDX-License-Identifier: Apache-2.0
// The device extension: collectives, mesh and called computations for handlers of
// the typed FFI.
#include "shardcall/kernels/ffi/xla/ffi_device.h"

#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "shardcall/collectives/in_process/in_process.h"
#include "shardcall/kernels/ffi/load/library.h"
#include "shardcall/kernels/ffi/xla/ffi_types.h"
#include "tests/kernels/ffi_test_util.h"

namespace shardcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(FfiDevice, AHandlerOfOurLayoutOf04ReducesOverDevices) {
  const auto library = Library::Open(SHARDCALL_OWN_LAYOUT_PLUGIN);
  ASSERT_TRUE(library.ok()) << library.status();
  auto* type = reinterpret_cast<abi::TypeId* (*)()>((*library)->Find("OwnStateType"))();
  type->id =
      *RegisterFfiType("own.state", type->id,
                       static_cast<abi::TypeInfo*>((*library)->Find("OwnStateInfo"))->deleter);
  abi::HandlerBundle stages = {};
  stages.prepare = reinterpret_cast<abi::Handler*>((*library)->Find("OwnPrepare"));
  stages.execute = reinterpret_cast<abi::Handler*>((*library)->Find("OwnExecute"));
  const auto entry = MakeTypedEntry("t", "Host", stages, "plugin", *library);
  ASSERT_TRUE(entry.ok()) << entry.status();
  constexpr int kDevices = 3;
  InProcessWorld world(kDevices, absl::Seconds(20));
  std::vector<std::vector<float>> y(kDevices, std::vector<float>(2));
  std::vector<std::thread> threads;
  for (int d = 0; d < kDevices; ++d) {
    threads.emplace_back([&, d] {
      const auto comm = world.Rank(d);
      std::vector<float> x = {static_cast<float>(d), 10};
      TestCall call;
      call.context.device_ordinal = d;
      call.context.num_devices = kDevices;
      call.context.communicator = comm.get();
      const absl::Status status = call.Run(*entry, {F32(x)}, {F32(y[d])});
      EXPECT_TRUE(status.ok()) << status;
    });
  }
  for (std::thread& t : threads) t.join();
  for (const auto& mine : y) EXPECT_THAT(mine, ElementsAre(6, 60));
}

TEST(FfiDevice, OneDeviceAloneMeetsItself) {
  HandlerContext context;
  FfiDevice device(context);
  const Shardcall_FfiDevice* c = device.c();
  EXPECT_EQ(c->num_devices, 1);
  EXPECT_EQ(c->num_axes, 0);
  EXPECT_EQ(c->devices_along(c, "data", nullptr, 0), -1);
  float in[2] = {1, 2}, out[2] = {};
  EXPECT_EQ(c->all_reduce(c, nullptr, 0, SHARDCALL_FFI_SUM, 11, in, out, 2), 0);
  EXPECT_THAT(out, ElementsAre(1, 2));
  EXPECT_EQ(c->barrier(c, nullptr, 0), 0);
}

TEST(FfiDevice, BadArgumentsAreCodesWithAMessage) {
  HandlerContext context;
  context.instruction = "c.1";
  FfiDevice device(context);
  const Shardcall_FfiDevice* c = device.c();
  float x[2] = {};
  const int32_t other[] = {1};
  const int32_t twice[] = {0, 0};
  constexpr int32_t kInvalid = static_cast<int32_t>(absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(c->all_reduce(c, other, 1, 0, 11, x, x, 2), kInvalid);
  EXPECT_THAT(c->message(c), HasSubstr("this one among them"));
  EXPECT_EQ(c->all_reduce(c, twice, 2, 0, 11, x, x, 2), kInvalid);
  EXPECT_EQ(c->all_reduce(c, twice, -1, 0, 11, x, x, 2), kInvalid);
  EXPECT_EQ(c->all_reduce(c, nullptr, 0, 7, 11, x, x, 2), kInvalid);
  EXPECT_THAT(c->message(c), HasSubstr("no reduction 7"));
  EXPECT_EQ(c->all_reduce(c, nullptr, 0, 0, 999, x, x, 2), kInvalid);
  EXPECT_EQ(c->all_reduce(c, nullptr, 0, 0, 11, nullptr, x, 2), kInvalid);
  EXPECT_EQ(c->all_reduce(c, nullptr, 0, 0, 11, x, x, -1), kInvalid);
  EXPECT_EQ(c->all_gather(c, nullptr, 0, x, nullptr, 8), kInvalid);
  EXPECT_EQ(c->broadcast(c, nullptr, 0, 3, x, 8), kInvalid);
  EXPECT_EQ(c->send(c, 5, x, 8), kInvalid);
  EXPECT_EQ(c->recv(c, 0, x, 8), kInvalid);
  EXPECT_EQ(c->call_computation(c, 0, nullptr, 0, nullptr, 0), kInvalid);
  EXPECT_THAT(c->message(c), HasSubstr("computation 0 of 0"));
}

TEST(FfiDevice, AfterTheCallEveryFunctionFails) {
  HandlerContext context;
  FfiDevice device(context);
  device.Close();
  const Shardcall_FfiDevice* c = device.c();
  EXPECT_EQ(c->barrier(c, nullptr, 0), static_cast<int32_t>(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(c->message(c), HasSubstr("has ended"));
}

TEST(MeshView, NamesCoordinatesAndNeighbours) {
  // The axes of a 4 x 2 mesh over a device order that is reversed.
  BaseMesh mesh({4, 2}, *DeviceOrder::List({7, 6, 5, 4, 3, 2, 1, 0}));
  mesh.SetNames("mesh", {{"data", {mesh.FullAxis(0)}}, {"model", {mesh.FullAxis(1)}}});
  const std::vector<MeshAxisView> axes = MeshAxesOf(mesh, 4);  // at position 3
  ASSERT_EQ(axes.size(), 2u);
  EXPECT_EQ(axes[0].name, "data");
  EXPECT_EQ(axes[0].coordinate, 1);
  EXPECT_EQ(axes[1].size, 2);
  EXPECT_EQ(axes[1].coordinate, 1);
  EXPECT_THAT(DevicesAlong(mesh, 4, "data"), ElementsAre(6, 4, 2, 0));
  EXPECT_THAT(DevicesAlong(mesh, 4, "model"), ElementsAre(5, 4));
  EXPECT_THAT(DevicesAlong(mesh, 4, "expert"), testing::IsEmpty());
}

TEST(MeshView, AnAxisOfTwoParts) {
  // "all" is the minor axis, then the major one.
  BaseMesh mesh({2, 3}, DeviceOrder::Identity(6));
  mesh.SetNames("mesh", {{"all", {mesh.FullAxis(1), mesh.FullAxis(0)}}});
  EXPECT_EQ(MeshAxesOf(mesh, 4)[0].coordinate, 3);
  EXPECT_THAT(DevicesAlong(mesh, 4, "all"), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(MeshView, AxesOfAMeshWithoutNamesAreNumbered) {
  const BaseMesh mesh({2, 3}, DeviceOrder::Identity(6));
  ASSERT_EQ(MeshAxesOf(mesh, 4).size(), 2);
  EXPECT_EQ(MeshAxesOf(mesh, 4)[1].name, "x1");
  EXPECT_THAT(DevicesAlong(mesh, 4, "x1"), ElementsAre(3, 4, 5));
}

}  // namespace
}  // namespace shardcall
