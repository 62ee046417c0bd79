// SPDX-License-Identifier: Apache-2.0
// nccl_allreduce on threads that are devices; over MPI it is
// tests/differential/mpi_same_bytes.py that runs it.
#include <functional>
#include <thread>

#include "shardcall/collectives/in_process/in_process.h"
#include "tests/kernels/kernel_test_util.h"

namespace shardcall {
namespace {

constexpr ElementType kS32 = ElementType::kS32;
constexpr ElementType kF32 = ElementType::kF32;

// What the handler says on each of `size` devices whose x is {10 rank + 1, rank}.
std::vector<absl::Status> OnDevices(int size, absl::string_view attributes,
                                    std::vector<std::vector<int32_t>>* results) {
  HandlerRegistry registry;
  SHARDCALL_CHECK(RegisterBuiltinHandlers(registry).ok());
  const HandlerEntry* entry = *registry.Find("nccl_allreduce", "Host");
  const AttributeMapView map = *AttributeMapView::Parse(attributes);
  InProcessWorld world(size, absl::Seconds(20));
  std::vector<absl::Status> statuses(size);
  results->assign(size, {0, 0});
  std::vector<std::thread> devices;
  for (int r = 0; r < size; ++r) {
    devices.emplace_back([&, r] {
      auto communicator = world.Rank(r);
      int32_t x[] = {10 * r + 1, r};
      const BufferView in{kS32, {2}, x}, out{kS32, {2}, (*results)[r].data()};
      HandlerContext context;
      context.target = "nccl_allreduce";
      context.instruction = "%reduce";
      context.attributes = &map;
      context.device_ordinal = r;
      context.num_devices = size;
      context.communicator = communicator.get();
      statuses[r] = entry->host(context, {in}, {out});
    });
  }
  for (std::thread& device : devices) device.join();
  return statuses;
}

void ExpectReduced(int size, absl::string_view attributes,
                   const std::function<std::vector<int32_t>(int rank)>& want) {
  std::vector<std::vector<int32_t>> results;
  const std::vector<absl::Status> statuses = OnDevices(size, attributes, &results);
  for (int r = 0; r < size; ++r) {
    ASSERT_TRUE(statuses[r].ok()) << statuses[r];
    EXPECT_EQ(results[r], want(r)) << attributes << " on " << r;
  }
}

TEST(NcclAllReduce, SumsOverAllDevices) {
  for (int size : {1, 2, 3, 8}) {
    ExpectReduced(size, "{}", [&](int) {
      const int sum = size * (size - 1) / 2;
      return std::vector<int32_t>{10 * sum + size, sum};
    });
  }
}

TEST(NcclAllReduce, ReducesWithinItsGroup) {
  const std::string groups =
      "replica_groups = dense<[[0, 2], [3, 1]]> : tensor<2x2xi64>, group_size = 2 : i64";
  ExpectReduced(4, "{" + groups + "}", [](int r) {
    const int sum = r % 2 == 0 ? 2 : 4;
    return std::vector<int32_t>{10 * sum + 2, sum};
  });
  ExpectReduced(4, "{op = \"max\", " + groups + "}", [](int r) {
    return r % 2 == 0 ? std::vector<int32_t>{21, 2} : std::vector<int32_t>{31, 3};
  });
  ExpectReduced(4, "{op = \"min\", " + groups + "}", [](int r) {
    return r % 2 == 0 ? std::vector<int32_t>{1, 0} : std::vector<int32_t>{11, 1};
  });
  ExpectReduced(4, "{op = \"product\", " + groups + "}", [](int r) {
    return r % 2 == 0 ? std::vector<int32_t>{21, 0} : std::vector<int32_t>{11 * 31, 3};
  });
}

TEST(NcclAllReduce, BadGroupsAreRefusedByEveryDevice) {
  std::vector<std::vector<int32_t>> results;
  for (const auto& [attributes, part] : std::vector<std::pair<std::string, std::string>>{
           {"{op = \"mean\"}", "\"mean\""},
           {"{op = 1 : i64}", "op"},
           {"{axis = \"data\"}", "axis"},
           {"{group_size = 3 : i64}", "a divisor of 4"},
           {"{group_size = 0 : i64}", "a divisor of 4"},
           {"{replica_groups = dense<[0, 1, 2, 4]> : tensor<4xi64>}", "at most once"},
           {"{replica_groups = dense<[0, 1, 2, 2]> : tensor<4xi64>}", "at most once"},
           {"{replica_groups = dense<[0, -1]> : tensor<2xi64>}", "at most once"}}) {
    for (const absl::Status& status : OnDevices(4, attributes, &results)) {
      ExpectError(status, "E131", {part, "%reduce"});
    }
  }
}

TEST(NcclAllReduce, ADeviceOfNoGroupIsTold) {
  std::vector<std::vector<int32_t>> results;
  const auto statuses = OnDevices(3, "{replica_groups = dense<[0, 2]> : tensor<2xi64>}", &results);
  EXPECT_TRUE(statuses[0].ok() && statuses[2].ok());
  ExpectError(statuses[1], "E131", {"a group with device 1"});
}

TEST(NcclAllReduce, OneDeviceHasItsOwn) {
  Tensor x(kF32, {3});
  x.values = {1, -2, 3};
  std::vector<Tensor> y = {Tensor(kF32, {3})};
  ASSERT_TRUE(CallKernel("nccl_allreduce", {x}, &y).ok());
  EXPECT_EQ(y[0].values, x.values);
  y = {Tensor(kF32, {2})};
  ExpectError(CallKernel("nccl_allreduce", {x}, &y), "E133", {"y"});
  y = {Tensor(kS32, {3})};
  ExpectError(CallKernel("nccl_allreduce", {x}, &y), "E134", {"y"});
  ExpectError(CallKernel("nccl_allreduce", {x, x}, &y), "E132", {});
}

}  // namespace
}  // namespace shardcall
