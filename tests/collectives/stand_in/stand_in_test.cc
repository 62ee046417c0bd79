// SPDX-License-Identifier: Apache-2.0
// The sequences of calls that the NCCL backend makes, and what the stand-in for NCCL
// refuses: each misuse ends the process.
#include "tests/collectives/stand_in/stand_in.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "shardcall/collectives/nccl/nccl.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Communicator> Alone() {
  auto connected = ConnectNccl(absl::Seconds(5));
  EXPECT_TRUE(connected.ok()) << connected.status();
  return connected.ok() ? *std::move(connected) : nullptr;
}

TEST(NcclCalls, OfAnAllReduceOfHostMemoryAndOfTheEnd) {
  stand_in::TakeCalls();
  std::unique_ptr<Communicator> c = Alone();
  EXPECT_THAT(stand_in::TakeCalls(), ElementsAre("ncclCommInitRankConfig(rank 0 of 1, comm 0)"));
  std::vector<float> in = {1, 2, 3, 4}, out(4);
  ASSERT_TRUE(
      c->AllReduce({0}, ReduceKind::kSum, ElementType::kF32, in.data(), out.data(), 4, {}).ok());
  EXPECT_EQ(out, in);
  EXPECT_THAT(stand_in::TakeCalls(),
              ElementsAre("ncclCommRegister(256, comm 0)", "cudaMemcpyAsync(16)",
                          "ncclCommRegister(256, comm 0)", "ncclAllReduce(4 f32, comm 0)",
                          "cudaEventRecord", "cudaMemcpyAsync(16)", "cudaStreamSynchronize"));
  c.reset();
  EXPECT_THAT(stand_in::TakeCalls(),
              ElementsAre("ncclCommDeregister(comm 0)", "ncclCommDeregister(comm 0)",
                          "ncclCommAbort(comm 0)"));
  EXPECT_EQ(stand_in::Unfreed(), "");
}

TEST(NcclCalls, SendsAndReceivesOfAnAllToAllStandInOneGroup) {
  std::unique_ptr<Communicator> c = Alone();
  stand_in::TakeCalls();
  std::vector<char> in(8, 'x'), out(8);
  ASSERT_TRUE(c->AllToAll({0}, in.data(), out.data(), 8, {}).ok());
  EXPECT_EQ(out, in);
  const std::vector<std::string> calls = stand_in::TakeCalls();
  const auto start = std::find(calls.begin(), calls.end(), "ncclGroupStart");
  ASSERT_GE(calls.end() - start, 4);
  EXPECT_THAT(std::vector<std::string>(start, start + 4),
              ElementsAre("ncclGroupStart", HasSubstr("ncclSend(8 int8 to 0, comm "),
                          HasSubstr("ncclRecv(8 int8 from 0, comm "), "ncclGroupEnd"));
}

TEST(NcclCalls, AnAsynchronousErrorAbortsTheCommunicatorAndIsFinal) {
  std::unique_ptr<Communicator> c = Alone();
  stand_in::TakeCalls();
  stand_in::FailNextOperation(ncclSystemError);
  std::vector<float> data(4);
  for (int call = 0; call < 2; ++call) {
    const absl::Status status =
        c->AllReduce({0}, ReduceKind::kSum, ElementType::kF32, data.data(), data.data(), 4, {});
    EXPECT_EQ(DiagnosticCode(status), "E309") << status;
    const std::vector<std::string> calls = stand_in::TakeCalls();
    if (call == 0) {
      EXPECT_THAT(calls.back(), HasSubstr("ncclCommAbort"));
    } else {
      EXPECT_THAT(calls, ElementsAre());
    }
  }
  c.reset();
  EXPECT_EQ(stand_in::Unfreed(), "");
}

// A communicator of one, a stream and memory, as a caller of NCCL holds them.
class Misuse : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    ASSERT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&data), 64), cudaSuccess);
  }
  void TearDown() override {
    cudaStreamSynchronize(stream);
    cudaFree(data);
    cudaStreamDestroy(stream);
    ncclCommDestroy(comm);
  }
  ncclResult_t Reduce(void* in, size_t count) {
    return ncclAllReduce(in, data, count, ncclFloat32, ncclSum, comm, stream);
  }
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  char* data = nullptr;
};

TEST_F(Misuse, DeviceMemoryCannotBeReadByTheHost) { EXPECT_DEATH(data[0] = 1, ""); }

TEST_F(Misuse, HostMemoryAndMoreThanThereIsAreNoBuffers) {
  float host[4] = {};
  EXPECT_DEATH(Reduce(host, 4), "ncclAllReduce of host memory");
  EXPECT_DEATH(Reduce(data, 17), "of 68 bytes at byte 0 of an allocation of 64");
  EXPECT_DEATH(cudaMemcpy(data + 60, host, 8, cudaMemcpyDefault), "8 bytes at byte 60");
  EXPECT_DEATH(cudaMemcpy(data, host, 8, cudaMemcpyDeviceToDevice), "not where the kind");
}

TEST_F(Misuse, BuffersThatOverlap) { EXPECT_DEATH(Reduce(data + 4, 4), "buffers that overlap"); }

TEST_F(Misuse, GroupsThatAreNotBalanced) {
  EXPECT_DEATH(ncclGroupEnd(), "ncclGroupEnd without");
  EXPECT_DEATH(
      {
        ncclGroupStart();
        ncclCommDestroy(comm);
      },
      "within a group");
}

TEST_F(Misuse, AReceiveIntoWhatTheGroupSends) {
  EXPECT_DEATH(
      {
        ncclGroupStart();
        ncclSend(data, 8, ncclInt8, 0, comm, stream);
        ncclRecv(data + 4, 8, ncclInt8, 0, comm, stream);
        ncclGroupEnd();
      },
      "a send of the same group reads");
}

TEST_F(Misuse, UseAfterTheEnd) {
  EXPECT_DEATH(
      {
        ncclCommAbort(comm);
        Reduce(data, 4);
      },
      "after its end");
  EXPECT_DEATH(
      {
        cudaStreamDestroy(stream);
        Reduce(data, 4);
      },
      "no stream");
  EXPECT_DEATH(
      {
        cudaFree(data);
        cudaFree(data);
      },
      "no allocation");
}

TEST_F(Misuse, MemoryOfTheOtherLibraryOrThatIsRegistered) {
  EXPECT_DEATH(ncclMemFree(data), "the other library");
  EXPECT_DEATH(
      {
        void* handle = nullptr;
        ncclCommRegister(comm, data, 64, &handle);
        cudaFree(data);
      },
      "registered with a communicator");
}

TEST_F(Misuse, ACallBeforeTheLastOneIsThrough) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  EXPECT_DEATH(
      {
        ncclCommInitRankConfig(&comm, 1, id, 0, &config);
        Reduce(data, 4);
      },
      "whose last call is in progress");
}

}  // namespace
}  // namespace shardcall::testing
