// SPDX-License-Identifier: Apache-2.0
// The conformance suite over NCCL on this process's rank, host buffers; then the
// same collectives on device buffers. Alone, or under mpirun with the ranks'
// GPUs, or several ranks on one GPU in the environment of run_nccl.sh.
//   nccl_conformance [--time]   also times device buffers beside raw NCCL calls
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "collectives/mpi.h"
#include "collectives/nccl.h"
#include "sharding/status.h"
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
  }
}

// Milliseconds are those of the slowest rank; bandwidth is that of nccl-tests.
void Time() {
  Communicator& c = *communicator;
  const int n = c.size();
  if (c.rank() == 0) std::printf("%-12s %12s %10s %10s\n", "all-reduce", "bytes", "us", "busbw");
  for (int64_t count = 256; count <= (64 << 20); count *= 8) {
    const DeviceFloats in{std::vector<float>(count, 1.0f)};
    const DeviceFloats out{std::vector<float>(count, 0.0f)};
    double best = 1e30;
    for (int round = 0; round < 20; ++round) {
      if (!c.Barrier(Everyone(), {"%start"}).ok()) return;
      const auto start = std::chrono::steady_clock::now();
      if (!c.AllReduce(Everyone(), ReduceKind::kSum, ElementType::kF32, in.data, out.data, count,
                       {"%ar"})
               .ok()) {
        return;
      }
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
                                .count());
    }
    if (!c.AllReduce(Everyone(), ReduceKind::kMax, ElementType::kF64, &best, &best, 1, {"%max"})
             .ok()) {
      return;
    }
    const double bytes = static_cast<double>(count) * sizeof(float);
    if (c.rank() == 0) {
      std::printf("%-12s %12.0f %10.1f %10.2f\n", "", bytes, best * 1e6,
                  bytes / best / 1e9 * 2 * (n - 1) / n);
    }
  }
}

int RunAll(bool time) {
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
  if (time && failed == 0) Time();
  const absl::Status status = communicator->AllReduce(Everyone(), ReduceKind::kMax,
                                                      ElementType::kS32, &failed, &failed, 1, {});
  return status.ok() ? failed : 1;
}

}  // namespace
}  // namespace shardcall::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return shardcall::testing::RunAll(argc == 2 && std::string(argv[1]) == "--time");
}
