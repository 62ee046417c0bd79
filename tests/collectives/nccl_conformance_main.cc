// SPDX-License-Identifier: Apache-2.0
// The conformance suite over NCCL on this process's rank, host buffers; then the
// same collectives on device buffers. Alone, or under mpirun with the ranks'
// GPUs, or several ranks on one GPU in the environment of run_nccl.sh.
//   nccl_conformance [--time]   also times device buffers beside raw NCCL calls
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "shardcall/collectives/mpi/mpi.h"
#include "shardcall/collectives/nccl/nccl.h"
#include "shardcall/sharding/base/status.h"
#include "tests/collectives/conformance.h"
#include "tests/collectives/reference.h"

namespace shardcall::testing {
namespace {

Communicator* communicator = nullptr;

class Nccl : public ::testing::TestWithParam<size_t> {};

TEST_P(Nccl, Conforms) { ConformanceCases()[GetParam()].body(*communicator); }

INSTANTIATE_TEST_SUITE_P(AllCases, Nccl, ::testing::Range<size_t>(0, ConformanceCases().size()),
                         [](const auto& info) { return ConformanceCases()[info.param].name; });

std::vector<int> Everyone() {
  std::vector<int> all(communicator->size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Device memory of floats, freed at the end.
struct DeviceFloats {
  explicit DeviceFloats(const std::vector<float>& values) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data), values.size() * sizeof(float)),
              cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data, values.data(), values.size() * sizeof(float), cudaMemcpyDefault),
              cudaSuccess);
  }
  ~DeviceFloats() { cudaFree(data); }
  std::vector<float> Values(size_t count) const {
    std::vector<float> values(count);
    EXPECT_EQ(cudaMemcpy(values.data(), data, count * sizeof(float), cudaMemcpyDefault),
              cudaSuccess);
    return values;
  }
  float* data = nullptr;
};

TEST(NcclDevice, TakesDevicePointersInAndOutOfPlace) {
  Communicator& c = *communicator;
  const int n = c.size();
  for (int64_t count : {1, 1000, 1 << 20}) {
    std::vector<float> mine(count), sum(count, 0.0f);
    for (int64_t i = 0; i < count; ++i) {
      mine[i] = static_cast<float>((c.rank() + i) % 7);
      for (int r = 0; r < n; ++r) sum[i] += static_cast<float>((r + i) % 7);
    }
    const DeviceFloats in(mine), out(std::vector<float>(count, -1.0f));
    for (void* to : {static_cast<void*>(out.data), static_cast<void*>(in.data)}) {
      const absl::Status status = c.AllReduce(Everyone(), ReduceKind::kSum, ElementType::kF32,
                                              in.data, to, count, {"%device"});
      ASSERT_TRUE(status.ok()) << status;
    }
    EXPECT_EQ(out.Values(count), sum);
    EXPECT_EQ(in.Values(count), sum);
    const DeviceFloats gathered{std::vector<float>(n * count, -1.0f)};
    ASSERT_TRUE(
        c.AllGather(Everyone(), in.data, gathered.data, count * sizeof(float), {"%ag"}).ok());
    std::vector<float> expected;
    for (int r = 0; r < n; ++r) expected.insert(expected.end(), sum.begin(), sum.end());
    EXPECT_EQ(gathered.Values(n * count), expected);
    // From the first of the blocks that it writes.
    std::vector<float> blocks(n * count, -1.0f);
    std::copy(mine.begin(), mine.end(), blocks.begin());
    const DeviceFloats around(blocks);
    ASSERT_TRUE(
        c.AllGather(Everyone(), around.data, around.data, count * sizeof(float), {"%ag"}).ok());
    expected.clear();
    for (int r = 0; r < n; ++r) {
      for (int64_t i = 0; i < count; ++i) expected.push_back(static_cast<float>((r + i) % 7));
    }
    EXPECT_EQ(around.Values(n * count), expected);
  }
}

TEST(NcclGroups, PreparedOnesAndOthersGiveTheSame) {
  Communicator& c = *communicator;
  const int n = c.size();
  // Ranks of one parity, from the last to the first; then those in other orders.
  std::vector<std::vector<int>> groups(2);
  for (int r = n; r-- > 0;) groups[r % 2].push_back(r);
  if (n < 2) groups.pop_back();
  for (int round = 0; round < 2; ++round) {  // again is nothing
    const absl::Status status = c.PrepareGroups(groups);
    ASSERT_TRUE(status.ok()) << status;
  }
  const std::vector<int>& prepared = groups[c.rank() % 2];
  std::vector<int> other = prepared;
  std::reverse(other.begin(), other.end());
  for (const std::vector<int>& group : {prepared, other}) {
    const int32_t mine = c.rank();
    std::vector<int32_t> all(group.size(), -1);
    const absl::Status status = c.AllGather(group, &mine, all.data(), sizeof(mine), {"%ag"});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(all, std::vector<int32_t>(group.begin(), group.end()));
  }
  const std::vector<std::vector<int>> twice = {{0}, {0}};
  EXPECT_EQ(c.PrepareGroups(twice).code(), absl::StatusCode::kInvalidArgument);
}

int RunAll() {
  SetExactData(true);
  absl::Status device = CheckNcclDevice();
  if (!device.ok()) {
    std::cerr << device.message() << std::endl;
    return 4;
  }
  std::unique_ptr<Communicator> mpi;
  NcclOptions options;
  if (LaunchedByMpi()) {
    auto connected = ConnectMpi(absl::Seconds(60));
    if (!connected.ok()) {
      std::cerr << connected.status().message() << std::endl;
      return 1;
    }
    mpi = *std::move(connected);
    options.over = mpi.get();
  }
  auto connected = ConnectNccl(absl::Seconds(60), options);
  if (!connected.ok()) {
    std::cerr << connected.status().message() << std::endl;
    return 1;
  }
  const std::unique_ptr<Communicator> owned = *std::move(connected);
  communicator = owned.get();
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (communicator->rank() != 0) delete listeners.Release(listeners.default_result_printer());
  int32_t failed = RUN_ALL_TESTS();
  const absl::Status status = communicator->AllReduce(Everyone(), ReduceKind::kMax,
                                                      ElementType::kS32, &failed, &failed, 1, {});
  return status.ok() ? failed : 1;
}

}  // namespace
}  // namespace shardcall::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return shardcall::testing::RunAll();
}
